// SPDX-License-Identifier: BSD-3-Clause
// Lorenzo's entry in core's table of codecs (core/codec.hpp): tables and streams of a chunk, or a frame of
// hierarchical_delta if that is shorter.
#include "lorenzo/codec.hpp"

#include <algorithm>
#include <cstring>
#include <memory>
#include <new>

#include "core/codec.hpp"
#include "core/cpu_driver.hpp"
#include "core/error_text.hpp"
#include "core/frame_encoder.hpp"
#include "core/request.hpp"
#include "lorenzo/model.hpp"
#include "lorenzo/rans.hpp"
#include "lorenzo/round_tables.hpp"
#include "lorenzo/symbol_counts.hpp"
#include "stages/packed/parameters.hpp"
#include "stages/packed/predictor.hpp"

namespace pyfilter {
namespace {

StreamPlan plan_of(const FrameInfo& info) {
  StreamPlan plan;
  read_packed_plan(info, plan);
  plan.entropy = true;
  plan.coder = info.parameters[1];
  plan.unit_tiles = 1u << info.parameters[3];
  const std::uint64_t tiles = std::min<std::uint64_t>(plan.unit_tiles, plan.grid.tiles);
  plan.unit_bytes = max_group_bytes(static_cast<std::uint32_t>(tiles), dtype_bytes(plan.dtype));
  plan.scratch_bytes = group_scratch_bytes(plan.unit_tiles);
  return plan;
}

// The payload: tables, then a directory and groups of tiles.
Status encode_streams(const void* values, FrameInfo& info, std::uint8_t* out, std::size_t limit, std::size_t* bytes) {
  const std::unique_ptr<EntropyModel> model(new (std::nothrow) EntropyModel);
  const std::unique_ptr<RoundTables> tables(new (std::nothrow) RoundTables);
  HuffmanCodes codes;
  const std::unique_ptr<std::uint8_t[]> written(new (std::nothrow) std::uint8_t[kMostTableBytes]);
  if (!model || !tables || !written) return fail(Code::no_memory, "no memory for the tables of streams");
  StreamPlan plan = plan_of(info);
  const GroupCoder* const coder = lorenzo_coders().coder(plan);
  if (coder == nullptr) return no_kernel(info);
  const bool rans = is_rans(plan.coder);
  const std::uint64_t kept_tiles =
      rans ? std::min({TileSample(plan.grid.tiles).count, kMostCountedTiles, info.value_bytes / 8 / kCountedTileBytes})
           : 0;
  std::uint8_t* const kept = kept_tiles != 0 ? thread_keeping(kept_tiles * kCountedTileBytes) : nullptr;
  plan.counted = kept;
  plan.counted_tiles = kept_tiles;
  PYF_TRY(make_entropy_model(plan, *coder, values, model.get()));
  if (rans)
    make_round_tables(*model, *tables);
  else
    make_codes(model->book, codes);
  const std::size_t table_bytes = write_tables(*model, !rans, written.get());
  if (table_bytes >= limit) return kOk;
  std::memcpy(out, written.get(), table_bytes);
  info.parameters[3] = static_cast<std::uint8_t>(model->group_log2);
  plan = plan_of(info);
  plan.counted = kept;
  plan.counted_tiles = kept_tiles;
  plan.tables = rans ? static_cast<const void*>(tables.get()) : &codes;
  PYF_TRY(encode_tiles(plan, coder->groups, values, out + table_bytes, limit - table_bytes, bytes));
  if (*bytes != 0) *bytes += table_bytes;
  return kOk;
}

// The parameters of the hierarchical_delta frame that replaces streams if the bound is too tight, or if tables cost
// more than they save.
Parameters stand_in_parameters(const FrameInfo& info) { return {info.parameters[0], 1, 1}; }

Status encode(const Request& request, const void* values, FrameInfo& info, std::uint8_t* out, std::size_t limit,
              std::size_t* bytes) {
  *bytes = 0;
  if (!settle_step(request, values, info)) {
    Request exact = request;
    exact.codec = registry::kCodecHierarchicalDelta;
    exact.bound_mode = Bound::none;
    exact.parameters = {request.parameters[0], 1};
    return encode_payload(exact, values, info.value_count, info, out, limit, bytes);
  }
  choose_predictor(request, plan_of(info), values, info);
  if (info.value_count == 0) return kOk;
  const Codec& other_codec = *codec_of(registry::kCodecHierarchicalDelta);
  FrameInfo other = info;
  other.codec = registry::kCodecHierarchicalDelta;
  other.parameters = stand_in_parameters(info);
  std::size_t other_bytes = limit;
  if (plan_of(info).grid.tiles <= kCompareTiles) {
    PackedPlan plan;
    read_packed_plan(other, plan);
    plan.exceptions = true;
    choose_predictor(request, plan, values, other);
    PYF_TRY(other_codec.planned_bytes(other, values, &other_bytes));
  }
  PYF_TRY(encode_streams(values, info, out, std::min(limit, other_bytes), bytes));
  if (*bytes != 0 || other_bytes >= limit) return kOk;
  info = other;
  return other_codec.encode_planned(info, values, out, limit, bytes);
}

// The tables of the stream's coder: rANS or Huffman.
struct StreamTables {
  std::unique_ptr<DecodeTables> rans;
  std::unique_ptr<HuffmanTables> huffman;

  const void* get() const { return rans ? static_cast<const void*>(rans.get()) : huffman.get(); }
};

// Reads the tables; *bytes is their size.
Status read_streams(const StreamPlan& plan, const std::uint8_t* payload, std::size_t payload_bytes,
                    StreamTables& tables, std::size_t* bytes) {
  const std::unique_ptr<EntropyModel> model(new (std::nothrow) EntropyModel);
  const bool rans = is_rans(plan.coder);
  if (rans)
    tables.rans.reset(new (std::nothrow) DecodeTables);
  else
    tables.huffman.reset(new (std::nothrow) HuffmanTables);
  if (!model || tables.get() == nullptr) return fail(Code::no_memory, "no memory for the tables of streams");
  if (!(rans ? read_tables(payload, payload_bytes, *model, bytes)
             : read_huffman_tables(payload, payload_bytes, *model, bytes)))
    return fail(Code::corrupt, "corrupt frame: its frequencies or code lengths are invalid");
  if (rans)
    make_decode_tables(*model, *tables.rans);
  else
    make_huffman_tables(model->book, *tables.huffman);
  return kOk;
}

Status decode(const FrameInfo& info, const std::uint8_t* payload, std::size_t payload_bytes, std::uint64_t start,
              std::uint64_t stop, void* values) {
  StreamPlan plan = plan_of(info);
  const GroupCoder* const coder = lorenzo_coders().coder(plan);
  if (coder == nullptr) return no_kernel(info);
  StreamTables tables;
  std::size_t table_bytes = 0;
  PYF_TRY(read_streams(plan, payload, payload_bytes, tables, &table_bytes));
  plan.tables = tables.get();
  return decode_tiles(plan, coder->groups, payload + table_bytes, payload_bytes - table_bytes, start, stop, values);
}

Status check_parameters(const registry::CodecRow& row, const Parameters& parameters, const Shape& shape,
                        bool in_frame) {
  const Code code = parameter_code(in_frame);
  PYF_TRY(check_zero_parameters(row, parameters, in_frame ? 4 : 3, in_frame));
  PYF_TRY(check_predictor(row, parameters, false, in_frame));
  if (parameters[1] > (in_frame ? kRans : 2) || (in_frame && parameters[1] == 0))
    return fail(code, "%s: coder %d, allowed: %s", row.name, parameters[1],
                in_frame ? "1 and 4 (rans), 2 (huffman with a gap array), 3 (huffman)" : "0 (rans), 2 (huffman)");
  if (!in_frame && parameters[2] > 2)
    return fail(code, "%s: gap_array %d, allowed: 0 (true), 2 (false)", row.name, parameters[2]);
  if (!in_frame && parameters[2] == 2 && parameters[1] != 2)
    return fail(code, "%s: gap_array 2 (false) goes with coder 2 (huffman) only", row.name);
  if (in_frame && parameters[3] > kMostGroupLog2)
    return fail(code, "%s: groups of 2^%d tiles, allowed: 0 to %u", row.name, parameters[3], kMostGroupLog2);
  return check_predictor_shape(row, parameters, shape, in_frame);
}

void frame_parameters(Parameters& parameters) {
  const bool huffman = parameters[1] == 2, gaps = parameters[2] != 2;
  parameters[1] = !huffman ? kRans : gaps ? kHuffmanGaps : kHuffman;
  parameters[0] = parameters[0] == kAskAny ? kChain : parameters[0];  // a placeholder until the predictor is chosen
  parameters[2] = 1;
}

Status check_size(const FrameInfo& info, std::uint64_t payload_bytes) {
  const std::uint64_t tiles = make_packed_grid(info.shape, info.value_count, info.parameters[0]).tiles,
                      group = std::uint64_t{1} << info.parameters[3];
  return check_directory_size(tiles / group + (tiles % group != 0 ? 1 : 0), payload_bytes);
}

// Frames with states of 32 bits, and those of Huffman coders, exist since format 3, others of rans since format 10.
std::uint8_t frame_version(const Parameters& parameters) { return parameters[1] == kRans ? 10 : 3; }

}  // namespace

extern const Codec kLorenzoCodec;
const Codec kLorenzoCodec{
    .check_parameters = check_parameters,
    .frame_parameters = frame_parameters,
    .check_size = check_size,
    .encode = encode,
    .decode = decode,
    .frame_version = frame_version,
    .may_be_pointwise = true,
};

}  // namespace pyfilter
