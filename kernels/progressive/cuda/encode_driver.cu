// SPDX-License-Identifier: BSD-3-Clause
// Encoding progressive frames on a device (progressive/cuda/driver.cuh): the sequence of kernels, their memory, and the
// CPU encoder for chunks that the kernels do not support.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <vector>

#include "core/api.hpp"
#include "core/cuda/memory.cuh"
#include "core/error_text.hpp"
#include "core/request.hpp"
#include "progressive/cuda/driver.cuh"
#include "progressive/cuda/launch.cuh"
#include "stages/cuda/chunk_plan.cuh"
#include "stages/cuda/header.cuh"
#include "stages/cuda/plans.cuh"

namespace pyfilter::cuda {
namespace {

// A reader's bytes for a grid; the coarsest grid is the same for all readers, and needs none.
std::size_t reader_grid_bytes(const ProgressiveLayout& layout, int level, std::size_t width) {
  return level < layout.levels ? Arrays::padded(layout.grids[level].count() * width) : 0;
}

// The memory of a frame's planes, reused when errors are measured. Two grids of a reader, used in turn, and bricks of
// errors replace the planes.
struct ReaderMemory {
  std::size_t reader_at[2] = {}, reader_bytes = 0, brick_bytes = 0, planes_bytes = 0;

  ReaderMemory(const ProgressivePlan& plan, std::size_t slot_bytes, std::size_t width, bool measured)
      : planes_bytes(slot_bytes) {
    const ProgressiveLayout& layout = plan.shared.layout;
    for (int i = 0; i < 2; ++i) {
      reader_at[i] = reader_bytes;
      reader_bytes += reader_grid_bytes(layout, i + 1, width);
    }
    if (layout.levels > 1 && has_wide_rows(layout, 0, width)) {
      const Extents g = layout.grids[1];
      brick_bytes = Arrays::padded(tiles_along(g.z, kBrickZ) * tiles_along(g.y, kBrickY) * tiles_along(g.x, kBrickX) *
                                   sizeof(std::uint64_t));
    }
    if (!measured) return;
    const std::size_t buffer_bytes = Arrays::padded(plan.buffers[0] * width) + Arrays::padded(plan.buffers[1] * width);
    planes_bytes = std::max(slot_bytes + buffer_bytes, reader_bytes + brick_bytes);
    // memory for all readers at once if that is not much more: 2-D arrays need some more, volumes none
    const std::size_t all =
        std::size_t{kMostMeasures} *
        (reader_bytes + brick_bytes + reader_grid_bytes(layout, 3, width) + reader_grid_bytes(layout, 4, width));
    if (all <= planes_bytes + planes_bytes / 2) planes_bytes = std::max(planes_bytes, all);
  }
};

// Arrays of a batch to encode that not all kernels use.
struct EncodeArrays {
  ProgressiveShared* shared;
  RangeKeys* ranges;
  ChunkPlan* plans;
};

std::size_t slot_bytes(const ProgressivePlan& plan, std::size_t width) {
  return std::size_t{plan.tiles} * kSlotValues * width;
}

void lay_out(FrameArrays& arrays, const ProgressivePlan& plan, std::size_t count, std::size_t width,
             const ReaderMemory& readers, ProgressiveEncode& job, EncodeArrays& own) {
  const ProgressiveLayout& layout = plan.shared.layout;
  std::uint64_t integers = 0;
  for (int level = 0; level <= layout.levels; ++level) {
    job.grid_at[level] = integers;
    integers += (layout.grids[level].count() + 31) / 32 * 32;
  }
  job.integers = integers;
  const auto units = static_cast<std::size_t>(layout.units), tiles = std::size_t{plan.tiles},
             pieces = static_cast<std::size_t>(most_pieces(width));
  arrays.add(own.shared, 1);
  arrays.add(job.heads, count);
  arrays.add(own.ranges, count);
  arrays.add(own.plans, count);
  arrays.add_each(job.notes, sizeof(EncodeNote));
  arrays.add_each(job.grids, integers * width);
  arrays.add_each(job.slots, slot_bytes(plan, width));
  arrays.add_each(job.largest, 4 * tiles * sizeof(std::uint64_t));
  arrays.add_each(job.planes, readers.planes_bytes);
  arrays.add_each(job.bytes, slot_bytes(plan, width));
  arrays.add_each(job.sizes, tiles * pieces * sizeof(std::uint32_t));
  arrays.add_each(job.locations, tiles * pieces * sizeof(std::uint64_t));
  arrays.add_each(job.segment_bytes, units * 64 * sizeof(std::uint64_t));
  arrays.add_each(job.segments, (units * pieces + 1) * sizeof(ProgressiveSegment));
  arrays.add_each(job.segment_locations, units * 64 * sizeof(SegmentLocation));
  arrays.add_each(job.states, std::size_t{kMostMeasures} * kMostUnits);
}

bool is_measured(const Request& request) { return request.parameters[0] == 0; }

// Encodes a chunk on the CPU, and copies its frame to the device.
Status encode_elsewhere(const Request& request, const CudaEncodeBatch& batch, std::size_t chunk, std::uint64_t count,
                        cudaStream_t stream) {
  const std::size_t bytes = count * dtype_bytes(request.dtype), most = max_frame_bytes(request);
  const std::unique_ptr<std::uint8_t[]> values(new (std::nothrow) std::uint8_t[bytes + 1]),
      frame(new (std::nothrow) std::uint8_t[most]);
  if (!values || !frame) return fail(Code::no_memory, "no memory for a chunk");
  const auto* const from = static_cast<const std::uint8_t*>(batch.values) + chunk * batch.value_stride;
  std::uint64_t size = 0;
  // copies from and to pageable memory wait for the stream
  if (bytes != 0)
    PYF_TRY(check(cudaMemcpyAsync(values.get(), from, bytes, cudaMemcpyDeviceToHost, stream), "copy of the values"));
  PYF_TRY(check(cudaStreamSynchronize(stream), "copy of the values"));
  std::size_t made = 0;
  PYF_TRY(encode_on_cpu(request, values.get(), bytes, frame.get(), most, &made));
  size = made;
  auto* const to = static_cast<std::uint8_t*>(batch.frames) + chunk * batch.frame_stride;
  PYF_TRY(check(cudaMemcpyAsync(to, frame.get(), made, cudaMemcpyHostToDevice, stream), "copy of the frame"));
  PYF_TRY(check(cudaMemcpyAsync(batch.frame_bytes + chunk, &size, sizeof size, cudaMemcpyHostToDevice, stream),
                "copy of the size"));
  return check(cudaStreamSynchronize(stream), "copy of the frame");
}

// Measures errors of arrays with short rows: all passes for each error in turn.
Status measure_by_passes(const ProgressiveKernels& kernels, const ProgressivePlan& plan, const ProgressiveEncode& job,
                         std::uint32_t most, cudaStream_t stream) {
  const int levels = plan.shared.layout.levels;
  const std::size_t width = static_cast<std::size_t>(job.width);
  std::uint8_t* const planes = job.planes.data;
  const PerFrame<std::uint8_t> buffers[2] = {{planes, job.planes.stride},
                                             {planes + Arrays::padded(plan.buffers[0] * width), job.planes.stride}};
  for (std::uint32_t m = 0; m < most; ++m) {
    MeasurePass pass = {};
    pass.job = job;
    pass.index = static_cast<int>(m);
    pass.in = {job.grids.data + job.grid_at[levels] * width, job.grids.stride};
    PYF_TRY(run_passes(plan, buffers, pass, [&](const MeasurePass& one, int axis, bool last) {
      return kernels.measure_pass(one, axis, last, stream);
    }));
  }
  return kOk;
}

// Sets the first bytes of each frame's grids to 0; one cudaMemset2D supports pitches up to 2 GiB.
Status clear(const ReaderGrids& grids, std::size_t bytes, std::size_t frames, cudaStream_t stream) {
  if (frames > 1 && grids.frame_stride <= std::size_t{INT32_MAX})
    return check(cudaMemset2DAsync(grids.data, grids.frame_stride, 0, bytes, frames, stream), "cudaMemset2DAsync");
  for (std::size_t i = 0; i < frames; ++i)
    PYF_TRY(check(cudaMemsetAsync(grids.data + i * grids.frame_stride, 0, bytes, stream), "cudaMemsetAsync"));
  return kOk;
}

// Measures errors of all other arrays: one launch for the passes of a level, or of three levels of lines. Small grids
// are computed for all readers at once, large ones for as many as memory allows.
Status measure_by_levels(const ProgressiveKernels& kernels, const ProgressiveLayout& layout,
                         const ProgressiveEncode& job, const ReaderMemory& own, std::uint32_t most,
                         cudaStream_t stream) {
  if (most == 0) return kOk;  // all errors are bounds
  const auto width = static_cast<std::size_t>(job.width), stride = job.planes.stride;
  const auto grid_bytes = [&](int level) { return reader_grid_bytes(layout, level, width); };
  int split = std::min(3, layout.levels);  // grids from this level on are small
  const bool line = is_line(layout, 0) && most * (grid_bytes(3) + grid_bytes(4)) <= own.planes_bytes;
  const std::size_t own_bytes = line ? 0 : own.reader_bytes + own.brick_bytes;
  while (!line && split < layout.levels && most * (grid_bytes(split) + grid_bytes(split + 1)) > own.planes_bytes / 8)
    ++split;
  const std::size_t small_bytes = grid_bytes(split) + grid_bytes(split + 1), all_small = most * small_bytes;
  const std::size_t at_once =
      own_bytes == 0 ? most : std::max<std::size_t>(1, (own.planes_bytes - all_small) / own_bytes);
  const auto groups = static_cast<std::uint32_t>((most + at_once - 1) / at_once),
             readers = (most + groups - 1) / groups;
  std::uint8_t *const small = job.planes.data, *const grids = small + all_small;

  MeasureLevel pass = {};
  pass.job = job;
  const auto levels = [&](int from, int to, auto&& out) {
    for (int level = from; level >= to; --level) {
      if (line && (level + 1 - to) % 3 == 0 && is_line(layout, level - 2)) {
        level -= 2;
        pass.out = out(level);
        const MeasureLine three = {job, level, {}, {}, pass.in, pass.out, pass.first, pass.readers, 0, 0};
        PYF_TRY(check(kernels.measure_line(three, layout, stream), "launch of the kernel for errors of lines"));
        pass.in = pass.out;
        continue;
      }
      pass.level = level;
      pass.from = layout.grids[level + 1];
      pass.to = layout.grids[level];
      units_of_level(layout, level, pass.unit);
      pass.out = out(level);
      PYF_TRY(check(kernels.measure(pass, layout, stream), "launch of the kernel for errors"));
      pass.in = pass.out;
    }
    return kOk;
  };
  pass.readers = most;
  pass.in = {job.grids.data + job.grid_at[layout.levels] * width, job.grids.stride, 0};
  PYF_TRY(levels(layout.levels - 1, split, [&](int level) {
    return ReaderGrids{small + ((level - split) % 2 == 0 ? 0 : grid_bytes(split)), stride, small_bytes};
  }));
  const ReaderGrids coarse = pass.in;
  for (pass.first = 0; pass.first < most; pass.first += pass.readers) {
    pass.readers = std::min(readers, most - pass.first);
    if (own.brick_bytes != 0 && !line) {
      pass.bricks = {grids + pass.readers * own.reader_bytes, stride, own.brick_bytes};
      PYF_TRY(clear(pass.bricks, pass.readers * own.brick_bytes, job.frame_count, stream));
    }
    pass.in = coarse;
    pass.in.data += pass.first * coarse.reader_stride;
    PYF_TRY(levels(split - 1, 0, [&](int level) {
      return ReaderGrids{grids + own.reader_at[(level + 1) % 2], stride, own.reader_bytes};
    }));
  }
  return kOk;
}

// The outcomes of chunks, and the number of errors to measure: the first words of their notes.
struct Begin {
  Outcome outcome;
  std::uint32_t measures;
};
static_assert(offsetof(EncodeNote, outcome) == 0 && offsetof(EncodeNote, measures) == 4);

Status read_outcomes(const ProgressiveEncode& job, std::vector<Begin>& begins, cudaStream_t stream) {
  PYF_TRY(check(cudaMemcpy2DAsync(begins.data(), sizeof(Begin), job.notes.data, job.notes.stride, sizeof(Begin),
                                  begins.size(), cudaMemcpyDeviceToHost, stream),
                "copy of the outcomes"));
  return check(cudaStreamSynchronize(stream), "encoding on the device");
}

// Memory for the special values of a batch; `job` refers to it.
class SpecialArrays {
 public:
  SpecialArrays(ProgressiveEncode& job, std::size_t frames, cudaStream_t stream) noexcept
      : job_(job), frames_(frames), workspace_(stream) {}
  Status allocate() noexcept {
    FrameArrays sizes(frames_);
    lay_out(sizes);
    job_.special.data = nullptr;
    PYF_TRY(workspace_.allocate(sizes.bytes()));
    FrameArrays arrays(frames_, workspace_.data());
    lay_out(arrays);
    return kOk;
  }

 private:
  void lay_out(FrameArrays& arrays) {
    const std::size_t word = sizeof(std::uint32_t), pieces = mask_pieces(job_.count);
    arrays.add_each(job_.special, (job_.integers / 32 + 1) * word);
    arrays.add_each(job_.missing, ((job_.count + 31) / 32 + kMaskPieceWords) * word);
    arrays.add_each(job_.special_pieces, pieces * sizeof(SpecialPiece));
    arrays.add_each(job_.mask_bits, pieces * kMaskWords * word);
  }

  ProgressiveEncode& job_;
  std::size_t frames_;
  Workspace workspace_;
};

// From the integers of a batch to its frames. If `job` has SpecialArrays: the frames of chunks with special values.
Status encode_integers(const ProgressiveKernels& kernels, const ProgressivePlan& plan, const FrameInfo& info,
                       const CudaEncodeBatch& batch, const ReaderMemory& readers, const ProgressiveEncode& job,
                       const EncodeArrays& own, std::vector<Begin>& begins) {
  const auto stream = static_cast<cudaStream_t>(batch.stream);
  const ProgressiveLayout& layout = plan.shared.layout;
  const auto units = static_cast<std::uint32_t>(layout.units);
  const bool special = job.special.data != nullptr;
  std::uint32_t most_tiles = 0;
  for (int u = 0; u < layout.units; ++u) most_tiles = std::max(most_tiles, layout.unit[u].tiles);
  PYF_TRY(
      check((special ? kernels.forward_specials : kernels.forward)(job, layout, stream), "launch of the transform"));
  PYF_TRY(check(count_planes(job, stream), "launch of the kernel for planes"));
  PYF_TRY(check(kernels.encode_planes(job, stream), "launch of the kernel for planes"));
  PYF_TRY(check(encode_tiles(job, units, most_tiles, stream), "launch of the encoder of tiles"));
  if (special) PYF_TRY(check(encode_specials(job, stream), "launch of the encoder of special values"));
  PYF_TRY(check(order_segments(job, units, stream), "launch of the order of segments"));
  PYF_TRY(read_outcomes(job, begins, stream));
  std::uint32_t most = 0;
  for (const Begin& begin : begins) most = std::max(most, begin.outcome == Outcome::progressive ? begin.measures : 0);
  PYF_TRY(measured_by_levels(layout, static_cast<std::size_t>(job.width))
              ? measure_by_levels(kernels, layout, job, readers, most, stream)
              : measure_by_passes(kernels, plan, job, most, stream));

  EncodeParams frame = {};
  frame.chunks = static_cast<std::uint32_t>(batch.count);
  frame.frames = static_cast<std::uint8_t*>(batch.frames);
  frame.frame_stride = batch.frame_stride;
  frame.frame_bytes = batch.frame_bytes;
  frame.plans = own.plans;
  frame.header_words = static_cast<std::uint32_t>(info.header_bytes / 4);
  frame.headers[0] = frame.headers[1] = header_template(info);
  fill_crc_powers(frame.crc_powers);
  return check(write_frames(job, units, most_tiles, frame, own.plans, stream), "launch of the kernels for segments");
}

// Encodes chunks that fit the memory together.
Status encode_part(const ProgressivePlan& plan, const Request& request, const CudaEncodeBatch& batch,
                   std::uint64_t count) {
  const auto stream = static_cast<cudaStream_t>(batch.stream);
  const ProgressiveKernels* const kernels = progressive_kernels(request.dtype);
  if (kernels == nullptr) return fail(Code::internal, "progressive has no CUDA kernel for this dtype");
  const ProgressiveLayout& layout = plan.shared.layout;
  const std::size_t width = dtype_bytes(request.dtype);
  const FrameInfo info = frame_template(request, request.codec, count);
  const ReaderMemory readers(plan, slot_bytes(plan, width), width, is_measured(request));
  ProgressiveEncode job = {};
  EncodeArrays own = {};
  FrameArrays sizes(batch.count);
  lay_out(sizes, plan, batch.count, width, readers, job, own);
  Workspace workspace(stream);
  PYF_TRY(workspace.allocate(sizes.bytes()));
  FrameArrays arrays(batch.count, workspace.data());
  lay_out(arrays, plan, batch.count, width, readers, job, own);
  PYF_TRY(check(cudaMemcpyAsync(own.shared, &plan.shared, sizeof plan.shared, cudaMemcpyHostToDevice, stream),
                "cudaMemcpyAsync"));
  PYF_TRY(check(cudaMemsetAsync(own.ranges, 0, batch.count * sizeof(RangeKeys), stream), "cudaMemsetAsync"));

  job.shared = own.shared;
  job.frame_count = static_cast<std::uint32_t>(batch.count);
  job.tiles = plan.tiles;
  job.width = static_cast<int>(width);
  job.pieces = most_pieces(width);
  job.measured = is_measured(request) && layout.units != 0;
  job.has_fill = request.has_fill;
  job.without_zeros = request.without_zeros;
  job.bound_mode = request.bound_mode;
  job.bound = request.bound;
  job.fill = request.fill;
  job.count = count;
  job.value_bytes = info.value_bytes;
  job.values = static_cast<const std::uint8_t*>(batch.values);
  job.value_stride = batch.value_stride;
  job.payloads = static_cast<std::uint8_t*>(batch.frames) + info.header_bytes;
  job.frame_stride = batch.frame_stride;

  std::vector<Begin> begins(batch.count);
  PYF_TRY(check(kernels->quantise(job, own.ranges, stream), "launch of the quantiser"));
  // whether chunks are likely to have special values, or are so many that a look costs nothing
  constexpr std::uint64_t kMany = std::uint64_t{64} << 20;
  bool ordinary = true;
  if (request.has_fill || batch.count * info.value_bytes >= kMany) {
    PYF_TRY(read_outcomes(job, begins, stream));
    ordinary = std::any_of(begins.begin(), begins.end(), [](const Begin& begin) {
      return begin.outcome == Outcome::progressive || begin.outcome == Outcome::raw;
    });
  }
  if (ordinary) PYF_TRY(encode_integers(*kernels, plan, info, batch, readers, job, own, begins));
  if (std::any_of(begins.begin(), begins.end(), [](const Begin& begin) { return begin.outcome == Outcome::special; })) {
    SpecialArrays special(job, batch.count, stream);
    PYF_TRY(special.allocate());
    std::vector<Begin> others(batch.count);
    PYF_TRY(check(kernels->quantise_specials(job, stream), "launch of the quantiser"));
    PYF_TRY(encode_integers(*kernels, plan, info, batch, readers, job, own, others));
  }
  for (std::size_t i = 0; i < batch.count; ++i)
    if (begins[i].outcome == Outcome::elsewhere) PYF_TRY(encode_elsewhere(request, batch, i, count, stream));
  return kOk;
}

}  // namespace

Status encode_progressive_chunks(const Request& request, const CudaEncodeBatch& batch, std::uint64_t count) {
  const auto stream = static_cast<cudaStream_t>(batch.stream);
  if (count == 0) {
    for (std::size_t i = 0; i < batch.count; ++i) PYF_TRY(encode_elsewhere(request, batch, i, count, stream));
    return kOk;
  }
  try {
    const ProgressivePlan plan(request.shape, 0);
    const std::size_t width = dtype_bytes(request.dtype);
    std::uint64_t memory = 0;
    PYF_TRY(device_memory(&memory));
    const bool measured = is_measured(request);
    const ReaderMemory readers(plan, slot_bytes(plan, width), width, measured);
    const auto bytes_of = [&](std::size_t count) {
      ProgressiveEncode job = {};
      EncodeArrays own = {};
      FrameArrays sizes(count);
      lay_out(sizes, plan, count, width, readers, job, own);
      return sizes.bytes();
    };
    const std::size_t each = bytes_of(2) - bytes_of(1);
    const std::size_t most = std::clamp<std::size_t>(memory / kFramesPart / each, 1, kMostFrames);
    for (std::size_t first = 0; first < batch.count; first += most) {
      const std::size_t here = std::min(most, batch.count - first);
      PYF_TRY(encode_part(plan, request, slice(batch, first, here), count));
    }
    return kOk;
  } catch (const std::bad_alloc&) {
    return fail(Code::no_memory, "no memory for a batch of %zu chunks", batch.count);
  }
}

}  // namespace pyfilter::cuda
