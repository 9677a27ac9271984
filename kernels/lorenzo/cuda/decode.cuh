// SPDX-License-Identifier: BSD-3-Clause
// Groups of tiles to values (lorenzo/cpu/decode.hpp is the same on the CPU). One warp for each group decodes a round of
// 32 blocks, sums them and stores them, run by run. Special values follow in a later kernel (special_values.cuh), from
// a list made here. A contradiction is written to the frame's fault word, and no read leaves the group.
#pragma once

#include <algorithm>
#include <cstdint>

#include "lorenzo/cuda/group_parts.cuh"
#include "lorenzo/cuda/huffman_decode.cuh"
#include "lorenzo/cuda/rans_decode.cuh"
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

// Decodes the tiles of a group in sequence, with residuals from `source`: RansSource or HuffmanSource. kRows: the
// source has memory for a run's rows.
template <class Map, int S, class Source>
__device__ __forceinline__ Fault decode_tiles(const StreamDecodeParams& job, const DecodeFrame& frame, const Map& map,
                                              std::uint32_t frame_index, const GroupSpan& span,
                                              const std::uint8_t* bytes, std::uint32_t size, std::uint64_t bytes_at,
                                              const GroupTileParts& own, NotedTiles& noted, Source& source) {
  using Value = typename Map::Value;
  using Code = typename Map::Code;
  const unsigned lane = threadIdx.x % 32;
  const DecodeParams& base = job.base;
  WarpTile own_tile;
  WarpTile* state = &own_tile;
  if constexpr (Source::kSharedTile) state = &source.tile();
  const TileBox& box = state->box;
  const auto note = [&](const auto& what) {
    if constexpr (Source::kSharedTile) __syncwarp();
    if (!Source::kSharedTile || lane == 0) what();
    if constexpr (Source::kSharedTile) __syncwarp();
  };
  const std::uint32_t first_tile = static_cast<std::uint32_t>(span.first),
                      last_tile = base.first_tile + base.tile_count;
  Code carry = 0;
#pragma unroll 1
  for (std::uint32_t i = 0; i < span.count; ++i) {
    const std::uint32_t tile = first_tile + i;
    if (tile >= last_tile) return Fault::none;  // later tiles are not needed
    const bool wanted = tile >= base.first_tile;
    note([&] { state->box = box_of<S>(base.grid, tile); });
    const std::uint32_t coding = __shfl_sync(kAllLanes, own.coding, static_cast<int>(i)),
                        special_words = __shfl_sync(kAllLanes, own.special_words, static_cast<int>(i)),
                        list = __shfl_sync(kAllLanes, own.list, static_cast<int>(i));
    if (special_words != 0) {
      const std::uint32_t special = __shfl_sync(kAllLanes, own.special, static_cast<int>(i));
      const bool verbatim = reinterpret_cast<const std::uint32_t*>(bytes)[special] == kPackedVerbatim << 16;
      if (verbatim && coding != kTileEmpty) return Fault::head;
      if (lane == 0 && wanted && i >= noted.count)
        job.specials[atomicAdd(job.special_count, 1)] = {frame_index, tile, special_words,
                                                         bytes_at + 4 * std::uint64_t{special}};
      if (verbatim) continue;
    }
    std::uint32_t coded[4] = {};
    if (coding == kTileListed) {
      const std::uint32_t listed = __shfl_sync(kAllLanes, own.listed, static_cast<int>(i));
      const Fault fault = read_listed<S>(bytes + list, listed, box, coded);
      if (fault != Fault::none) return fault;
    } else if (coding != kTileEmpty) {
      std::uint32_t present[4];
      present_bits<S>(box, present);
      if (coding == kTileAll) {
#pragma unroll
        for (int w = 0; w < 4; ++w) coded[w] = present[w];
      } else if constexpr (Source::kHeadFlags) {
        bool absent = false;
#pragma unroll
        for (int w = 0; w < 4; ++w) {
          const std::uint8_t* const at = bytes + list + 4 * w;
          coded[w] = at[0] | std::uint32_t{at[1]} << 8 | std::uint32_t{at[2]} << 16 | std::uint32_t{at[3]} << 24;
          absent = absent || (coded[w] & ~present[w]) != 0;
        }
        if (absent) return Fault::head;
      } else {
        source.read_flags(present, coded);
      }
    }
    std::uint32_t count = 0;
#pragma unroll
    for (int w = 0; w < 4; ++w) count += static_cast<std::uint32_t>(__popc(static_cast<int>(coded[w])));
    note([&] {
#pragma unroll
      for (int w = 0; w < 4; ++w) state->coded[w] = coded[w];
    });
    const Fault fault = source.begin_tile(count);
    if (fault == Fault::wide) noted.count = max(noted.count, i + 1);
    if (fault != Fault::none) return fault;

    RunFaces<S, Code> faces = {};
    typename Source::Parked parked;
    std::uint32_t blocks = 0;  // coded blocks of earlier runs
#pragma unroll 1
    for (int run = 0; run < 4; ++run) {
      if (S == kColumns && static_cast<unsigned>(run) >= box.inx) break;  // all later runs are absent, too
      const std::uint32_t bits = Source::kSharedTile ? state->coded[run]
                                 : run == 0          ? coded[0]
                                 : run == 1          ? coded[1]
                                 : run == 2          ? coded[2]
                                                     : coded[3];
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
        write_run_row<S, Value>(source.space.rows, lane, v);
        __syncwarp();
        store_run<S, Value>(base.grid, source.space.rows, box, run, base.aligned, base.start,
                            min(base.stop, base.grid.values), frame.out);
        __syncwarp();
        source.restore_rows(parked);
      }
    }
    if (S == kChain) carry = static_cast<Code>(faces.sum[0] - Map::kBias);
  }
  return source.ends(bytes + size, coder_of(frame)) ? Fault::none : Fault::stream;
}

template <class Map, int S, class Source>
__device__ __forceinline__ Fault decode_group(const StreamDecodeParams& job, const DecodeFrame& frame, const Map& map,
                                              std::uint32_t frame_index, std::uint32_t unit,
                                              const TileLocation& location, std::uint64_t groups_at,
                                              const typename Source::Tables& tables, NotedTiles& noted,
                                              typename Source::WarpSpace& space) {
  const GroupSpan span = group_span(job.base.tiles, 1u << group_log2_of(frame), unit);
  const std::uint32_t size = 4 * location.count;
  const std::uint64_t bytes_at = groups_at + 4 * std::uint64_t{location.first};
  const std::uint8_t* const bytes = frame.payload + bytes_at;
  if (location.uniform) return Fault::head;
  if (size > max_group_bytes(span.count, sizeof(typename Map::Value))) return Fault::size;
  GroupTileParts own;
  std::uint32_t rest = 0;
  if (size != 0) {
    const Fault fault = find_parts(bytes, size, span.count, Source::kHeadFlags, own, rest);
    if (fault != Fault::none) return fault;
  }
  if constexpr (Source::kHeadFlags) {
    Source source(tables, space);
    const std::uint32_t total = residuals_of_group<S>(job.base, span, bytes, own);
    const Fault fault =
        size != 0 ? source.open(bytes + rest, size - rest, coder_of(frame) == kHuffmanGaps, total) : Fault::none;
    if (fault != Fault::none) return fault;
    return decode_tiles<Map, S>(job, frame, map, frame_index, span, bytes, size, bytes_at, own, noted, source);
  } else {
    const std::uint32_t lanes = lanes_of_group<S>(job.base, span.count, static_cast<std::uint32_t>(span.first), own);
    const OpenedStream opened = open_stream(reinterpret_cast<const std::uint32_t*>(bytes + rest), size - rest, lanes,
                                            coder_of(frame) == kRansFull);
    if (opened.fault != Fault::none) return opened.fault;
    Source source(tables, space, bytes + rest, opened);
    return decode_tiles<Map, S>(job, frame, map, frame_index, span, bytes, size, bytes_at, own, noted, source);
  }
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
  Fault fault = Fault::directory;
  if (groups.payload_bytes / 4 > units) {
    const TileLocation location = find_tile(groups, units, unit);
    fault = location.fault;
    if (fault == Fault::none)
      fault = decode_group<Map, S, Source>(job, frame, map, frame_index, unit, location,
                                           table_bytes + 4 * (std::uint64_t{units} + 1), tables, noted, space);
  }
  if constexpr (Source::kNarrow) {
    const bool wide = fault == Fault::wide;
    __syncwarp();
    if (threadIdx.x % 32 == 0) *repeat = wide ? static_cast<std::uint8_t>(noted.count + 1) : 0;
    if (wide) fault = Fault::none;
  }
  if (fault != Fault::none && threadIdx.x % 32 == 0) atomicCAS(frame.fault, 0u, static_cast<std::uint32_t>(fault));
  __syncwarp();
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
  const DecodeFrame frame = job.base.frames != nullptr ? job.base.frames[blockIdx.y] : job.base.only_frame;
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
  const DecodeFrame frame = job.base.frames != nullptr ? job.base.frames[index] : job.base.only_frame;
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
