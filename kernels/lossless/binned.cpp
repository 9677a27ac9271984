// SPDX-License-Identifier: BSD-3-Clause
// Payloads of Lossless's form `ratio` (docs/format.md, section 15): the chunk's model, a directory, and units.
#include <cstring>
#include <memory>
#include <new>

#include "core/cpu_driver.hpp"
#include "core/error_text.hpp"
#include "core/request.hpp"
#include "lossless/binned_read.hpp"
#include "lossless/binned_write.hpp"
#include "lossless/codec.hpp"

namespace pyfilter {
namespace {

std::size_t number_bytes(Dtype dtype) { return dtype_bytes(dtype) == 8 ? 8 : 4; }

BinnedPlan plan_of(const FrameInfo& info, const BinnedModel& model) {
  BinnedPlan plan;
  read_plan(info, plan);
  plan.grid = make_run_grid(info.value_count, model.unit_values);
  plan.model = &model;
  plan.unit_bytes = most_binned_unit_bytes(model.unit_values, number_bytes(info.dtype));
  plan.scratch_bytes = binned_scratch_bytes(model.unit_values, number_bytes(info.dtype));
  return plan;
}

// Tables of both streams.
struct Tables {
  std::unique_ptr<BinTables> of[2];

  bool make(const BinnedModel& model, bool encoding, BinnedPlan& plan) {
    for (std::size_t s = 0; s < (model.map.remainders ? 2u : 1u); ++s) {
      of[s].reset(new (std::nothrow) BinTables);
      if (!of[s]) return false;
      make_bin_tables(model.streams[s], encoding, *of[s]);
      plan.tables[s] = of[s].get();
    }
    return true;
  }
};

// Reads a model whose map has the dtype's fields. Returns false if the bytes are damaged.
bool read_model(const std::uint8_t* from, std::size_t available, BinnedModel& model, std::size_t* bytes) {
  const auto room = [&](std::uint32_t entries) {
    model.dictionary.assign(entries, 0);
    return model.dictionary.data();
  };
  return read_model_parts(from, available, room, model, bytes);
}

Status no_memory() { return fail(Code::no_memory, "no memory for a model of the chunk"); }

}  // namespace

Status encode_binned(const void* values, FrameInfo& info, std::uint8_t* out, std::size_t limit, std::size_t* bytes) {
  *bytes = 0;
  if (info.value_count == 0) return kOk;
  const std::unique_ptr<BinnedModel> model(new (std::nothrow) BinnedModel);
  if (!model) return no_memory();
  model->map = plain_map(info.dtype);
  std::unique_ptr<std::uint8_t[]> written;
  try {
    binned_coders().train(info, values, *model);
    written.reset(new std::uint8_t[most_binned_model_bytes(model->dictionary.size())]);
  } catch (const std::bad_alloc&) {
    return no_memory();
  }
  BinnedPlan plan = plan_of(info, *model);
  Tables tables;
  if (!tables.make(*model, true, plan)) return no_memory();
  const std::size_t head = write_binned_model(*model, written.get());
  if (head >= limit) return kOk;
  std::memcpy(out, written.get(), head);
  PYF_TRY(encode_tiles(plan, *binned_coders().units(info.dtype), values, out + head, limit - head, bytes));
  if (*bytes != 0) *bytes += head;
  return kOk;
}

Status decode_binned(const FrameInfo& info, const std::uint8_t* payload, std::size_t payload_bytes, std::uint64_t start,
                     std::uint64_t stop, void* values) {
  const std::unique_ptr<BinnedModel> model(new (std::nothrow) BinnedModel);
  if (!model) return no_memory();
  model->map = plain_map(info.dtype);
  std::size_t head = 0;
  try {
    if (!read_model(payload, payload_bytes, *model, &head))
      return fail(Code::corrupt, "corrupt frame: the model of its bins is invalid");
  } catch (const std::bad_alloc&) {
    return no_memory();
  }
  BinnedPlan plan = plan_of(info, *model);
  Tables tables;
  if (!tables.make(*model, false, plan)) return no_memory();
  return decode_tiles(plan, *binned_coders().units(info.dtype), payload + head, payload_bytes - head, start, stop,
                      values);
}

// Every frame has a model, a directory and heads of units: it cannot hold many more values than its size allows.
Status check_binned_size(const FrameInfo& info, std::uint64_t payload_bytes) {
  const std::uint64_t units = (info.value_count + kMostUnitValues - 1) / kMostUnitValues;
  constexpr std::uint64_t kLeastModel = 4, kLeastUnit = 8;
  if (payload_bytes < kLeastModel + 4 || (payload_bytes - kLeastModel - 4) / (4 + kLeastUnit) < units)
    return fail(Code::corrupt, "corrupt frame: the frame is too short for its units");
  return kOk;
}

}  // namespace pyfilter
