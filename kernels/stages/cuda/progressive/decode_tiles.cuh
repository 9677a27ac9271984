// SPDX-License-Identifier: BSD-3-Clause
// Pieces of tiles to planes (docs/format.md, section 13.5). A block has kGroupTiles tiles of a unit, a warp a quarter
// of them, four words of a tile in each lane. Plane by plane: all lanes find the classes of positions; then a thread
// for each tile turns the runs of its classes into a bit for each position of these, one after the other as they must
// be, the tiles side by side; then all lanes give these bits, or those that are stored as they are, and signs and bits
// of older positions, to their places, which follow from counts.
#pragma once

#include <cstdint>

#include "stages/cuda/prefetch.cuh"
#include "stages/cuda/progressive/bits.cuh"
#include "stages/cuda/progressive/params.cuh"

namespace pyfilter::cuda {

inline constexpr int kDecodeTileThreads = 128, kTilesOfWarp = kGroupTiles / (kDecodeTileThreads / 32);
inline constexpr std::uint32_t kRankWords = kTileWords + 1;  // odd, so that threads do not meet in a bank
// Words of a piece that are copied to shared memory: modes, and all classes as our encoder writes them. Also odd.
inline constexpr std::uint32_t kStagedWords = 131;

// What the threads of a block tell each other of a tile.
struct PieceNote {
  std::uint64_t piece;
  TileBounds bounds;
  std::uint32_t count[kClasses];  // positions of a class
  std::uint32_t start[kClasses];  // of its bits in the piece
  std::uint32_t end;              // of all classes
  std::uint32_t modes;
  std::uint32_t known, before;  // positions that have had a one, and those that had before the last plane
  int top;                      // planes that are there
  bool dead;
};

struct TileGroupRoom {
  LaneWords known[kGroupTiles][32];
  std::uint32_t ranks[kGroupTiles][kRankWords], staged[kGroupTiles][kStagedWords];
  PieceNote note[kGroupTiles];
};

// Before the runs of a plane are read; by a warp. *runs is set where there are some; false where the piece cannot be
// right.
__device__ __forceinline__ bool begin_piece(PieceNote& note, TileForm form, int p, std::uint64_t piece,
                                            const PayloadWords& payload, const LaneWords& known, const LaneWords& valid,
                                            std::uint32_t* ranks, std::uint32_t* staged, bool* runs) {
  const unsigned lane = threadIdx.x % 32;
  const std::uint32_t size = piece_size(piece);
  std::uint32_t modes = 0;
  bool good = true;
  if (size == 0)
    good = note.before == 0;
  else if (p < 0)
    good = note.before != 0;
  else {
    modes = payload.bits(8 * piece_offset(piece)) & 0xFFFF;
    good = size >= 2 && modes >> (4 * kClasses) == 0;
  }
  if (!good) modes = 0;
  if (modes != 0) {
    const std::uint64_t counts = warp_total(count_classes(classify_words(form, known, valid)));
    bool any = false;
    for (int c = 0; c < kClasses; ++c) any = any || (modes >> (4 * c) & 15) % kDirect != 0;
    if (any) {
      if (lane < kClasses) note.count[lane] = count_of(counts, static_cast<int>(lane));
      const std::uint32_t staged_words = min((size + 3) / 4 + 2, kStagedWords);
      for (std::uint32_t i = lane; i < kRankWords; i += 32) ranks[i] = 0;
      for (std::uint32_t i = lane; i < staged_words; i += 32)
        staged[i] = payload.bits(8 * piece_offset(piece) + 32 * i);
      *runs = true;
    } else if (lane == 0) {  // what read_runs() would find
      std::uint32_t at = 16;
      for (int c = 0; c < kClasses; ++c) {
        note.count[c] = count_of(counts, c);
        note.start[c] = at;
        if ((modes >> (4 * c) & 15) == kDirect) at += note.count[c];
      }
      note.end = at;
    }
  } else if (lane == 0) {
    note.end = p < 0 ? 0 : 16;
  }
  if (lane == 0) {
    note.piece = piece;
    note.modes = modes;
  }
  __syncwarp();
  return good;
}

// A word of a piece that is not in shared memory: only where others than our encoder made it.
static __device__ __noinline__ std::uint32_t far_word(const PayloadWords& payload, std::uint64_t base,
                                                      std::uint32_t i) {
  return payload.bits(base + 32 * std::uint64_t{i});
}

// Words of a piece, by number.
struct PieceWordsIn {
  const std::uint32_t* staged;
  const PayloadWords& payload;
  std::uint64_t base;

  __device__ __forceinline__ std::uint32_t operator()(std::uint32_t i) const {
    return i < kStagedWords ? staged[i] : far_word(payload, base, i);
  }
};

// The runs of a tile's classes, by a thread: bits by rank. False where they are damaged.
__device__ __forceinline__ bool read_runs(PieceNote& note, const PayloadWords& payload, const std::uint32_t* staged,
                                          std::uint32_t* ranks) {
  const PieceWordsIn words{staged, payload, 8 * piece_offset(note.piece)};
  const std::uint32_t bits = 8 * piece_size(note.piece);
  std::uint32_t at = 16, rank = 0;
  std::uint32_t word = 0, ones = 0;  // the word of ranks that is being made: positions rise
  bool good = true;
#pragma unroll 1
  for (int c = 0; c < kClasses; ++c) {
    const std::uint32_t mode = note.modes >> (4 * c) & 15, count = note.count[c];
    note.start[c] = at;
    if (mode == kDirect) {
      at += count;
    } else if (mode != kNoOnes && good) {
      BitStream<PieceWordsIn> in(words, at);
      std::uint32_t left = count, position = rank;
      while (left != 0) {
        const std::uint32_t run = in.take_run(mode - 1, left);
        good = run <= left;
        left = good ? left - run : 0;
        if (left == 0) break;
        position += run;
        if (position / 32 != word) {
          ranks[word] = ones;
          word = position / 32;
          ones = 0;
        }
        ones |= 1u << (position % 32);
        ++position;
        --left;
      }
      at = in.at();
    }
    rank += count;
    good = good && at <= bits;
  }
  ranks[word] = ones;
  note.end = at;
  return good;
}

// `n` bits by rank.
__device__ __forceinline__ std::uint32_t rank_bits(const std::uint32_t* ranks, std::uint32_t first, std::uint32_t n) {
  return __funnelshift_r(ranks[first / 32], ranks[first / 32 + 1], first % 32) & first_bits(n);
}

// The ones of a plane of a lane's words.
__device__ __forceinline__ LaneWords read_ones(const PieceNote& note, TileForm form, const PayloadWords& payload,
                                               const LaneWords& known, const LaneWords& valid,
                                               const std::uint32_t* ranks) {
  const LaneClasses classes = classify_words(form, known, valid);
  std::uint64_t all;
  const std::uint64_t before = warp_sum_before(count_classes(classes), all), base = 8 * piece_offset(note.piece);
  LaneWords ones = {};
  std::uint32_t rank = 0;
#pragma unroll 1
  for (int c = 0; c < kClasses; ++c) {
    const std::uint32_t mode = note.modes >> (4 * c) & 15;
    if (mode != kNoOnes) {
      std::uint32_t at = (mode == kDirect ? note.start[c] : rank) + count_of(before, c);
      const LaneWords mask = classes.mask(c);
      LaneWords bits;
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        const auto n = static_cast<std::uint32_t>(__popc(static_cast<int>(mask.w[j])));
        bits.w[j] = n == 0 ? 0 : mode == kDirect ? payload.bits(base + at) & first_bits(n) : rank_bits(ranks, at, n);
        at += n;
      }
      const LaneWords here = scatter_words(bits, mask);
#pragma unroll
      for (int j = 0; j < 4; ++j) ones.w[j] |= here.w[j];
    }
    rank += note.count[c];
  }
  return ones;
}

// Bits of the positions that masks pick, which start at bit `start` of a piece.
__device__ __forceinline__ LaneWords read_masked(const PayloadWords& payload, std::uint64_t start,
                                                 const LaneWords& mask, std::uint32_t* count) {
  std::uint64_t at = start + warp_sum_before(count_words(mask), *count);
  LaneWords bits;
#pragma unroll
  for (int j = 0; j < 4; ++j) {
    const auto n = static_cast<std::uint32_t>(__popc(static_cast<int>(mask.w[j])));
    bits.w[j] = n == 0 ? 0 : payload.bits(at) & first_bits(n);
    at += n;
  }
  return scatter_words(bits, mask);
}

__device__ __forceinline__ void store_words(std::uint32_t* to, const LaneWords& words) {
  reinterpret_cast<uint4*>(to)[threadIdx.x % 32] = make_uint4(words.w[0], words.w[1], words.w[2], words.w[3]);
}
// What this lane stored; zeros unless `there`.
__device__ __forceinline__ LaneWords load_words(const std::uint32_t* from, bool there) {
  if (!there) return {};
  const uint4 words = reinterpret_cast<const uint4*>(from)[threadIdx.x % 32];
  return {{words.x, words.y, words.z, words.w}};
}

// Behind the runs of a plane; by a warp. Planes above `p` are complete then and go to the slot; in the place of plane
// `p` waits what was known before it, for the next plane. False where the piece is damaged.
__device__ __forceinline__ bool end_piece(PieceNote& note, TileForm form, int p, int planes,
                                          const PayloadWords& payload, const LaneWords& valid,
                                          const std::uint32_t* ranks, LaneWords& known_room, std::uint32_t* signs,
                                          std::uint32_t* slot) {
  const unsigned lane = threadIdx.x % 32;
  const std::uint32_t size = piece_size(note.piece), had = note.known, older_count = note.before;
  if (size == 0 && had == 0) return true;
  const LaneWords known = known_room,
                  before = load_words(slot + static_cast<std::uint32_t>(p + 1) * kTileWords, older_count != 0);
  const std::uint64_t base = 8 * piece_offset(note.piece);
  LaneWords ones = {}, older = {};
  std::uint32_t found = 0;
  bool good = true;
  if (size != 0) {
    if (note.modes != 0) ones = read_ones(note, form, payload, known, valid, ranks);
    // signs of these, then bits of the older ones, which follow
    std::uint32_t at = note.end;
#pragma unroll 1
    for (int older_ones = note.modes != 0 ? 0 : 1; older_ones < 2; ++older_ones) {
      if (older_ones != 0 && older_count == 0) break;
      std::uint32_t count = 0;
      const LaneWords mask = older_ones != 0 ? before : ones, got = read_masked(payload, base + at, mask, &count);
      at += count;
      if (older_ones != 0) {
        older = got;
        continue;
      }
      found = count;
#pragma unroll
      for (int j = 0; j < 4; ++j)
        if (got.w[j] != 0) atomicOr(signs + 4 * lane + j, got.w[j]);  // nobody else does: so that nothing waits
    }
    const std::uint32_t bits = 8 * size;
    good = at <= bits && bits - at < 8 && (payload.bits(base + at) & ((1u << ((bits - at) & 7)) - 1)) == 0;
  }
  if (had != 0 && p + 1 < planes) {
    LaneWords out;
#pragma unroll
    for (int j = 0; j < 4; ++j) out.w[j] = (known.w[j] & ~before.w[j]) | older.w[j];
    store_words(slot + static_cast<std::uint32_t>(p + 1) * kTileWords, out);
  }
  if (p >= 0) store_words(slot + static_cast<std::uint32_t>(p) * kTileWords, known);
#pragma unroll
  for (int j = 0; j < 4; ++j) known_room.w[j] = known.w[j] | ones.w[j];
  __syncwarp();
  if (lane == 0) {
    note.before = had;
    note.known = had + found;
    if (had == 0 && found != 0) note.top = p + 1;
  }
  __syncwarp();
  return good;
}

// What is left of a tile once the piece of plane `last` is there: bits that are not known are in the middle, as
// put_middles() says, and then zeros.
__device__ __forceinline__ void finish_tile(const PieceNote& note, int last, const LaneWords& known,
                                            std::uint32_t* slot) {
  if (note.top == 0 || last < 0) return;
  const LaneWords before = load_words(slot + static_cast<std::uint32_t>(last) * kTileWords, note.before != 0);
  store_words(slot + static_cast<std::uint32_t>(last) * kTileWords, known);
  LaneWords first, none = {};
#pragma unroll
  for (int j = 0; j < 4; ++j) first.w[j] = known.w[j] & ~before.w[j];
  for (int p = last - 1; p >= 0; --p)
    store_words(slot + static_cast<std::uint32_t>(p) * kTileWords, p == last - 1 ? first : none);
}

static __global__ void __launch_bounds__(kDecodeTileThreads, 8)
    decode_tiles_kernel(const __grid_constant__ ProgressiveDecode job) {
  __shared__ TileGroupRoom room;
  FrameHead& head = job.heads[blockIdx.y];
  const TileGroup group = job.groups[blockIdx.x];
  const auto u = static_cast<int>(group.unit);
  const ProgressiveUnit& unit = job.shared->layout.unit[u];
  if (head.dead != 0 || unit.level < job.level) return;
  const ProgressiveFrame frame = job.frames[blockIdx.y];
  const PayloadWords payload(frame.payload, frame.payload_bytes);
  const int planes = head.head.planes[u], last = head.last[u];
  const TileForm form = form_of(unit);
  const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const std::uint32_t tiles = min(unit.tiles - group.first, std::uint32_t{kGroupTiles});
  const std::size_t first_tile = job.shared->first_tile[u] + group.first;
  const auto slot_of = [&](unsigned i) { return job.slots.of(blockIdx.y) + (first_tile + i) * job.slot_words(); };
  const auto signs_of = [&](unsigned i) {
    return slot_of(i) + static_cast<std::uint32_t>(8 * job.width - 1) * kTileWords;
  };
  for (unsigned i = warp; i < kGroupTiles; i += kDecodeTileThreads / 32) {
    room.known[i][lane] = {};
    if (i < tiles && planes != 0) store_words(signs_of(i), {});
    if (lane == 0) {
      room.note[i] = {};
      room.note[i].dead = i >= tiles;
      if (i < tiles) room.note[i].bounds = bounds_of_tile(unit, group.first + i);
    }
  }
#pragma unroll 1
  for (int p = planes - 1; p >= last && planes != 0; --p) {
    const std::uint64_t* const places = job.places.of(blockIdx.y) + job.place_of(u, planes, p) + group.first;
    if (p > last && threadIdx.x / 8 < tiles) {  // the pieces of the next plane, by eight threads each
      const std::uint64_t next = places[unit.tiles + threadIdx.x / 8];
      prefetch_range<8>(frame.payload + piece_offset(next), piece_size(next), threadIdx.x % 8);
    }
    bool runs = false;
#pragma unroll 1
    for (unsigned i = warp; i < tiles; i += kDecodeTileThreads / 32) {
      PieceNote& note = room.note[i];
      __syncwarp();
      if (note.dead) continue;
      const LaneWords valid = valid_words(form, note.bounds);
      if (!begin_piece(note, form, p, places[i], payload, room.known[i][lane], valid, room.ranks[i], room.staged[i],
                       &runs)) {
        damage(frame, head);
        __syncwarp();
        if (lane == 0) note.dead = true;
      }
    }
    if (__syncthreads_or(runs ? 1 : 0) != 0) {
      if (threadIdx.x < tiles && !room.note[threadIdx.x].dead && room.note[threadIdx.x].modes != 0 &&
          !read_runs(room.note[threadIdx.x], payload, room.staged[threadIdx.x], room.ranks[threadIdx.x])) {
        damage(frame, head);
        room.note[threadIdx.x].dead = true;
      }
      __syncthreads();
    }
#pragma unroll 1
    for (unsigned i = warp; i < tiles; i += kDecodeTileThreads / 32) {
      PieceNote& note = room.note[i];
      if (note.dead) continue;
      const LaneWords valid = valid_words(form, note.bounds);
      const bool good =
          end_piece(note, form, p, planes, payload, valid, room.ranks[i], room.known[i][lane], signs_of(i), slot_of(i));
      if (!good) {
        damage(frame, head);
        __syncwarp();
        if (lane == 0) note.dead = true;
      }
    }
  }
  __syncthreads();
  for (unsigned i = warp; i < tiles; i += kDecodeTileThreads / 32) {
    finish_tile(room.note[i], last, room.known[i][lane], slot_of(i));
    if (lane == 0) job.tops.of(blockIdx.y)[first_tile + i] = static_cast<std::uint8_t>(room.note[i].top);
  }
}

}  // namespace pyfilter::cuda
