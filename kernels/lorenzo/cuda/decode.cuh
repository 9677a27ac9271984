// SPDX-License-Identifier: BSD-3-Clause
// Groups of tiles to values (lorenzo/cpu/decode.hpp is the same on the CPU). One warp for each group decodes a round of
// 32 blocks, sums them and stores them, run by run: Huffman streams, and rans streams of chains. Special values follow
// in a later kernel (special_values.cuh), from a list made here. A contradiction is written to the frame's fault word,
// and no read leaves the group.
#pragma once

#include <algorithm>
#include <cstdint>

#include "lorenzo/cuda/group_parts.cuh"
#include "lorenzo/cuda/huffman_decode.cuh"
#include "lorenzo/cuda/states.cuh"
#include "lorenzo/cuda/tables.cuh"
#include "lorenzo/cuda/warp_sums.cuh"
#include "stages/cuda/tile_decode.cuh"
#include "stages/logarithm.hpp"

namespace pyfilter::cuda {

inline constexpr int kCheckThreads = 256;

// The groups [first, last) of a frame that a launch decodes.
struct UnitRange {
  std::uint32_t units, first, last;
};
__device__ __forceinline__ UnitRange unit_range(const DecodeParams& job, std::uint32_t group_log2) {
  const std::uint32_t group = 1u << group_log2;
  return {static_cast<std::uint32_t>((std::uint64_t{job.tiles} + group - 1) >> group_log2),
          job.first_tile >> group_log2,
          static_cast<std::uint32_t>((std::uint64_t{job.first_tile} + job.tile_count + group - 1) >> group_log2)};
}

// The number of states of a rans stream: the largest number of coded blocks of a tile, or 32.
template <int S>
__device__ __forceinline__ std::uint32_t lanes_of_group(const DecodeParams& job, std::uint32_t tiles,
                                                        std::uint32_t first_tile, const GroupTileParts& own) {
  std::uint32_t wants = 0;
  if (threadIdx.x % 32 < tiles)
    wants = own.coding == kTileFlags    ? kLaneCount
            : own.coding == kTileListed ? own.listed
            : own.coding == kTileAll    ? present_count<S>(box_of<S>(job.grid, first_tile + threadIdx.x % 32))
                                        : 0;
  return static_cast<std::uint32_t>(warp_max(static_cast<int>(min(wants, kLaneCount))));
}

// Tiles of a group whose special parts are already listed, for a group that is decoded again after Fault::wide.
struct NotedTiles {
  std::uint32_t count = 0;
};

// A group of a frame, whose bytes are bytes[0] to bytes[size - 1].
struct OpenedGroup {
  Fault fault = Fault::none;
  std::uint32_t frame = 0, size = 0, rest = 0;  // `frame`: its number; `rest`: where the parts behind the head begin
  GroupSpan span = {};
  const std::uint8_t* bytes = nullptr;
  std::uint64_t at = 0;  // offset of `bytes` behind the frame's header
};
// Group `unit` of a frame with `units` groups. `groups`: the frame from its directory on, which follows the tables.
// `flags`: heads hold the flags of blocks. `own`: the parts of this lane's tile.
__device__ __forceinline__ OpenedGroup open_group(const DecodeParams& job, const DecodeFrame& frame,
                                                  const DecodeFrame& groups, std::uint32_t index,
                                                  std::uint32_t table_bytes, std::uint32_t units, std::uint32_t unit,
                                                  bool flags, std::size_t value_bytes, GroupTileParts& own) {
  OpenedGroup out;
  out.frame = index;
  if (groups.payload_bytes / 4 <= units) {
    out.fault = Fault::directory;
    return out;
  }
  const TileLocation location = find_tile(groups, units, unit);
  out.span = group_span(job.tiles, 1u << group_log2_of(frame), unit);
  out.size = 4 * location.count;
  out.at = table_bytes + 4 * (std::uint64_t{units} + 1) + 4 * std::uint64_t{location.first};
  out.bytes = frame.payload + out.at;
  out.fault = location.fault;
  if (out.fault != Fault::none) return out;
  if (location.uniform)
    out.fault = Fault::head;
  else if (out.size > max_group_bytes(out.span.count, value_bytes))
    out.fault = Fault::size;
  else if (out.size != 0)
    out.fault = find_parts(out.bytes, out.size, out.span.count, flags, own, out.rest);
  return out;
}

// What a group's head says of a tile: its coded blocks. `read_flags` reads flags from the stream (rans).
struct TileBlocks {
  Fault fault = Fault::none;
  bool verbatim = false;
  std::uint32_t coded[4] = {};

  __device__ __forceinline__ std::uint32_t count() const {
    std::uint32_t all = 0;
#pragma unroll
    for (int w = 0; w < 4; ++w) all += static_cast<std::uint32_t>(__popc(static_cast<int>(coded[w])));
    return all;
  }
};
template <int S, bool kHeadFlags, class ReadFlags>
__device__ __forceinline__ TileBlocks blocks_of_tile(const StreamDecodeParams& job, const OpenedGroup& group,
                                                     const GroupTileParts& parts, std::uint32_t tile,
                                                     const TileBox& box, bool notes_special,
                                                     const ReadFlags& read_flags) {
  TileBlocks out;
  if (parts.special_words != 0) {
    out.verbatim = reinterpret_cast<const std::uint32_t*>(group.bytes)[parts.special] == kPackedVerbatim << 16;
    if (out.verbatim && parts.coding != kTileEmpty) out.fault = Fault::head;
    if (out.fault == Fault::none && notes_special && threadIdx.x % 32 == 0)
      job.specials[atomicAdd(job.special_count, 1)] = {group.frame, tile, parts.special_words,
                                                       group.at + 4 * std::uint64_t{parts.special}};
    if (out.verbatim) return out;
  }
  if (parts.coding == kTileListed) {
    out.fault = read_listed<S>(group.bytes + parts.list, parts.listed, box, out.coded);
  } else if (parts.coding != kTileEmpty) {
    std::uint32_t present[4];
    present_bits<S>(box, present);
    if (parts.coding == kTileAll) {
#pragma unroll
      for (int w = 0; w < 4; ++w) out.coded[w] = present[w];
    } else if constexpr (kHeadFlags) {
      bool absent = false;
#pragma unroll
      for (int w = 0; w < 4; ++w) {
        const std::uint8_t* const at = group.bytes + parts.list + 4 * w;
        out.coded[w] = at[0] | std::uint32_t{at[1]} << 8 | std::uint32_t{at[2]} << 16 | std::uint32_t{at[3]} << 24;
        absent = absent || (out.coded[w] & ~present[w]) != 0;
      }
      if (absent) out.fault = Fault::head;
    } else {
      read_flags(present, out.coded);
    }
  }
  return out;
}

// Decodes the tiles of a group in sequence, with residuals from `source`: RansSource or HuffmanSource. kRows: the
// source is of chains, and has memory for a run's rows.
template <class Map, int S, class Source>
__device__ __forceinline__ Fault decode_tiles(const StreamDecodeParams& job, const DecodeFrame& frame, const Map& map,
                                              const OpenedGroup& group, const GroupTileParts& own, NotedTiles& noted,
                                              Source& source) {
  using Value = typename Map::Value;
  using Code = typename Map::Code;
  const unsigned lane = threadIdx.x % 32;
  const DecodeParams& base = job.base;
  const std::uint32_t first_tile = static_cast<std::uint32_t>(group.span.first),
                      last_tile = base.first_tile + base.tile_count;
  Code carry = 0;
#pragma unroll 1
  for (std::uint32_t i = 0; i < group.span.count; ++i) {
    const std::uint32_t tile = first_tile + i;
    if (tile >= last_tile) return Fault::none;  // later tiles are not needed
    const bool wanted = tile >= base.first_tile;
    const TileBox box = box_of<S>(base.grid, tile);
    const TileBlocks blocks_here =
        blocks_of_tile<S, Source::kHeadFlags>(job, group, parts_of_lane(own, i), tile, box, wanted && i >= noted.count,
                                              [&]([[maybe_unused]] const auto& present, [[maybe_unused]] auto& coded) {
                                                if constexpr (!Source::kHeadFlags) source.read_flags(present, coded);
                                              });
    if (blocks_here.fault != Fault::none) return blocks_here.fault;
    if (blocks_here.verbatim) continue;
    const std::uint32_t(&coded)[4] = blocks_here.coded;
    const std::uint32_t count = blocks_here.count();
    const Fault fault = source.begin_tile(count);
    if (fault == Fault::wide) noted.count = max(noted.count, i + 1);
    if (fault != Fault::none) return fault;

    RunFaces<S, Code> faces = {};
    typename Source::Parked parked;
    std::uint32_t blocks = 0;  // coded blocks of earlier runs
#pragma unroll 1
    for (int run = 0; run < 4; ++run) {
      if (S == kColumns && static_cast<unsigned>(run) >= box.inx) break;  // all later runs are absent, too
      const std::uint32_t bits = run == 0 ? coded[0] : run == 1 ? coded[1] : run == 2 ? coded[2] : coded[3];
      Code y[32];
      if (bits != 0) {
        source.take_run(blocks, bits, count, parked, y);
        blocks += static_cast<std::uint32_t>(__popc(static_cast<int>(bits)));
#pragma unroll
        for (int n = 0; n < 32; ++n) y[n] = unzigzag(y[n]);
      } else {
#pragma unroll
        for (int n = 0; n < 32; ++n) y[n] = 0;
      }
      const auto order = static_cast<int>(order_of(frame));
      const bool sums = S != kChain || order != 0;
      if (run == 0) {
        if (lane == 0 && sums) y[0] += carry;
        if (S != kChain) carry = __shfl_sync(kAllLanes, y[0], 0);
        if (lane == 0 && sums) y[0] += Map::kBias;
      }
      if (sums) {
        run_sums<S>(order, run, y, faces);
      } else {
#pragma unroll
        for (int n = 0; n < 32; ++n) y[n] += Map::kBias;
      }
      if (!wanted) continue;
      Value v[32];
#pragma unroll
      for (int n = 0; n < 32; ++n) v[n] = map.decode_biased(y[n]);
      if constexpr (!Source::kRows) {
        store_block<S>(base.grid, v, box, 32 * static_cast<unsigned>(run) + lane, base.aligned, base.start,
                       min(base.stop, base.grid.values), frame.out);
        continue;
      }
      if constexpr (Source::kRows) {
        source.park_rows(parked);
        write_row_at(run_row<Value>(source.space.rows, lane), v);
        __syncwarp();
        store_run<Value>(source.space.rows, box, run, base.aligned, base.start, min(base.stop, base.grid.values),
                         frame.out);
        __syncwarp();
        source.restore_rows(parked);
      }
    }
    if (S == kChain) carry = static_cast<Code>(faces.sum[0] - Map::kBias);
  }
  return source.ends(group.bytes + group.size, coder_of(frame)) ? Fault::none : Fault::stream;
}

// The states and words of a group's rans stream.
template <int S>
__device__ __forceinline__ OpenedStream open_rans(const DecodeParams& job, const DecodeFrame& frame,
                                                  const OpenedGroup& group, const GroupTileParts& own) {
  const std::uint32_t lanes =
      lanes_of_group<S>(job, group.span.count, static_cast<std::uint32_t>(group.span.first), own);
  return open_stream(reinterpret_cast<const std::uint32_t*>(group.bytes + group.rest), group.size - group.rest, lanes,
                     coder_of(frame) == kRansFull);
}

template <class Map, int S, class Source>
__device__ __forceinline__ Fault decode_group(const StreamDecodeParams& job, const DecodeFrame& frame, const Map& map,
                                              const OpenedGroup& group, const GroupTileParts& own,
                                              const typename Source::Tables& tables, NotedTiles& noted,
                                              typename Source::WarpSpace& space) {
  if (group.fault != Fault::none) return group.fault;
  if constexpr (Source::kHeadFlags) {
    Source source(tables, space);
    const std::uint32_t total = residuals_of_group<S>(job.base, group.span, group.bytes, own);
    const Fault fault = group.size != 0 ? source.open(group.bytes + group.rest, group.size - group.rest,
                                                      coder_of(frame) == kHuffmanGaps, total)
                                        : Fault::none;
    if (fault != Fault::none) return fault;
    return decode_tiles<Map, S>(job, frame, map, group, own, noted, source);
  } else {
    const OpenedStream opened = open_rans<S>(job.base, frame, group, own);
    if (opened.fault != Fault::none) return opened.fault;
    Source source(tables, space, group.bytes + group.rest, opened);
    return decode_tiles<Map, S>(job, frame, map, group, own, noted, source);
  }
}

// Writes a group's fault to its frame; called by a warp.
__device__ __forceinline__ void report_group(const DecodeFrame& frame, Fault fault) {
  if (fault != Fault::none && threadIdx.x % 32 == 0) report(frame, fault);
  __syncwarp();
}

// Decodes a group of a frame. `groups`: the frame from its directory on, which follows the tables. `units`: number of
// its groups. `only_repeats`: decode only if the group failed in a kernel for narrower residuals.
template <class Map, int S, class Source>
__device__ __forceinline__ void decode_unit(const StreamDecodeParams& job, const DecodeFrame& frame,
                                            const DecodeFrame& groups, const Map& map, std::uint32_t frame_index,
                                            std::uint32_t table_bytes, bool only_repeats, std::uint32_t units,
                                            std::uint32_t unit, const typename Source::Tables& tables,
                                            typename Source::WarpSpace& space) {
  std::uint8_t* const repeat =
      Source::kHeadFlags ? job.repeats + std::size_t{frame_index} * job.base.tiles + unit : nullptr;
  NotedTiles noted;
  if (only_repeats) {
    if (*repeat == 0) return;
    noted.count = *repeat - 1;
  }
  GroupTileParts own;
  const OpenedGroup group = open_group(job.base, frame, groups, frame_index, table_bytes, units, unit,
                                       Source::kHeadFlags, sizeof(typename Map::Value), own);
  Fault fault = decode_group<Map, S, Source>(job, frame, map, group, own, tables, noted, space);
  if constexpr (Source::kNarrow) {
    const bool wide = fault == Fault::wide;
    __syncwarp();
    if (threadIdx.x % 32 == 0) *repeat = wide ? static_cast<std::uint8_t>(noted.count + 1) : 0;
    if (wide) fault = Fault::none;
  }
  report_group(frame, fault);
}

// The part of a frame behind its tables, which starts with the directory of groups.
__device__ __forceinline__ DecodeFrame behind_tables(const DecodeFrame& frame, std::uint32_t table_bytes) {
  DecodeFrame groups = frame;
  groups.payload += table_bytes;
  groups.payload_bytes -= table_bytes;
  return groups;
}

// Checks a frame's whole directory, for launches that decode only some of its groups.
static __global__ void __launch_bounds__(kCheckThreads)
    check_groups_kernel(const __grid_constant__ StreamDecodeParams job) {
  const DecodeFrame frame = job.base.frame(blockIdx.y);
  const std::uint32_t table_bytes = job.tables[blockIdx.y].bytes;
  if (table_bytes == 0) return;
  const DecodeFrame groups = behind_tables(frame, table_bytes);
  const UnitRange range = unit_range(job.base, group_log2_of(frame));
  for (std::uint32_t unit = blockIdx.x * kCheckThreads + threadIdx.x; unit < range.units;
       unit += gridDim.x * kCheckThreads) {
    const bool fits = groups.payload_bytes / 4 > range.units;
    const Fault fault = fits ? find_tile(groups, range.units, unit).fault : Fault::directory;
    if (fault != Fault::none) atomicCAS(frame.fault, 0u, static_cast<std::uint32_t>(fault));
  }
}

// Warps that share the tables of a Huffman stream: as many as registers and shared memory allow.
template <class Map, int S, class Residual>
inline constexpr int kHuffmanWarps = std::min(sizeof(typename Map::Code) == 8 ? (S == kChain ? 12 : 8)
                                              : S == kChain                   ? 24
                                                                              : 16,
                                              sizeof(Residual) == 1   ? 24
                                              : sizeof(Residual) == 2 ? 16
                                              : sizeof(Residual) == 4 ? 9
                                                                      : 5);

// Decodes frames of this class of residuals, and groups that failed in kernels for narrower residuals.
template <class Map, int S, class Residual>
__global__ void __launch_bounds__(32 * kHuffmanWarps<Map, S, Residual>, 1)
    huffman_decode_kernel(const __grid_constant__ StreamDecodeParams job) {
  using Source = HuffmanSource<Map, Residual>;
  extern __shared__ __align__(1024) uint4 shared_memory[];
  const std::uint32_t index = blockIdx.y;
  const DecodeFrame frame = job.base.frame(index);
  const FrameTables& given = job.tables[index];
  const std::uint32_t table_bytes = given.bytes;
  const UnitRange range = unit_range(job.base, group_log2_of(frame));
  const std::uint32_t own_class = residual_class(given.last_residual, sizeof(typename Map::Code));
  if (table_bytes == 0 || own_class > sizeof(Residual) || range.first + blockIdx.x >= range.last) return;
  static_assert(sizeof(HuffmanTables) % 16 == 0);
  const auto* const from = reinterpret_cast<const uint4*>(&given.huffman);
  for (unsigned i = threadIdx.x; i < sizeof(HuffmanTables) / 16; i += blockDim.x) shared_memory[i] = from[i];
  __syncthreads();
  const auto* const tables = in_shared(reinterpret_cast<const HuffmanTables*>(shared_memory));
  auto* const spaces = reinterpret_cast<typename Source::WarpSpace*>(shared_memory + sizeof(HuffmanTables) / 16);
  const DecodeFrame groups = behind_tables(frame, table_bytes);
  for (std::uint32_t unit = range.first + threadIdx.x / 32 * gridDim.x + blockIdx.x; unit < range.last;
       unit += gridDim.x * (blockDim.x / 32))  // the last units are spread over all thread blocks
    decode_unit<Map, S, Source>(job, frame, groups, decoding_map<Map>(frame), index, table_bytes,
                                own_class < sizeof(Residual), range.units, unit, tables, spaces[threadIdx.x / 32]);
}

}  // namespace pyfilter::cuda
