// SPDX-License-Identifier: BSD-3-Clause
// Payloads of adaptive frames (payload.hpp): their parts, one after the other.
#include "adaptive/payload.hpp"

#include <cmath>
#include <cstring>
#include <memory>
#include <new>
#include <vector>

#include "adaptive/codec.hpp"
#include "adaptive/step.hpp"
#include "core/api.hpp"
#include "core/cpu_driver.hpp"
#include "core/error_text.hpp"
#include "core/wire.hpp"

namespace pyfilter {
namespace {

constexpr std::uint64_t kLeastModelBytes = 8;

// A part of a payload: its axes, the tiles of its units, and its bytes.
struct Part {
  TileAxes axes;
  std::uint32_t number = 0, unit_log2 = 0;
  const std::uint8_t* bytes = nullptr;
  std::size_t size = 0;
};

void set_units(std::uint32_t unit_log2, AdaptivePlan& plan) {
  plan.unit_tiles = 1u << unit_log2;
  const AdaptiveSizes sizes = adaptive_coders().sizes(plan);
  plan.unit_bytes = sizes.unit;
  plan.scratch_bytes = sizes.scratch;
}
AdaptivePlan plan_of(const FrameInfo& info, const AdaptiveGrid& grid, std::uint32_t unit_log2) {
  AdaptivePlan plan;
  read_plan(info, plan);
  plan.tiles = grid;
  plan.grid.values = info.value_count;
  plan.grid.tiles = plan.tiles.tiles();
  plan.grid.unordered = true;
  set_units(unit_log2, plan);
  return plan;
}

constexpr std::uint32_t kMostParts = kFewestColumns - 1;
struct PartList {
  std::uint32_t count = 0;
  Part of[kMostParts];

  const Part* begin() const { return of; }
  const Part* end() const { return of + count; }
};

// How a payload consists of parts.
class Parts {
 public:
  explicit Parts(const FrameInfo& info)
      : info_(info),
        grids_(make_part_grids(info.shape, info.value_count)),
        has_heads_(info.parameters[kAxes] == kPartAxes) {}

  std::uint32_t count() const { return has_heads_ ? static_cast<std::uint32_t>(grids_.own.components) : 1; }
  AdaptiveGrid grid_of(const Part& part) const {
    if (has_heads_) return grids_.of_part(part.axes, part.number);
    return info_.parameters[kAxes] != 0 ? grids_.across : grids_.own;
  }
  Status read(const std::uint8_t* payload, std::size_t payload_bytes, PartList& parts) const {
    if (!has_heads_) {
      parts.of[parts.count++] = {{}, 0, info_.parameters[kUnitLog2], payload, payload_bytes};
      return kOk;
    }
    const std::size_t heads = kPartHead * count();
    if (payload_bytes < heads) return fail(Code::corrupt, "corrupt frame: too short for its parts");
    std::uint64_t at = heads;
    for (std::uint32_t i = 0; i < count(); ++i) {
      const PartHead head{load_le<std::uint32_t>(payload + kPartHead * i),
                          load_le<std::uint32_t>(payload + kPartHead * i + 4)};
      const std::uint64_t size = 4 * std::uint64_t{head.words};
      if (size > payload_bytes - at) return fail(Code::corrupt, "corrupt frame: too short for its part %u", i);
      if (head.unit_log2() > kMostTilesLog2 || !grids_.allows(head.axes()))
        return fail(Code::corrupt, "corrupt frame: part %u has rows of %u, planes of %u rows, units of 2^%u tiles", i,
                    head.axes().row, head.axes().rows, head.unit_log2());
      parts.of[parts.count++] = {head.axes(), i, head.unit_log2(), payload + at, static_cast<std::size_t>(size)};
      at += size;
    }
    return at == payload_bytes ? kOk : fail(Code::corrupt, "corrupt frame: its parts do not fill it");
  }

 private:
  const FrameInfo& info_;
  PartGrids grids_;
  bool has_heads_;
};

// Reads the offset and the model of a part.
Status read_head(const Part& part, AdaptivePlan& plan, AdaptiveModel& model, std::size_t* bytes) {
  if (part.size < kPayloadHead) return fail(Code::corrupt, "corrupt frame: too short for its offset");
  plan.offset = load_le<double>(part.bytes);
  model.kind = plan.tiles.kind;
  if (!std::isfinite(plan.offset) || !read_model(part.bytes + kPayloadHead, part.size - kPayloadHead, model, bytes))
    return fail(Code::corrupt, "corrupt frame: its offset or its model is invalid");
  if (model.masks && !plan.has_sentinel)
    return fail(Code::corrupt, "corrupt frame: its model has masks, but the frame has no sentinel");
  *bytes += kPayloadHead;
  return kOk;
}

Status decode_part(const Part& part, AdaptivePlan& plan, AdaptiveModel& model, void* values) {
  const std::unique_ptr<AdaptiveTables> tables(new (std::nothrow) AdaptiveTables);
  if (!tables) return fail(Code::no_memory, "no memory for the tables of a frame");
  std::size_t head = 0;
  PYF_TRY(read_head(part, plan, model, &head));
  make_adaptive_tables(model, false, *tables);
  plan.model = &model;
  plan.tables = tables.get();
  // a unit's values are not contiguous in the array: every unit searches for the requested ones
  return decode_tiles(plan, *adaptive_coders().units, part.bytes + head, part.size - head, 0, plan.grid.values, values);
}

// A chunk's former frame, whose unchanged values an encoder keeps: its values, and how its parts were encoded.
struct Origin {
  struct PartModel {
    AdaptiveModel model;
    TileAxes axes;
    double offset = 0;
  };
  FrameInfo info;
  std::unique_ptr<std::uint8_t[]> values, kinds;
  std::unique_ptr<float[]> r;
  std::uint32_t part_count = 0;
  std::unique_ptr<PartModel[]> parts;

  Status open(const Request& request) {
    PYF_TRY(frame_info(request.origin, request.origin_bytes, &info));
    const auto count = static_cast<std::size_t>(info.value_count);
    values.reset(new (std::nothrow) std::uint8_t[info.value_bytes]);
    kinds.reset(new (std::nothrow) std::uint8_t[count]);
    r.reset(new (std::nothrow) float[count]);
    if (!values || !kinds || !r) return fail(Code::no_memory, "no memory for the values that a chunk had before");
    const Parts all(info);
    PartList read;
    PYF_TRY(all.read(static_cast<const std::uint8_t*>(request.origin) + info.header_bytes,
                     static_cast<std::size_t>(info.frame_bytes - info.header_bytes), read));
    part_count = read.count;
    parts.reset(new (std::nothrow) PartModel[part_count]);
    if (!parts) return fail(Code::no_memory, "no memory for the models that a chunk had before");
    for (std::uint32_t i = 0; i < part_count; ++i) {
      const Part& part = read.of[i];
      AdaptivePlan plan = plan_of(info, all.grid_of(part), part.unit_log2);
      plan.stop = info.value_count;
      plan.decoded_r = r.get();
      plan.decoded_kinds = kinds.get();
      PYF_TRY(decode_part(part, plan, parts[i].model, values.get()));
      parts[i].axes = part.axes;
      parts[i].offset = plan.offset;
    }
    return kOk;
  }
  // Sets the plan of a part, and its model for a step that is a fraction of the origin's. r, and therefore thresholds,
  // are in units of the step.
  void set_plan(double step, PartModel& part, AdaptivePlan& plan) const {
    plan.offset = part.offset;
    plan.origin_r = r.get();
    plan.origin_kinds = kinds.get();
    plan.origin_values = values.get();
    plan.origin_scale = static_cast<float>(info.step / step);
    for (PassModel& pass : part.model.passes)
      for (float& threshold : pass.thresholds) threshold *= plan.origin_scale;
    part.model.masks = plan.has_sentinel;
  }
};

// The offset of a part: the middle of its finite values that are not the sentinel.
template <class T>
double middle_of(const AdaptiveGrid& grid, const FrameInfo& info, const void* values) {
  PartRange<T> range(info.has_sentinel, info.sentinel);
  const auto* const from = static_cast<const std::uint8_t*>(values);
  for (std::uint64_t i = grid.first; i < grid.values; i += grid.stride) {
    T x;
    std::memcpy(&x, from + i * sizeof(T), sizeof(T));
    range.add(x);
  }
  return range.middle();
}

// Encodes the parts of a chunk.
class PayloadEncoder {
 public:
  PayloadEncoder(const Request& request, const void* values, double offset, FrameInfo& info)
      : request_(request),
        values_(values),
        offset_(offset),
        info_(info),
        grids_(make_part_grids(info.shape, info.value_count)),
        choice_{request.parameters[kPredictor], request.parameters[kEffort] != 0} {}

  Status encode(std::uint8_t* out, std::size_t limit, std::size_t* bytes) {
    if (request_.origin != nullptr) PYF_TRY(origin_.open(request_));
    if (!training_ || !tables_ || !written_) return fail(Code::no_memory, "no memory for a model of the chunk");
    TileAxes axes;
    PYF_TRY(train(0, axes));
    if (request_.origin != nullptr)
      return origin_.info.parameters[kAxes] == kPartAxes
                 ? encode_parts(origin_.part_count, axes, out, limit, bytes)
                 : encode_one(origin_.info.parameters[kAxes] != 0 ? TileAxes{0, 1} : TileAxes{}, out, limit, bytes);
    const std::uint32_t parts = grids_.parts();
    return parts > 1 || axes.is_folded() ? encode_parts(parts, axes, out, limit, bytes)
                                         : encode_one(axes, out, limit, bytes);
  }

 private:
  Status encode_one(const TileAxes& axes, std::uint8_t* out, std::size_t limit, std::size_t* bytes) {
    std::uint32_t unit_log2 = 0;
    info_.parameters[kAxes] = axes.is_across() ? 1 : 0;
    PYF_TRY(write(axes.is_across() ? grids_.across : grids_.own, 0, out, limit, bytes, &unit_log2));
    info_.parameters[kUnitLog2] = static_cast<std::uint8_t>(unit_log2);
    return kOk;
  }
  Status encode_parts(std::uint32_t parts, TileAxes axes, std::uint8_t* out, std::size_t limit, std::size_t* bytes) {
    std::size_t at = kPartHead * std::size_t{parts};
    for (std::uint32_t i = 0; i < parts; ++i) {
      if (at >= limit) return kOk;
      if (i != 0) PYF_TRY(train(i, axes));
      std::size_t own = 0;
      std::uint32_t unit_log2 = 0;
      PYF_TRY(write(grids_.of_part(axes, i), i, out + at, limit - at, &own, &unit_log2));
      if (own == 0) return kOk;
      const PartHead head(axes, unit_log2, static_cast<std::uint32_t>(own / 4));
      store_le(out + kPartHead * i, head.bits);
      store_le(out + kPartHead * i + 4, head.words);
      at += own;
    }
    info_.parameters[kAxes] = kPartAxes;  // of no raw frame
    *bytes = at;
    return kOk;
  }

  // Chooses the axes of a part, and its predictor. Of an origin both are known.
  Status train(std::uint32_t part, TileAxes& axes) {
    if (request_.origin != nullptr) {
      axes = origin_.parts[part].axes;
      return kOk;
    }
    try {
      axes = {};
      const AdaptiveGrid own = grids_.to_encode(axes, part);
      part_offset_ = offset_of(own);
      Folds others = adaptive_coders().find_folds(own, info_.dtype, values_);
      if (grids_.across.across) others.of[others.count++] = {0, 1};
      double least = 0;
      for (std::uint32_t i = 0; i < others.count; ++i) {
        if (i == 0) least = kBetterAxes * rate(own);
        const double bits = rate(grids_.to_encode(others.of[i], part));
        if (bits >= least) continue;
        least = bits;
        axes = others.of[i];
      }
      choose(grids_.to_encode(axes, part));
    } catch (const std::bad_alloc&) {
      return fail(Code::no_memory, "no memory to train a model of the chunk");
    }
    return kOk;
  }
  double offset_of(const AdaptiveGrid& grid) const {
    if (grids_.parts() == 1) return offset_;
    return info_.dtype == Dtype::f32 ? middle_of<float>(grid, info_, values_) : middle_of<double>(grid, info_, values_);
  }
  AdaptivePlan untrained(const AdaptiveGrid& grid) const {
    AdaptivePlan plan = plan_of(info_, grid, 0);
    plan.offset = part_offset_;
    return plan;
  }
  double rate(const AdaptiveGrid& grid) const { return adaptive_coders().rate(untrained(grid), choice_, values_); }
  void choose(const AdaptiveGrid& grid) const {
    adaptive_coders().choose(untrained(grid), choice_, values_, *training_);
  }

  // Trains the contexts of the chosen model, and writes offset, model, directory and units of a part.
  Status write(const AdaptiveGrid& grid, std::uint32_t part, std::uint8_t* out, std::size_t limit, std::size_t* bytes,
               std::uint32_t* unit_log2) {
    AdaptivePlan plan = untrained(grid);
    AdaptiveModel* model = &training_->model;
    if (request_.origin != nullptr) {
      training_->activity.clear();
      model = &origin_.parts[part].model;
      origin_.set_plan(info_.step, origin_.parts[part], plan);
    }
    std::vector<KeptTile> kept;
    plan.kept = &kept;
    double bits = 0;
    try {
      bits = adaptive_coders().finish(plan, choice_, values_, training_->activity, *model);
    } catch (const std::bad_alloc&) {
      return fail(Code::no_memory, "no memory to train a model of the chunk");
    }
    *unit_log2 = unit_log2_of(bits, plan.tiles.tiles());
    make_adaptive_tables(*model, true, *tables_);
    set_units(*unit_log2, plan);
    plan.model = model;
    plan.tables = tables_.get();
    const std::size_t model_bytes = write_model(*model, written_.get()), head = kPayloadHead + model_bytes;
    if (head >= limit) return kOk;
    store_le(out, plan.offset);
    std::memcpy(out + kPayloadHead, written_.get(), model_bytes);
    PYF_TRY(encode_tiles(plan, *adaptive_coders().units, values_, out + head, limit - head, bytes));
    if (*bytes != 0) *bytes += head;
    return kOk;
  }

  const Request& request_;
  const void* values_;
  double offset_, part_offset_ = 0;
  FrameInfo& info_;
  PartGrids grids_;
  AdaptiveChoice choice_;
  Origin origin_;
  std::unique_ptr<AdaptiveTraining> training_{new (std::nothrow) AdaptiveTraining};
  std::unique_ptr<AdaptiveTables> tables_{new (std::nothrow) AdaptiveTables};
  std::unique_ptr<std::uint8_t[]> written_{new (std::nothrow) std::uint8_t[kMostModelBytes]};
};

}  // namespace

Status encode_adaptive_payload(const Request& request, const void* values, double offset, FrameInfo& info,
                               std::uint8_t* out, std::size_t limit, std::size_t* bytes) {
  *bytes = 0;
  return PayloadEncoder(request, values, offset, info).encode(out, limit, bytes);
}

Status decode_adaptive_payload(const FrameInfo& info, const std::uint8_t* payload, std::size_t payload_bytes,
                               std::uint64_t start, std::uint64_t stop, void* values) {
  const std::unique_ptr<AdaptiveModel> model(new (std::nothrow) AdaptiveModel);
  if (!model) return fail(Code::no_memory, "no memory for the model of a frame");
  const Parts all(info);
  PartList parts;
  PYF_TRY(all.read(payload, payload_bytes, parts));
  for (const Part& part : parts) {
    *model = {};
    AdaptivePlan plan = plan_of(info, all.grid_of(part), part.unit_log2);
    plan.start = start;
    plan.stop = stop;
    PYF_TRY(decode_part(part, plan, *model, values));
  }
  return kOk;
}

// Every part has an offset, a model, a directory and a head for each unit. So its size limits the number of values that
// it can hold. The tiles of a folded line are not known here: none has more values than a volume's.
Status check_adaptive_size(const FrameInfo& info, std::uint64_t payload_bytes) {
  const bool heads = info.parameters[kAxes] == kPartAxes;
  const AdaptiveGrid grid = make_adaptive_grid(info.shape, info.value_count, info.parameters[kAxes] == 1);
  constexpr std::uint64_t kMostTileValues = std::uint64_t{kTilePlanes} * kTileRows * kTileColumns;
  const std::uint32_t unit_log2 = heads ? kMostTilesLog2 : info.parameters[kUnitLog2];
  const std::uint64_t tiles = heads ? tile_parts(info.value_count, kMostTileValues) : grid.tiles(),
                      units = tile_parts(tiles, std::uint64_t{1} << unit_log2),
                      of_unit = 4 + kUnitHead + 4 * std::uint64_t{least_state_words(heads ? 1 : grid.most_rows())};
  const std::uint64_t parts = heads ? grid.components : 1,
                      least = parts * (kPayloadHead + kLeastModelBytes + 4 + (heads ? kPartHead : 0));
  if (payload_bytes < least || (payload_bytes - least) / of_unit < units)
    return fail(Code::corrupt, "corrupt frame: the frame is too short for its units");
  return kOk;
}

}  // namespace pyfilter
