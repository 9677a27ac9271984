// SPDX-License-Identifier: BSD-3-Clause
// The axes that the parts of a batch may have (batch_axes.cuh).
#include "adaptive/cuda/batch_axes.cuh"

#include <algorithm>

#include "adaptive/cuda/driver.cuh"
#include "adaptive/train/sample.hpp"
#include "core/cuda/derived.cuh"
#include "core/cuda/memory.cuh"

namespace pyfilter::cuda {

namespace {

constexpr std::uint32_t kFoldBlocks = 264;  // that find folds at a time

std::uint32_t most_record_steps(const AdaptiveGrid& grid) {
  std::uint32_t most = 0;
  for (std::uint32_t levels = 0; levels <= kTriedLevels; ++levels) {
    std::uint32_t steps = 0;
    for (std::uint32_t p = 0; p <= levels; ++p) {
      const LargestTile tile(grid, levels - p);
      const Refinement r(grid.kind, tile.planes, tile.rows, tile.columns);
      steps +=
          p != 0 ? (r.classes() - 1) * r.steps() : make_layout(grid.kind, tile.planes, tile.rows, tile.columns).steps();
    }
    most = std::max(most, steps);
  }
  return most;
}

// Adds what the tiles of a grid need to what those of an order do.
void add_grid(const AdaptiveGrid& grid, std::size_t value_bytes, EncodeOrder& order) {
  order.tiles = std::max(order.tiles, static_cast<std::uint32_t>(grid.tiles()));
  make_room(grid, order.scratch, order.plane_floats);
  order.records.cells = std::max(order.records.cells, LargestTile(grid, 0).cells());
  order.records.steps = std::max(order.records.steps, most_record_steps(grid));
  order.records.value_words = static_cast<std::uint32_t>(value_bytes / 4);
  order.tile_words = 3 * std::size_t{order.records.cells} + 64;
}

// Adds the most samples of each kind that a part with this grid has.
void add_samples(const AdaptiveGrid& grid, bool fast, SampleMemorySizes& most) {
  const SampleSizes sizes(grid);
  const std::uint32_t sampled = sizes.sampled_tiles(fast);
  for (const bool refining : {false, true})
    for (std::uint32_t log2 = 0; log2 <= kTriedLevels; ++log2) {
      const std::size_t samples =
          std::size_t{sampled} * most_samples(grid, sizes.crop, refining, log2,
                                              sizes.every_sample(sampled, share_of_pass(grid.kind, refining, log2)));
      most.samples = std::max(most.samples, samples);
    }
  const auto add_contexts = [&](std::uint32_t trials, std::uint32_t tiles, double wanted) {
    std::size_t of_tile = 0;
    for (std::uint32_t log2 = 0; log2 <= kTriedLevels; ++log2)
      of_tile += most_context_samples(grid, sizes.crop, log2, sizes.every_context(tiles, wanted));
    most.contexts = std::max(most.contexts, trials * tiles * of_tile);
  };
  const std::uint32_t first = sizes.first_tried(grid), tried = std::max(first, sizes.tried());
  add_contexts(kMostComparedAgain, (tried + 1) / 2, sizes.wanted_in_trial(fast));
  add_contexts(1, (sizes.rated() + 1) / 2, sizes.wanted_in_trial(fast));
  add_contexts(1, sizes.finished_tiles(fast), sizes.wanted_at_end(fast));
  most.slot_bytes = std::max(most.samples * sizeof(Sample), most.contexts * sizeof(ContextSample));
}

}  // namespace

Status BatchAxes::find(const Shape& shape, std::uint64_t count, const CudaEncodeBatch& batch,
                       const AdaptiveEncoders& encoders) {
  grids_ = make_part_grids(shape, count);
  parts_ = grids_.parts();
  if (grids_.own.kind != TileKind::line) {
    orders_ = grids_.across.across ? 2 : 1;
    return kOk;
  }
  if (count / grids_.own.stride < kLeastFoldLine) return kOk;
  const auto stream = static_cast<cudaStream_t>(batch.stream);
  FoldJob job = {grids_.own, static_cast<const std::uint8_t*>(batch.values),   batch.value_stride,
                 parts_,     static_cast<std::uint32_t>(batch.count * parts_), nullptr,
                 nullptr};
  const std::uint32_t blocks = std::min(job.count, kFoldBlocks);
  Workspace workspace(stream);
  PYF_TRY(allocate_arrays(workspace, [&](Arrays& arrays) {
    arrays.add(job.spaces, blocks);
    arrays.add(job.folds, job.count);
  }));
  PYF_TRY(check(encoders.find_folds(job, blocks, stream), "launch of the kernel that finds folds"));
  PYF_TRY(fetch(job.folds, job.count, folds_, stream));
  const bool any = std::any_of(folds_.begin(), folds_.end(), [](const Folds& folds) { return folds.count != 0; });
  if (any)
    orders_ = kOrders;
  else
    folds_.clear();
  return kOk;
}

AdaptiveGrid BatchAxes::grid_of(std::uint32_t order, std::size_t part) const {
  const auto component = static_cast<std::uint32_t>(part % parts_);
  if (order == 0) return grids_.to_encode({}, component);
  if (folds_.empty()) return grids_.to_encode({0, 1}, component);
  const Folds& folds = folds_[part];
  return order <= folds.count ? grids_.to_encode(folds.of[order - 1], component) : AdaptiveGrid{};
}

void BatchAxes::set_orders(std::size_t value_bytes, AdaptiveEncode& job) const {
  job.parts = parts_;
  job.orders = orders_;
  job.sample_sizes = {};
  for (std::uint32_t i = 0; i < orders_; ++i) {
    EncodeOrder& order = job.order[i];
    order = {};
    order.kind = i == 0 || folds_.empty() ? grids_.own.kind : i == 1 ? TileKind::plane : TileKind::volume;
    const std::size_t count = i == 0 || folds_.empty() ? 1 : folds_.size();
    for (std::size_t part = 0; part < count; ++part) {
      const AdaptiveGrid grid = grid_of(i, part);
      if (grid.values == 0) continue;
      add_grid(grid, value_bytes, order);
      add_samples(grid, job.choice.fast, job.sample_sizes);
    }
    job.most_tiles = std::max(job.most_tiles, order.tiles);
    job.record_bytes = std::max(job.record_bytes, order.tiles * order.records.bytes());
    job.part_words = std::max(job.part_words, order.tiles * order.tile_words);
    job.scratch_bytes = std::max(job.scratch_bytes, EncodeScratch::bytes(order.scratch) + order.records.bytes());
  }
  job.solving_sizes = {job.sample_sizes.samples, job.sample_sizes.contexts};
}

Status BatchAxes::upload(std::size_t first, std::size_t count, AdaptiveGrid* on_device, AdaptiveEncode& job,
                         cudaStream_t stream) {
  uploaded_.clear();
  for (std::uint32_t i = 0; i < orders_; ++i) {
    job.order[i].grids = on_device + uploaded_.size();
    for (std::size_t part = first * parts_; part < (first + count) * parts_; ++part)
      uploaded_.push_back(grid_of(i, part));
  }
  return check(cudaMemcpyAsync(on_device, uploaded_.data(), uploaded_.size() * sizeof(AdaptiveGrid),
                               cudaMemcpyHostToDevice, stream),
               "copy of the grids of parts");
}

}  // namespace pyfilter::cuda
