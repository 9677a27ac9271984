// SPDX-License-Identifier: BSD-3-Clause
// The choice of a predictor for each chunk (stages/packed/choose.hpp) on the GPU. Thread blocks count the bits of
// sampled tiles, for all orders of a tile shape at once. Then a thread for each chunk takes the predictor with the
// fewest bits.
#pragma once

#include <cstdint>

#include "stages/bit_map.hpp"
#include "stages/cuda/launch.cuh"
#include "stages/cuda/packed/codes.cuh"
#include "stages/cuda/packed/planes.cuh"
#include "stages/cuda/packed/values.cuh"
#include "stages/logarithm.hpp"
#include "stages/packed/choose.hpp"
#include "stages/packed/sampled_code.hpp"
#include "stages/quantizing_map.hpp"

namespace pyfilter::cuda {

struct ChooseParams {
  Grid grids[kColumns + 1];  // by tile shape
  bool open[kCandidates];
  std::uint8_t shapes[4];  // tile shapes of open candidates
  std::uint32_t shape_count;
  bool aligned[kColumns + 1];  // by tile shape: whether every row of every chunk starts at a multiple of 16 bytes
  bool exceptions, pointwise;
  bool entropy;         // an entropy coder follows
  int asked;            // the request's predictor parameter
  std::uint64_t count;  // values of a chunk
  std::uint32_t first_chunk, chunks;
  const std::uint8_t* values;
  std::uint64_t value_stride;
  ChunkPlan* plans;
  unsigned long long* bits;  // kCandidates a chunk: costs
  Counters* counters;
  std::uint32_t* listed;  // chunks of each pass: `chunks` a pass, counters->packed_chunks of them valid
};

// A sampled tile: its values or codes, and the costs of its blocks by order.
template <int S, class T>
struct SampleSpace {
  alignas(16) std::uint8_t arena[kPackedArenaBytes<T>];
  Faces<S, typename FloatTraits<T>::Code> faces;
  TileBox box;
  std::uint32_t bits[4], narrowest[4], widest[4];  // in front of an entropy coder bits are sums of widths
  std::uint32_t nonzero[4], above_one[4], negative[4], blocks[4];
};

// Values in the arena -> codes, as sample_runs() on the CPU: runs are 32 positions of the tile's row order, a lane
// each. A value that is not ordinary takes the code of the last ordinary one before it in its run, or of the first, or
// 0.
template <int S, class T>
__device__ __noinline__ void sample_runs(const ChooseParams& job, const ChunkPlan& plan, std::uint8_t* arena) {
  using Tile = TileShape<S>;
  using Code = typename FloatTraits<T>::Code;
  const unsigned lane = threadIdx.x % 32;
#pragma unroll 1
  for (unsigned at = threadIdx.x; at < 4096; at += kThreads) {
    const unsigned x = at % Tile::kX, y = at / Tile::kX % Tile::kY, z = at / (Tile::kX * Tile::kY);
    std::uint8_t* const place = arena + arena_offset<S, T>(z, y, x);
    const T value = *reinterpret_cast<const T*>(place);
    Code q;
    const bool ordinary = job.pointwise ? sampled_code(plan.ready_as<LogQuantizer<T>>(), value, q)
                                        : sampled_code(plan.quantizer<T>(), value, q);
    const std::uint32_t plain = __ballot_sync(kAllLanes, ordinary ? 1 : 0);
    if (plain != kAllLanes) {  // the same for the whole warp
      const std::uint32_t before = plain & (kAllLanes >> (31 - lane));
      const int source = before != 0 ? 31 - __clz(static_cast<int>(before)) : __ffs(static_cast<int>(plain)) - 1;
      q = __shfl_sync(kAllLanes, q, source & 31);
      if (plain == 0) q = 0;
    }
    *reinterpret_cast<Code*>(place) = q;
  }
}

// The codes of this thread's block. Called by all threads.
template <int S, class T>
__device__ __forceinline__ void sample_codes(const ChooseParams& job, const ChunkPlan& plan, std::uint8_t* arena,
                                             typename FloatTraits<T>::Code (&q)[32]) {
  using Code = typename FloatTraits<T>::Code;
  T x[32];
  read_packed_row<S>(arena, x);
  if (plan.quantise == 0) {
#pragma unroll
    for (int i = 0; i < 32; ++i) q[i] = ExactMap<T>::encode_biased(std::bit_cast<Code>(x[i]));
    return;
  }
  bool ordinary = !job.pointwise;
  if (!job.pointwise) {
    const Quantizer<T>& p = plan.quantizer<T>();
#pragma unroll
    for (int i = 0; i < 32; ++i) ordinary = ordinary & sampled_code(p, x[i], q[i]);
  }
  if (__syncthreads_or(ordinary ? 0 : 1) == 0) return;
  sample_runs<S, T>(job, plan, arena);
  __syncthreads();
  read_packed_row<S>(arena, q);
}

// width_notes() of differences of any size, which few blocks have.
template <class Code>
__device__ __noinline__ std::uint32_t notes_of_large(const Code (&d)[32]) {
  return width_notes(d);
}

// Adds the cost of this thread's block of differences to those of an order.
template <int S, bool kEntropy, class Code, class Space>
__device__ __forceinline__ void add_block_cost(const ChooseParams& job, bool present, int order, const Code (&d)[32],
                                               Space& space) {
  // the tile's first code costs nothing
  const auto difference = [&](int i) -> Code { return i == 0 && threadIdx.x == 0 ? 0 : d[i]; };
  if constexpr (kEntropy) {
    constexpr std::uint32_t kBase = kSmallWidthBase;
    Code any = 0;
    std::uint32_t widths = 0, nonzero = 0, counted = 0, negative = 0;  // counted: ones, and twice those above
#pragma unroll
    for (int i = 0; i < 32; ++i) {
      const Code one = difference(i), magnitude = magnitude_of(one);
      const std::uint32_t width = small_coded_width(static_cast<std::uint32_t>(magnitude));
      any |= magnitude;
      widths += width;
      nonzero += min(width, kBase + 1);
      counted += min(width, kBase + 2);
      negative += static_cast<std::uint32_t>(one >> (8 * sizeof(Code) - 1));
    }
    std::uint32_t notes;
    if (__any_sync(kAllLanes, any >> kSmallWidthBits != 0)) {
      Code copy[32];  // in memory: registers are for the usual case
#pragma unroll
      for (int i = 0; i < 32; ++i) copy[i] = difference(i);
      notes = notes_of_large(copy);
    } else {
      notes = widths - 32 * kBase + ((nonzero - 32 * kBase) << kNonzeroAt) + ((counted - nonzero) << kAboveOneAt) +
              (negative << kNegativeAt);
    }
    CodedSums sums;
    sums.add(present ? notes : 0);
    // 32 lanes have at most 1024 differences
    const std::uint32_t all = warp_sum(sums.widths | sums.negative << 16),
                        counts = warp_sum(sums.nonzero | sums.above_one << 11 | sums.blocks << 22);
    if (threadIdx.x % 32 != 0) return;
    atomicAdd(&space.bits[order], all & 0xFFFF);
    atomicAdd(&space.negative[order], all >> 16);
    atomicAdd(&space.nonzero[order], counts & 2047);
    atomicAdd(&space.above_one[order], counts >> 11 & 2047);
    atomicAdd(&space.blocks[order], counts >> 22);
  } else {
    Code first = 0, second = 0;
#pragma unroll
    for (int i = 0; i < 32; ++i) {
      const Code residual = zigzag(difference(i));
      second = max(second, min(first, residual));
      first = max(first, residual);
    }
    const std::uint32_t cost = present ? block_cost(first, second, job.exceptions) : 0, bits = warp_sum(cost),
                        widest = warp_max_u(cost / 32), narrowest = warp_min(present ? cost / 32 : 255);
    if (threadIdx.x % 32 != 0) return;
    atomicAdd(&space.bits[order], bits);
    atomicMin(&space.narrowest[order], narrowest);
    atomicMax(&space.widest[order], widest);
  }
}

// Counts the bits of a tile for every order of its shape.
template <int S, class T, bool kEntropy>
__device__ void sample_tile(const ChooseParams& job, std::uint32_t chunk, SampleSpace<S, T>& space) {
  using Code = typename FloatTraits<T>::Code;
  const Grid& grid = job.grids[S];
  const ChunkPlan& plan = job.plans[chunk];
  if (threadIdx.x == 0) space.box = tile_box_of_value<S>(grid, sampled_value(job.count, blockIdx.x));
  if (threadIdx.x < 4) {
    space.bits[threadIdx.x] = space.widest[threadIdx.x] = 0;
    space.nonzero[threadIdx.x] = space.above_one[threadIdx.x] = 0;
    space.negative[threadIdx.x] = space.blocks[threadIdx.x] = 0;
    space.narrowest[threadIdx.x] = 255;
  }
  __syncthreads();
  const TileBox box = space.box;
  load_packed<S, T>(grid, job.values + chunk * job.value_stride, box, is_whole<S>(box) && job.aligned[S], space.arena);
  __syncthreads();
  const bool present = is_present<S>(box, threadIdx.x);
  Code d[32];
  sample_codes<S, T>(job, plan, space.arena, d);
  const auto add = [&](int order) { add_block_cost<S, kEntropy>(job, present, order, d, space); };
  if constexpr (S == kChain) add(0);
  show_face<S>(d, space.faces);
  const Code last = difference_block<S>(d, true);
  __syncthreads();
  packed_differences<S>(1, last, d, space.faces);
  add(1);
  if constexpr (S == kPlane || S == kVolume) {
    raise_order<S, 2>(d);
    add(2);
  }
  if constexpr (S == kVolume) {
    raise_order<S, 3>(d);
    add(3);
  }
  __syncthreads();
  const unsigned order = threadIdx.x;
  if (order >= 4) return;
  unsigned candidate = kCandidates;
  for (unsigned c = 0; c < kCandidates; ++c) {
    const Predictor p = predictor_at(static_cast<int>(c));
    candidate = p.tile_shape == S && p.order == order && job.open[c] ? c : candidate;
  }
  if (candidate == kCandidates) return;
  const std::uint32_t inside = box.inz * box.iny * box.inx, bits = space.bits[order];
  const CodedSums sums = {space.blocks[order], bits, space.nonzero[order], space.above_one[order],
                          space.negative[order]};
  const std::uint64_t cost =
      kEntropy ? sums.cost(inside) : tile_cost(bits, space.narrowest[order], space.widest[order], inside);
  atomicAdd(&job.bits[std::size_t{chunk} * kCandidates + candidate], static_cast<unsigned long long>(cost));
}

template <class T>
union SampleSpaces {
  SampleSpace<kChain, T> chain;
  SampleSpace<kPlane, T> plane;
  SampleSpace<kVolume, T> volume;
  SampleSpace<kColumns, T> columns;
};

// Grid dimensions: samples, tile shapes, chunks.
template <class T, bool kEntropy>
__global__ void __launch_bounds__(kThreads, sizeof(T) == 4 ? 6 : 3)
    sample_kernel(const __grid_constant__ ChooseParams job) {
  __shared__ SampleSpaces<T> space;
  const std::uint32_t chunk = job.first_chunk + blockIdx.z;
  if (job.plans[chunk].predictor == kNoPredictor) return;
  switch (job.shapes[blockIdx.y]) {
    case kChain:
      return sample_tile<kChain, T, kEntropy>(job, chunk, space.chain);
    case kPlane:
      return sample_tile<kPlane, T, kEntropy>(job, chunk, space.plane);
    case kVolume:
      return sample_tile<kVolume, T, kEntropy>(job, chunk, space.volume);
    default:
      return sample_tile<kColumns, T, kEntropy>(job, chunk, space.columns);
  }
}

// The encoder's pass over packed tiles: one for each tile shape, quantised and bit-exact.
constexpr KFN std::uint32_t packed_pass(std::uint32_t tile_shape, bool exact) {
  return tile_shape - 1 + (exact ? 4 : 0);
}

// Launches the sampling kernel, if more than one candidate is open; then the choice. `bits` must be zero.
cudaError_t sample_predictors(Dtype dtype, const ChooseParams& params, cudaStream_t stream);
cudaError_t choose_predictors(Dtype dtype, const ChooseParams& params, cudaStream_t stream);

}  // namespace pyfilter::cuda
