// SPDX-License-Identifier: BSD-3-Clause
// The choice of a predictor for each chunk (stages/packed/choose.hpp) on the GPU. Thread blocks count the bits of
// sampled tiles for every order of a tile shape. Then a thread for each chunk takes the predictor with the fewest bits.
#pragma once

#include <cstdint>

#include "stages/bit_map.hpp"
#include "stages/cuda/launch.cuh"
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
  bool exceptions, pointwise;
  bool entropy;         // an entropy coder follows
  int asked;            // the request's predictor parameter
  std::uint64_t count;  // values of a chunk
  std::uint32_t first_chunk, chunks;
  const std::uint8_t* values;
  std::uint64_t value_stride;
  ChunkPlan* plans;
  unsigned long long* bits;  // kCandidates a chunk
  Counters* counters;
};

template <class Code>
struct ChooseSpace {
  Code codes[4096];  // at shared_place() of their positions in the tile's row order
  std::uint32_t bits, narrowest, widest;
};

// The index of a position's code. Each row of 32 banks is permuted by its number, so that threads that work on
// different blocks of a tile seldom use the same bank.
__device__ __forceinline__ unsigned shared_place(unsigned at) { return at ^ (at >> 5 & 31); }

// sample_codes() of choose_cpu.hpp: a warp takes a run of 32 positions at a time. A value that is not ordinary takes
// the code of the last ordinary one before it in its run, or of the first, or 0. Called by all threads.
template <int S, class T>
__device__ void sample_runs(const ChooseParams& job, const ChunkPlan& plan, const T* values, const TileBox& box,
                            typename FloatTraits<T>::Code* codes) {
  using Tile = TileShape<S>;
  using Code = typename FloatTraits<T>::Code;
  const bool quantises = plan.quantise != 0;
  const unsigned lane = threadIdx.x % 32;
#pragma unroll 1
  for (unsigned at = threadIdx.x; at < 4096; at += kThreads) {
    const unsigned x = at % Tile::kX, y = at / Tile::kX % Tile::kY, z = at / (Tile::kX * Tile::kY);
    const T value = values[clamped_index<S>(job.grids[S], box, z, y, x)];
    if (!quantises) {
      codes[shared_place(at)] = ExactMap<T>::encode_biased(std::bit_cast<Code>(value));
      continue;
    }
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
    codes[shared_place(at)] = q;
  }
}

// The difference at a position, as stages/packed/differences.hpp computes it.
template <int S, class Code>
__device__ Code sample_difference(const Code* q, int order, unsigned z, unsigned y, unsigned x) {
  using Tile = TileShape<S>;
  constexpr unsigned kX = Tile::kX, kSlab = Tile::kX * Tile::kY;
  const unsigned at = z * kSlab + y * kX + x;
  const auto code = [&](unsigned i) { return q[shared_place(i)]; };
  if constexpr (S == kColumns) {
    if (y > 0) return code(at) - code(at - kX);
    return x > 0 ? code(at) - code(at - 1) : code(at);
  } else {
    if (S == kChain && order == 0) return at > 0 ? code(at) : 0;
    const auto along_x = [&](unsigned i) { return static_cast<Code>(x > 0 ? code(i) - code(i - 1) : code(i)); };
    const bool takes_y = y > 0 && (order >= 2 || x == 0);
    const auto along_y = [&](unsigned i) {
      return static_cast<Code>(takes_y ? along_x(i) - along_x(i - kX) : along_x(i));
    };
    const bool takes_z = z > 0 && (order >= 3 || (x == 0 && y == 0));
    return takes_z ? along_y(at) - along_y(at - kSlab) : along_y(at);
  }
}

template <int S, class T>
__device__ void sample_tile(const ChooseParams& job, std::uint32_t chunk, int candidate, int order,
                            ChooseSpace<typename FloatTraits<T>::Code>& space) {
  using Tile = TileShape<S>;
  using Code = typename FloatTraits<T>::Code;
  const auto* values = reinterpret_cast<const T*>(job.values + chunk * job.value_stride);
  const Grid& grid = job.grids[S];
  const TileBox box = tile_box<S>(grid, tile_of_value<S>(grid, sampled_value(job.count, blockIdx.x)));
  sample_runs<S>(job, job.plans[chunk], values, box, space.codes);
  if (threadIdx.x == 0) {
    space.bits = 0;
    space.narrowest = 255;
    space.widest = 0;
  }
  __syncthreads();
  const unsigned b = threadIdx.x;
  Code first = 0, second = 0;
  std::uint32_t coded_bits = 0;  // coded_cost() of choose_cpu.hpp
#pragma unroll 1
  for (unsigned step = 0; step < 32; ++step) {
    const unsigned i = (step + b) % 32;  // the threads of a warp start at different places: they use different banks
    const unsigned x = Tile::block_x(b) + i % Tile::kBlockX, y = Tile::block_y(b) + i / Tile::kBlockX % Tile::kBlockY,
                   z = Tile::block_z(b) + i / (Tile::kBlockX * Tile::kBlockY);
    const Code d = sample_difference<S>(space.codes, order, z, y, x);
    const Code residual = x + y + z == 0 ? 0 : zigzag(d);
    second = max(second, min(first, residual));
    first = max(first, residual);
    coded_bits += coded_width(residual);
  }
  if (is_present<S>(box, b) && job.entropy) {
    atomicAdd(&space.bits, coded_block_cost(coded_bits));
  } else if (is_present<S>(box, b)) {
    const std::uint32_t cost = block_cost(first, second, job.exceptions);
    atomicAdd(&space.bits, cost);
    atomicMin(&space.narrowest, cost / 32);
    atomicMax(&space.widest, cost / 32);
  }
  __syncthreads();
  if (threadIdx.x != 0) return;
  const std::uint32_t inside = box.inz * box.iny * box.inx;
  const std::uint64_t cost = job.entropy ? std::uint64_t{space.bits} * 4096 / inside
                                         : tile_cost(space.bits, space.narrowest, space.widest, inside);
  atomicAdd(&job.bits[std::size_t{chunk} * kCandidates + static_cast<unsigned>(candidate)],
            static_cast<unsigned long long>(cost));
}

// Grid dimensions: samples, candidates, chunks.
template <class T>
__global__ void __launch_bounds__(kThreads) sample_kernel(const __grid_constant__ ChooseParams job) {
  __shared__ ChooseSpace<typename FloatTraits<T>::Code> space;
  const std::uint32_t chunk = job.first_chunk + blockIdx.z;
  const auto candidate = static_cast<int>(blockIdx.y);
  if (!job.open[candidate] || job.plans[chunk].predictor == kNoPredictor) return;
  const Predictor p = predictor_at(candidate);
  switch (p.tile_shape) {
    case kChain:
      return sample_tile<kChain, T>(job, chunk, candidate, p.order, space);
    case kPlane:
      return sample_tile<kPlane, T>(job, chunk, candidate, p.order, space);
    case kVolume:
      return sample_tile<kVolume, T>(job, chunk, candidate, p.order, space);
    default:
      return sample_tile<kColumns, T>(job, chunk, candidate, p.order, space);
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
