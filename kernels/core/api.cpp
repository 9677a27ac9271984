// SPDX-License-Identifier: BSD-3-Clause
// The entry points (api.hpp): requests to frames and back. What a frame holds is decided here; how, in the rooms.
#include "core/api.hpp"

#include <algorithm>
#include <cstring>
#include <memory>
#include <new>

#include "core/bound.hpp"
#include "core/choices.hpp"
#include "core/cpu_driver.hpp"
#include "core/cuda_driver.hpp"
#include "core/entropy_driver.hpp"
#include "core/error_text.hpp"
#include "core/fp_environment.hpp"
#include "core/header.hpp"
#include "core/integer_bound.hpp"
#include "core/particle_driver.hpp"
#include "core/plan.hpp"
#include "core/progressive_driver.hpp"
#include "core/request.hpp"
#include "core/settings.hpp"
#include "particles/estimate.hpp"
#include "particles/key.hpp"

namespace pyfilter {
namespace {

const TileCoder* find_coder(std::uint8_t codec, const Plan& plan) {
  const LevelTable& level = level_table();
  const int dims = plan.grid.block_dims;
  if (codec == registry::kCodecCuszp2) return level.cuszp2(plan.dtype, dims);
  if (codec == registry::kCodecLossless) return level.lossless(plan.dtype, dims);
  if (codec == registry::kCodecHierarchicalDelta) return level.hierarchical_delta(plan);
  if (codec == registry::kCodecParticles && level.particles(plan) != nullptr) return &level.particles(plan)->tiles;
  if (codec == registry::kCodecLorenzo && level.lorenzo(plan) != nullptr) return &level.lorenzo(plan)->groups;
  return nullptr;
}

Plan make_plan(const FrameInfo& info) {
  Plan plan;
  plan.dtype = info.dtype;
  if (info.codec == registry::kCodecHierarchicalDelta) {
    plan.exceptions = info.parameters[1] == 1;
    plan.order = info.parameters[2];
  } else if (info.codec == registry::kCodecParticles) {
    // its grid says it all
  } else if (info.codec == registry::kCodecLorenzo) {
    plan.entropy = true;
    plan.coder = info.parameters[1];
    plan.order = info.parameters[2];
    plan.unit_tiles = 1u << info.parameters[3];
  } else {
    plan.mode = info.parameters[0];
  }
  plan.pointwise = info.pointwise;
  plan.has_sentinel = info.has_sentinel;
  plan.sentinel = info.sentinel;
  plan.bound = info.bound;
  plan.step = info.step;
  plan.grid = grid_of(info);
  return plan;
}

// Chooses the predictor of a frame.
void choose_predictor(const Request& request, const void* values, std::uint64_t count, FrameInfo& info) {
  if (count == 0) return;
  const Predictor predictor = choose_predictor(request, make_plan(info), values, count);
  info.parameters[0] = predictor.tile_shape;
  info.parameters[2] = predictor.order;
}

// The absolute bound of a request for these values; 0 asks for a bit-exact frame.
double resolve_bound(const Request& request, const void* values, std::uint64_t count) {
  if (request.bound_mode == Bound::absolute || request.bound_mode == Bound::pointwise_relative) return request.bound;
  if (!is_float(request.dtype)) {
    std::uint64_t low = 0, high = 0;
    return find_integer_range(request, values, count, &low, &high) ? resolve_integer_relative(request.bound, high - low)
                                                                   : 0;
  }
  double low = 0, high = 0;
  if (request.bound_mode == Bound::none || !find_value_range(request, values, count, &low, &high)) return 0;
  return resolve_relative(request.bound, low, high);
}

StepChoice choose_step(const Request& request, double bound, const void* values, std::uint64_t count) {
  return is_float(request.dtype) ? level_table().choose_step(request, bound, values, count)
                                 : choose_integer_step(request, bound);
}

// What the frame will say, but for its size; whether it is quantised or the lossless fallback.
FrameInfo plan_frame(const Request& request, const void* values, std::uint64_t count) {
  FrameInfo info = frame_template(request, request.codec, count);
  if (request.codec == registry::kCodecLossless || request.codec == registry::kCodecProgressive) return info;
  const double bound = resolve_bound(request, values, count);
  const StepChoice choice = bound > 0 ? choose_step(request, bound, values, count) : StepChoice{};
  if (choice.quantise) {
    info.bound = choice.bound;
    info.step = choice.step;
    info.pointwise = request.bound_mode == Bound::pointwise_relative;
    info.has_sentinel = choice.has_sentinel;
    info.sentinel = choice.sentinel;
  } else if (info.codec == registry::kCodecCuszp2) {
    info = frame_template(request, registry::kCodecLossless, count);
  } else if (info.codec == registry::kCodecLorenzo) {
    info = stand_in(info);
  } else if (info.codec == registry::kCodecParticles) {
    return frame_template(request, registry::kCodecLossless, count);  // not for particles: the caller asks lorenzo
  }
  if (info.codec == registry::kCodecHierarchicalDelta || info.codec == registry::kCodecLorenzo)
    choose_predictor(request, values, count, info);
  return info;
}

Status encode_with(const Plan& plan, std::uint8_t codec, const void* values, std::uint8_t* out, std::size_t limit,
                   std::size_t* bytes) {
  const TileCoder* coder = find_coder(codec, plan);
  if (coder == nullptr)
    return fail(Code::internal, "codec %d has no kernel for dtype %d", codec, static_cast<int>(plan.dtype));
  return encode_tiles(plan, *coder, values, out, limit, bytes);
}

// The payload of a frame of lorenzo.
Status encode_streams(const void* values, FrameInfo& info, std::uint8_t* out, std::size_t limit, std::size_t* bytes) {
  const std::unique_ptr<EntropyModel> model(new (std::nothrow) EntropyModel);
  const std::unique_ptr<RoundTables> tables(new (std::nothrow) RoundTables);
  HuffmanCodes codes;
  const std::unique_ptr<std::uint8_t[]> written(new (std::nothrow) std::uint8_t[kMostTableBytes]);
  if (!model || !tables || !written) return fail(Code::no_memory, "no memory for the tables of streams");
  Plan plan = make_plan(info);
  const GroupCoder* coder = level_table().lorenzo(plan);
  if (coder == nullptr) return fail(Code::internal, "lorenzo has no kernel for dtype %d", static_cast<int>(info.dtype));
  const bool rans = plan.coder == kRans;
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
  plan = make_plan(info);
  plan.counted = kept;
  plan.counted_tiles = kept_tiles;
  plan.tables = rans ? static_cast<const void*>(tables.get()) : &codes;
  PYF_TRY(encode_with(plan, info.codec, values, out + table_bytes, limit - table_bytes, bytes));
  if (*bytes != 0) *bytes += table_bytes;
  return kOk;
}

// Encodes the payload of a frame, which may become one of another codec; *bytes is its size, 0 where it would need
// `limit` bytes or more.
Status encode_payload(const Request& request, const void* values, FrameInfo& info, std::uint8_t* out, std::size_t limit,
                      std::size_t* bytes) {
  *bytes = 0;
  if (info.value_count == 0) return kOk;
  if (info.codec == registry::kCodecProgressive) {
    const double bound = resolve_bound(request, values, info.value_count);
    bool too_fine = request.bound_mode != Bound::none && bound == 0;
    if (!too_fine)
      PYF_TRY(level_table().progressive->encode(request, bound, values, &info, out, limit, bytes, &too_fine));
    if (!too_fine) return kOk;
    Request plain = request;  // bit-exact
    plain.codec = registry::kCodecHierarchicalDelta;
    plain.parameters = {};
    info = frame_template(plain, plain.codec, info.value_count);
    choose_predictor(plain, values, info.value_count, info);
    return encode_with(make_plan(info), info.codec, values, out, limit, bytes);
  }
  if (info.codec == registry::kCodecLorenzo) {
    FrameInfo other = stand_in(info);
    std::size_t other_bytes = limit;
    if (grid_of(info).tiles <= kCompareTiles) {
      choose_predictor(request, values, info.value_count, other);
      const Plan plan = make_plan(other);
      PYF_TRY(encoded_bytes(plan, *find_coder(other.codec, plan), values, &other_bytes));
    }
    PYF_TRY(encode_streams(values, info, out, std::min(limit, other_bytes), bytes));
    if (*bytes != 0 || other_bytes >= limit) return kOk;
    info = other;
  }
  return encode_with(make_plan(info), info.codec, values, out, limit, bytes);
}

// The tables of one coder or the other.
struct StreamTables {
  std::unique_ptr<DecodeTables> rans;
  std::unique_ptr<HuffmanTables> huffman;

  const void* get() const { return rans ? static_cast<const void*>(rans.get()) : huffman.get(); }
};

// Reads the tables of a frame of lorenzo; *bytes is their size.
Status read_streams(const Plan& plan, const std::uint8_t* payload, std::size_t payload_bytes, StreamTables& tables,
                    std::size_t* bytes) {
  const std::unique_ptr<EntropyModel> model(new (std::nothrow) EntropyModel);
  const bool rans = plan.coder == kRans;
  if (rans)
    tables.rans.reset(new (std::nothrow) DecodeTables);
  else
    tables.huffman.reset(new (std::nothrow) HuffmanTables);
  if (!model || tables.get() == nullptr) return fail(Code::no_memory, "no memory for the tables of streams");
  if (!(rans ? read_tables(payload, payload_bytes, *model, bytes)
             : read_huffman_tables(payload, payload_bytes, *model, bytes)))
    return fail(Code::corrupt, "corrupt frame: its tables of frequencies or code lengths");
  if (rans)
    make_decode_tables(*model, *tables.rans);
  else
    make_huffman_tables(model->book, *tables.huffman);
  return kOk;
}

void store_raw(FrameInfo& info, const void* values, std::uint8_t* out) {
  info.stored_raw = true;
  info.bound = info.step = 0;
  info.has_sentinel = info.pointwise = false;
  info.frame_bytes = info.header_bytes + info.value_bytes;
  if (info.value_bytes != 0) std::memcpy(out + info.header_bytes, values, info.value_bytes);
}

// A request that has been checked, on the CPU, by any codec but particles.
Status encode_frame(const Request& request, const void* values, std::uint64_t count, std::uint8_t* out,
                    std::size_t* frame_bytes) {
  FrameInfo info = plan_frame(request, values, count);
  std::size_t payload = 0;
  PYF_TRY(encode_payload(request, values, info, out + info.header_bytes, info.value_bytes, &payload));
  info.frame_bytes = info.header_bytes + payload;
  if (payload == 0) store_raw(info, values, out);
  finish_header(info, out);
  *frame_bytes = static_cast<std::size_t>(info.frame_bytes);
  return kOk;
}

// The bytes that lorenzo needs for particles, about where they are many.
Status lorenzo_bytes(const Request& request, const FrameInfo& info, const Plan& plan, const ParticleCoder& coder,
                     const void* values, std::uint64_t* bytes) {
  const auto coordinates = static_cast<std::uint64_t>(plan.grid.block_dims), particles = info.value_count / coordinates;
  if (particles > kTriedParticles) return estimate_lorenzo(plan, coder, values, bytes);
  const Request part = tried_request(request, info.bound, particles, static_cast<int>(coordinates));
  const std::unique_ptr<std::uint8_t[]> frame(new (std::nothrow) std::uint8_t[max_frame_bytes(part)]);
  if (!frame) return fail(Code::no_memory, "no memory for a frame");
  std::size_t frame_bytes = 0;
  PYF_TRY(encode_frame(part, values, info.value_count, frame.get(), &frame_bytes));
  *bytes = frame_bytes;
  return kOk;
}

// particles: its own frame, or the one of lorenzo where that is shorter.
Status encode_particle_frame(const Request& request, const void* values, std::uint64_t count, std::uint8_t* out,
                             std::size_t* frame_bytes) {
  const Request other = lorenzo_request(request);
  if (count == 0 || coordinates_of(request.shape.rank, request.shape.dims) == 0)
    return encode_frame(other, values, count, out, frame_bytes);
  FrameInfo info = plan_frame(request, values, count);
  if (info.codec != registry::kCodecParticles) return encode_frame(other, values, count, out, frame_bytes);
  Plan plan = make_plan(info);
  const ParticleCoder* coder = level_table().particles(plan);
  if (coder == nullptr) return fail(Code::internal, "particles has no kernel for this dtype");
  const std::uint8_t order = request.parameters[0];
  if (order == kOrderKept) {
    bool ordered = false;
    PYF_TRY(is_ordered(plan, *coder, values, &ordered));
    if (!ordered) return encode_frame(other, values, count, out, frame_bytes);
  }
  std::unique_ptr<std::uint64_t[]> entries;
  PYF_TRY(plan_order(*coder, order, values, plan, entries, out,
                     static_cast<std::size_t>(info.header_bytes + info.value_bytes)));
  std::uint64_t most = 0;  // a frame of more than lorenzo's bytes is not even finished
  std::size_t payload = 0;
  PYF_TRY(lorenzo_bytes(other, info, plan, *coder, values, &most));
  if (most > info.header_bytes)
    PYF_TRY(encode_tiles(plan, coder->tiles, values, out + info.header_bytes,
                         static_cast<std::size_t>(std::min(info.value_bytes, most - info.header_bytes + 1)), &payload));
  if (payload == 0) return encode_frame(other, values, count, out, frame_bytes);
  info.frame_bytes = info.header_bytes + payload;
  finish_header(info, out);
  *frame_bytes = static_cast<std::size_t>(info.frame_bytes);
  return kOk;
}

}  // namespace

std::size_t max_frame_bytes(const Request& request) noexcept {
  std::uint64_t count = 0;
  if (request.shape.rank < 0 || request.shape.rank > kMaxRank || !value_count(request.shape, &count)) return 0;
  const std::uint64_t bytes = count * dtype_bytes(request.dtype);
  if (bytes > kMaxChunkBytes) return 0;
  return header_bytes(request.shape.rank) + static_cast<std::size_t>(bytes);
}

static Status encode_checked(const Request& asked, const void* values, std::size_t value_bytes, void* frame,
                             std::size_t frame_capacity, std::size_t* frame_bytes, bool may_use_device) {
  const FpEnvironment environment;
  PYF_TRY(check_request(asked));
  const Request request = without_psnr(asked);
  std::uint64_t count = 0;
  if (!value_count(request.shape, &count)) return fail(Code::unsupported, "the product of the dims is 2^61 or more");
  if (count * dtype_bytes(request.dtype) != value_bytes)
    return fail(Code::invalid_argument, "%zu bytes of values, the shape and dtype need %llu", value_bytes,
                static_cast<unsigned long long>(count * dtype_bytes(request.dtype)));
  if (frame_capacity < max_frame_bytes(request))
    return fail(Code::no_space, "a buffer of %zu bytes for the frame, %zu may be needed", frame_capacity,
                max_frame_bytes(request));
  // a device that fails (no memory, a fork) must not fail a write that the CPU can do
  if (may_use_device && prefers_cuda() && on_devices(request.codec, request.dtype) &&
      cuda_encode_host(request, values, value_bytes, frame, frame_bytes).ok())
    return kOk;
  auto* out = static_cast<std::uint8_t*>(frame);
  if (request.codec == registry::kCodecParticles)
    return encode_particle_frame(request, values, count, out, frame_bytes);
  return encode_frame(request, values, count, out, frame_bytes);
}

Status encode(const Request& request, const void* values, std::size_t value_bytes, void* frame,
              std::size_t frame_capacity, std::size_t* frame_bytes) noexcept {
  return encode_checked(request, values, value_bytes, frame, frame_capacity, frame_bytes, true);
}

Status encode_on_cpu(const Request& request, const void* values, std::size_t value_bytes, void* frame,
                     std::size_t frame_capacity, std::size_t* frame_bytes) noexcept {
  return encode_checked(request, values, value_bytes, frame, frame_capacity, frame_bytes, false);
}

Status frame_info(const void* frame, std::size_t available, FrameInfo* info) noexcept {
  return read_header(static_cast<const std::uint8_t*>(frame), available, info);
}

Status decode(const void* frame, std::size_t frame_bytes, void* values, std::size_t value_bytes) noexcept {
  FrameInfo info;
  PYF_TRY(frame_info(frame, frame_bytes, &info));
  return decode_range(frame, frame_bytes, 0, info.value_count, values, value_bytes);
}

Status decode_range(const void* frame, std::size_t frame_bytes, std::uint64_t start, std::uint64_t stop, void* values,
                    std::size_t value_bytes) noexcept {
  const FpEnvironment environment;
  FrameInfo info;
  PYF_TRY(frame_info(frame, frame_bytes, &info));
  PYF_TRY(check_decode(info, frame_bytes, start, stop, value_bytes));
  const auto* payload = static_cast<const std::uint8_t*>(frame) + info.header_bytes;
  const std::size_t payload_bytes = frame_bytes - static_cast<std::size_t>(info.header_bytes);
  if (info.stored_raw) {
    if (value_bytes != 0) std::memcpy(values, payload + start * dtype_bytes(info.dtype), value_bytes);
    return kOk;
  }
  // where the device fails or finds a fault the CPU looks again, and has the last word on the error
  if (prefers_cuda() && on_devices(info.codec, info.dtype) &&
      cuda_decode_host(frame, frame_bytes, start, stop, values, value_bytes).ok())
    return kOk;
  if (info.codec == registry::kCodecProgressive)
    return decode_progressive_range(info, payload, payload_bytes, start, stop, values);
  Plan plan = make_plan(info);
  const TileCoder* coder = find_coder(info.codec, plan);
  if (coder == nullptr)
    return fail(Code::internal, "codec %d has no kernel for dtype %d", info.codec, static_cast<int>(info.dtype));
  StreamTables tables;
  std::size_t table_bytes = 0;
  if (plan.entropy) PYF_TRY(read_streams(plan, payload, payload_bytes, tables, &table_bytes));
  plan.tables = tables.get();
  return decode_tiles(plan, *coder, payload + table_bytes, payload_bytes - table_bytes, start, stop, values);
}

Status check_order_request(const Request& request, std::size_t value_bytes, std::uint64_t* count,
                           int* coordinates) noexcept {
  PYF_TRY(check_request(request));
  *coordinates = coordinates_of(request.shape.rank, request.shape.dims);
  if (request.codec != registry::kCodecParticles || *coordinates == 0 || !value_count(request.shape, count) ||
      *count * dtype_bytes(request.dtype) != value_bytes)
    return fail(Code::invalid_argument, "an order needs positions, arrays (N, 2) or (N, 3), and codec particles");
  return kOk;
}

Status particle_order(const Request& asked, const void* values, std::size_t value_bytes,
                      std::uint32_t* particles) noexcept {
  const FpEnvironment environment;
  const Request request = without_psnr(asked);
  std::uint64_t count = 0;
  int coordinates = 0;
  PYF_TRY(check_order_request(request, value_bytes, &count, &coordinates));
  FrameInfo info = frame_template(request, request.codec, count);
  const FrameInfo planned = plan_frame(request, values, count);
  // what is not quantised has no keys: it keeps its order
  const bool sorted = planned.codec == registry::kCodecParticles && count != 0;
  const Plan plan = make_plan(sorted ? planned : info);
  const ParticleCoder* coder = level_table().particles(plan);
  if (coder == nullptr) return fail(Code::internal, "particles has no kernel for this dtype");
  return order_particles(plan, *coder, sorted ? request.parameters[0] : kOrderKept, values, particles);
}

Status value_range(const Request& request, const void* values, std::size_t value_bytes, double* low, double* high,
                   bool* found) noexcept {
  const FpEnvironment environment;
  const std::uint64_t count = value_bytes / dtype_bytes(request.dtype);
  if (is_float(request.dtype)) {
    *found = find_value_range(request, values, count, low, high);
    return kOk;
  }
  std::uint64_t above_low = 0, above_high = 0;
  *found = find_integer_range(request, values, count, &above_low, &above_high);
  if (*found) integer_limits(request.dtype, above_low, above_high, low, high);
  return kOk;
}

}  // namespace pyfilter
