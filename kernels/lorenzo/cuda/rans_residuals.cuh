// SPDX-License-Identifier: BSD-3-Clause
// Rans streams of planes, volumes and columns to residuals in memory: a warp for each group, round by round. A later
// kernel makes values of them (residual_values.cuh), so that a warp here needs few registers and little shared memory,
// and many warps run at a time.
#pragma once

#include <cstddef>
#include <cstdint>

#include "lorenzo/cuda/decode.cuh"
#include "lorenzo/cuda/rans_blocks.cuh"
#include "lorenzo/cuda/rans_rounds.cuh"
#include "stages/cuda/loaded.cuh"
#include "stages/cuda/tile_decode.cuh"

namespace pyfilter::cuda {

// The slot of a launch's tile.
__device__ __forceinline__ std::size_t residual_slot_of(const StreamDecodeParams& job, std::uint32_t frame,
                                                        std::uint32_t tile) {
  return std::size_t{frame - job.first_frame} * residual_slots(job.base) +
         (tile - (job.base.first_tile - tiles_before(job.base)));
}

// A tile's slot: where the fours of a lane's block are. TileResiduals says which are stored how.
template <class Code>
struct ResidualSlot {
  std::uint8_t* at;

  __device__ __forceinline__ ResidualSlot(const StreamDecodeParams& job, std::size_t slot)
      : at(job.residuals + slot * residual_bytes_of_tile(sizeof(Code))) {}
  // Of the round's first four; the others follow, 32 words apart.
  __device__ __forceinline__ std::uint32_t* bytes(std::uint32_t round, std::uint32_t lane) const {
    return reinterpret_cast<std::uint32_t*>(at) + 256 * round + lane;
  }
  __device__ __forceinline__ uint2* halves(std::uint32_t round, std::uint32_t four, std::uint32_t lane) const {
    return reinterpret_cast<uint2*>(larger(round, four)) + lane;
  }
  __device__ __forceinline__ uint4* codes(std::uint32_t round, std::uint32_t four, std::uint32_t lane) const {
    return reinterpret_cast<uint4*>(larger(round, four)) + lane * (sizeof(Code) / 4);
  }

 private:
  __device__ __forceinline__ std::uint8_t* larger(std::uint32_t round, std::uint32_t four) const {
    return at + 4096 + (8 * round + four) * (32 * 4 * sizeof(Code));
  }
};
template <class Code>
__device__ __forceinline__ void read_halves(const uint2& halves, Code& a, Code& b, Code& c, Code& d) {
  a = halves.x & 0xFFFF;
  b = halves.x >> 16;
  c = halves.y & 0xFFFF;
  d = halves.y >> 16;
}

// The fours of a round, one after the other, as a sink of decode_round().
template <class Code>
struct ResidualSink {
  static constexpr int kPieces = sizeof(Code) / 4;
  const ResidualSlot<Code> slot;
  std::uint32_t round;
  std::uint32_t* next;                  // for this lane's next four, in bytes
  std::uint32_t halves = 0, codes = 0;  // fours that are stored so
  Code first = 0;                       // the round's first residual

  __device__ __forceinline__ ResidualSink(const ResidualSlot<Code>& slot_, std::uint32_t round_)
      : slot(slot_), round(round_), next(slot_.bytes(round_, threadIdx.x % 32)) {}
  __device__ __forceinline__ void take_small(int four, std::uint32_t a, std::uint32_t b, std::uint32_t c,
                                             std::uint32_t d) {
    if (four == 0) first = a;
    *next = bytes_of(a, b, c, d);
    next += 32;
  }
  __device__ __forceinline__ void take(int four, bool active, Code a, Code b, Code c, Code d) {
    if (!__any_sync(kAllLanes, active && (a | b | c | d) >> 8 != 0)) {
      take_small(four, static_cast<std::uint32_t>(a), static_cast<std::uint32_t>(b), static_cast<std::uint32_t>(c),
                 static_cast<std::uint32_t>(d));
      return;
    }
    if (four == 0) first = a;
    next += 32;
    if (!__any_sync(kAllLanes, active && (a | b | c | d) >> 16 != 0)) {
      halves |= 1u << four;
      *slot.halves(round, rare(four), threadIdx.x % 32) = {
          static_cast<std::uint32_t>(a) | static_cast<std::uint32_t>(b) << 16,
          static_cast<std::uint32_t>(c) | static_cast<std::uint32_t>(d) << 16};
      return;
    }
    codes |= 1u << four;
    alignas(16) const Code done[4] = {a, b, c, d};
    uint4* const to = slot.codes(round, rare(four), threadIdx.x % 32);
#pragma unroll
    for (int p = 0; p < kPieces; ++p) to[p] = reinterpret_cast<const uint4*>(done)[p];
  }
  __device__ __forceinline__ bool is_small(int four) const { return ((halves | codes) >> four & 1) == 0; }
  // A four that is not small, each residual at most kLevelCap.
  __device__ __forceinline__ void give(int four, std::uint32_t& a, std::uint32_t& b, std::uint32_t& c,
                                       std::uint32_t& d) const {
    if ((halves >> four & 1) != 0) return read_halves(*slot.halves(round, rare(four), threadIdx.x % 32), a, b, c, d);
    alignas(16) Code done[4];
    const uint4* const from = slot.codes(round, rare(four), threadIdx.x % 32);
#pragma unroll
    for (int p = 0; p < kPieces; ++p) reinterpret_cast<uint4*>(done)[p] = from[p];
    a = capped(done[0]);
    b = capped(done[1]);
    c = capped(done[2]);
    d = capped(done[3]);
  }

 private:
  // The compiler would find the address of halves and codes for each four; it cannot before it knows this number.
  __device__ __forceinline__ static std::uint32_t rare(int four) {
    auto number = static_cast<std::uint32_t>(four);
    use_from_here(number);
    return number;
  }
};

// The group that a warp decodes, in shared memory: registers are needed for steps.
struct SharedGroup {
  OpenedGroup group;
  GroupTileParts tiles[kMostGroupTiles];
};

template <class Code, int S>
__device__ __forceinline__ Fault decode_residuals(const StreamDecodeParams& job, const BlockFrame& frame,
                                                  const SharedGroup& shared, const std::uint16_t* ring) {
  const OpenedGroup& group = shared.group;
  if (group.fault != Fault::none) return group.fault;
  const unsigned lane = threadIdx.x % 32;
  const DecodeParams& base = job.base;
  const OpenedStream opened = open_rans<S>(base, frame.frame, group, shared.tiles[lane]);
  if (opened.fault != Fault::none) return opened.fault;
  RansStream stream(frame.tables, group.bytes + group.rest, opened, ring);
  bool failed = false;
  Code code = 0;
#pragma unroll 1
  for (std::uint32_t i = 0; i < group.span.count; ++i) {
    const std::uint32_t tile = static_cast<std::uint32_t>(group.span.first) + i;
    if (tile >= base.first_tile + base.tile_count) return Fault::none;  // later tiles are not needed
    const std::size_t slot = residual_slot_of(job, group.frame, tile);
    TileResiduals& out = job.residual_tiles[slot];
    const TileBlocks blocks =
        blocks_of_tile<S, false>(job, group, shared.tiles[i], tile, box_of<S>(base.grid, tile), tile >= base.first_tile,
                                 [&](const auto& present, auto& coded) { stream.read_flags(present, coded); });
    if (blocks.fault != Fault::none) return blocks.fault;
    const std::uint32_t count = blocks.count();
    std::uint32_t halves = 0, codes = 0;
    if (lane == 0) {
#pragma unroll
      for (int w = 0; w < 4; ++w) out.coded[w] = blocks.coded[w];
      out.verbatim = blocks.verbatim ? 1 : 0;
    }
    const bool first_coded = (blocks.coded[0] & 1) != 0;
    const ResidualSlot<Code> residuals(job, slot);
#pragma unroll 1
    for (std::uint32_t round = 0; 32 * round < count; ++round) {
      ResidualSink<Code> sink(residuals, round);
      failed = stream.decode_round<Code, S>(32 * round + lane < count, sink) || failed;
      halves |= sink.halves << 8 * round;
      codes |= sink.codes << 8 * round;
      if (round == 0 && first_coded) code += unzigzag(sink.first);  // in lane 0
    }
    if (lane == 0) {
      out.first = code;
      out.halves = halves;
      out.codes = codes;
    }
  }
  return stream.ends(group.bytes + group.size, coder_of(frame.frame) == kRansFull, failed) ? Fault::none
                                                                                           : Fault::stream;
}

// Warps of a multiprocessor: with more, registers spill. Its shared memory has room for three thread blocks.
inline constexpr int kResidualWarps = 24;

// Each frame has thread blocks of its own (the y dimension).
template <class Code, int S>
__global__ void __launch_bounds__(32 * kResidualWarps, 1)
    rans_residual_kernel(const __grid_constant__ StreamDecodeParams job) {
  extern __shared__ __align__(1024) uint4 shared_memory[];
  const RansShare share(shared_memory);
  const BlockFrame& frame = open_frame(job, share);
  const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  SharedGroup& shared = in_shared(reinterpret_cast<SharedGroup*>(share.behind_frame()))[warp];
#pragma unroll 1
  for (std::uint32_t unit = frame.first_of_warp(); unit < frame.last; unit = frame.next_of_warp(unit)) {
    GroupTileParts own;
    const OpenedGroup group = open_group(job.base, frame.frame, frame.groups, frame.index, frame.table_bytes,
                                         frame.units, unit, false, sizeof(Code), own);
    shared.tiles[lane] = own;
    if (lane == 0) shared.group = group;
    __syncwarp();
    report_group(frame.frame, decode_residuals<Code, S>(job, frame, shared, share.ring(warp)));
  }
}

}  // namespace pyfilter::cuda
