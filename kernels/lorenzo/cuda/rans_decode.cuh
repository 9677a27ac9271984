// SPDX-License-Identifier: BSD-3-Clause
// Frames of chains to values: a warp decodes a round of a group's rans stream to rows of shared memory, and takes the
// runs of its tiles from there (decode.cuh). Other tile shapes have kernels apart (rans_residuals.cuh).
#pragma once

#include <cstdint>

#include "lorenzo/cuda/decode.cuh"
#include "lorenzo/cuda/rans_blocks.cuh"
#include "lorenzo/cuda/rans_rounds.cuh"
#include "lorenzo/cuda/warp_sums.cuh"

namespace pyfilter::cuda {

// A lane's row in shared memory, as a sink of decode_round().
template <class Code>
struct RowSink {
  uint4* row;

  __device__ __forceinline__ void take_small(int four, std::uint32_t a, std::uint32_t b, std::uint32_t c,
                                             std::uint32_t d) {
    take(four, true, static_cast<Code>(a), static_cast<Code>(b), static_cast<Code>(c), static_cast<Code>(d));
  }
  __device__ __forceinline__ void take(int four, bool, Code a, Code b, Code c, Code d) {
    constexpr int kPieces = sizeof(Code) / 4;
    alignas(16) const Code done[4] = {a, b, c, d};
#pragma unroll
    for (int p = 0; p < kPieces; ++p) row[four * kPieces + p] = reinterpret_cast<const uint4*>(done)[p];
  }
};

// Residuals of a group's tiles, run by run, from its rans stream. The residuals of a round wait in the warp's row
// memory.
template <class Map>
struct RansSource {
  using Code = typename Map::Code;
  using Value = typename Map::Value;
  static constexpr bool kHeadFlags = false, kRows = true, kNarrow = false;
  using Tables = RansTables;
  struct Parked {  // a copy of this lane's row, in local memory rather than registers
    uint4 pieces[2 * sizeof(Code)];
    __device__ __forceinline__ void take(const std::uint8_t* row) {
#pragma unroll 4
      for (unsigned i = 0; i < sizeof pieces / 16; ++i) pieces[i] = reinterpret_cast<const uint4*>(row)[i];
    }
    __device__ __forceinline__ void give(std::uint8_t* row) const {
#pragma unroll 4
      for (unsigned i = 0; i < sizeof pieces / 16; ++i) reinterpret_cast<uint4*>(row)[i] = pieces[i];
    }
  };
  struct WarpSpace {
    std::uint16_t* ring;       // kRingBytes, aligned to their number
    std::uint8_t* rows;        // rows of 32 blocks
    const std::uint8_t* zero;  // one row of zeros
  };

  const WarpSpace& space;
  RansStream stream;
  std::uint32_t taken;           // blocks of the rounds so far
  bool waiting, failed = false;  // waiting: rows of the next run are decoded

  // `bytes`: the group behind its head.
  __device__ __forceinline__ RansSource(const Tables& t, const WarpSpace& given, const std::uint8_t* bytes,
                                        const OpenedStream& opened)
      : space(given), stream(t, bytes, opened, given.ring) {}

  __device__ __forceinline__ void read_flags(const std::uint32_t (&present)[4], std::uint32_t (&coded)[4]) {
    stream.read_flags(present, coded);
  }
  __device__ __forceinline__ Fault begin_tile(std::uint32_t) {
    waiting = false;
    taken = 0;
    return Fault::none;
  }
  // Delivers the residuals of a run with coded blocks; other blocks get 0. `before`: coded blocks of earlier runs.
  __device__ __forceinline__ void take_run(std::uint32_t before, std::uint32_t bits, std::uint32_t count,
                                           Parked& parked, Code (&y)[32]) {
    const unsigned lane = threadIdx.x % 32;
    const bool has = (bits >> lane & 1) != 0;
    const std::uint32_t own = before + static_cast<std::uint32_t>(__popc(static_cast<int>(bits & ((1u << lane) - 1)))),
                        behind = before + static_cast<std::uint32_t>(__popc(static_cast<int>(bits)));
    const bool both = before < taken && behind > taken;  // the run needs rows of two rounds, but the memory holds one
    const bool early = both && has && own < taken;
    if (early) parked.take(run_row<Value>(space.rows, own));
    __syncwarp();
    if (behind > taken) {
      RowSink<Code> sink{reinterpret_cast<uint4*>(run_row<Value>(space.rows, lane))};
      failed = stream.decode_round<Code, kChain>(taken + lane < count, sink) || failed;
      taken += 32;
      __syncwarp();
    }
    read_row_at(has && !early ? run_row<Value>(space.rows, own) : space.zero, y);
    if (early) {
#pragma unroll
      for (unsigned i = 0; i < sizeof y / 16; ++i) reinterpret_cast<uint4*>(y)[i] = parked.pieces[i];
    }
    __syncwarp();
    waiting = taken > behind && count > behind;
  }
  // Called while the row memory is used for other rows.
  __device__ __forceinline__ void park_rows(Parked& parked) const {
    if (!waiting) return;
    parked.take(run_row<Value>(space.rows, threadIdx.x % 32));
    __syncwarp();
  }
  __device__ __forceinline__ void restore_rows(const Parked& parked) const {
    if (!waiting) return;
    parked.give(run_row<Value>(space.rows, threadIdx.x % 32));
    __syncwarp();
  }
  __device__ __forceinline__ bool ends(const std::uint8_t* end, std::uint32_t coder) const {
    return stream.ends(end, coder == kRansFull, failed);
  }
};

// Shared memory behind the frame: a row of zeros, then the rows of a run for each warp.
template <class Map>
inline constexpr std::size_t kRansZeroBytes = 32 * sizeof(typename Map::Value);
// Warps of a thread block, the only block of its multiprocessor: as many as registers and shared memory allow.
template <class Map>
inline constexpr int kRansWarps = sizeof(typename Map::Code) == 8 ? 16 : 32;

// Each frame has thread blocks of its own (the y dimension).
template <class Map>
__global__ void __launch_bounds__(32 * kRansWarps<Map>, 1)
    rans_decode_kernel(const __grid_constant__ StreamDecodeParams job) {
  using Source = RansSource<Map>;
  extern __shared__ __align__(1024) uint4 shared_memory[];
  const RansShare share(shared_memory);
  const unsigned warp = threadIdx.x / 32;
  std::uint8_t* const zeros = share.behind_frame();
  constexpr std::size_t kZeros = kRansZeroBytes<Map>;
  typename Source::WarpSpace space = {share.ring(warp), zeros + kZeros + warp * kRunBytes<typename Map::Value>, zeros};
  for (unsigned i = threadIdx.x; i < kZeros / 4; i += blockDim.x) reinterpret_cast<std::uint32_t*>(zeros)[i] = 0;
  const BlockFrame& frame = open_frame(job, share);
  const Map map = decoding_map<Map>(frame.frame);
  for (std::uint32_t unit = frame.first_of_warp(); unit < frame.last; unit = frame.next_of_warp(unit))
    decode_unit<Map, kChain, Source>(job, frame.frame, frame.groups, map, frame.index, frame.table_bytes, false,
                                     frame.units, unit, frame.tables, space);
}

}  // namespace pyfilter::cuda
