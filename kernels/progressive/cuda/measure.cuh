// SPDX-License-Identifier: BSD-3-Clause
// Errors of readers, measured (docs/format.md, section 13.6): the passes of a level in one kernel, for many readers at
// once. A warp takes a reader; the warps of a block take the same region of the array and share its coefficients and
// integers. A warp marches along y with four rows of known points in registers. The rows are of one plane, and of the
// plane behind it that the pass along z makes. Neighbours along x are in adjacent lanes. A region is skipped if its
// coefficients and the errors at the level above are too small to exceed the largest error so far.
#pragma once

#include <cstdint>

#include "progressive/choices.hpp"
#include "progressive/cuda/forward.cuh"
#include "progressive/cuda/grids.cuh"
#include "progressive/cuda/inverse.cuh"
#include "progressive/cuda/measured_items.cuh"
#include "progressive/cuda/measured_region.cuh"
#include "progressive/values.hpp"
#include "stages/cuda/residuals.cuh"

namespace pyfilter::cuda {

// kLast: the finest grid, which is not stored. kWideRows: rows of both grids are aligned to 16 bytes, and the units'
// rows equal those of their tiles. kSpecial: some values may be special.
template <class T, bool kHasZ, bool kLast, bool kWideRows, bool kSpecial>
__global__ void __launch_bounds__(32 * kReadersOfBlock, 3) measure_kernel(const __grid_constant__ MeasureLevel pass) {
  using Int = typename ProgressiveTraits<T>::Int;
  using Values = Wide<Int>;
  using Items = MeasuredItems<kHasZ>;
  constexpr std::uint32_t kN = kWide<Int>, kRows = Items::kRows;
  extern __shared__ __align__(16) std::uint8_t shared_memory[];
  const FrameHead& frame = pass.job.heads[blockIdx.y];
  EncodeNote& note = *pass.job.notes.of(blockIdx.y);
  const std::uint32_t warps = blockDim.x / 32, warp = threadIdx.x / 32, index = pass.first + warp;
  if (frame.dead != 0 || pass.first >= note.measures) return;
  const ProgressiveHead& head = frame.head;
  const ProgressiveLayout& layout = pass.job.shared->layout;
  const std::uint32_t lane = threadIdx.x % 32 % pass.lanes;
  const MeasuredRegion<Int> part(pass, blockIdx.x * (32 / pass.lanes) + threadIdx.x % 32 / pass.lanes, lane);
  const std::uint32_t x = part.x, z = part.z, evens = part.evens, odds = part.odds;

  bool works = index < note.measures;
  const std::int8_t* const state = pass.job.states.of(blockIdx.y) + (works ? index : 0) * kMostUnits;
  const std::uint32_t* const special = kSpecial ? pass.job.special_bits(blockIdx.y, pass.level) : nullptr;
  Int most = 0, found = 0, ordinary = 0;  // `ordinary`: without special values, of grids that are stored
  if constexpr (kLast) {
    const bool bounds = kWideRows && pass.bricks.data != nullptr;
    auto* const largest = reinterpret_cast<std::uint64_t*>(shared_memory) + threadIdx.x % 32;
    if (bounds) {
      for (std::uint32_t axis = warp; axis < 3; axis += warps)
        largest[32 * axis] = largest_of_region<Int>(pass, head, part, axis, lane);
      __syncthreads();
    }
    if (works) {
      found = static_cast<Int>(*static_cast<volatile unsigned long long*>(&note.measured[index]));
      if (bounds) {
        const std::uint64_t bound = bound_of_region<Int>(pass, head, state, part, largest, warp, lane);
        works = __any_sync(kAllLanes, evens != 0 && bound > static_cast<std::uint64_t>(found));
      }
    }
    if (__syncthreads_or(works) == 0) return;
  }

  const auto fx = static_cast<std::uint32_t>(pass.from.x), fy = static_cast<std::uint32_t>(pass.from.y),
             fz = static_cast<std::uint32_t>(pass.from.z), tx = static_cast<std::uint32_t>(pass.to.x),
             ty = static_cast<std::uint32_t>(pass.to.y), tz = static_cast<std::uint32_t>(pass.to.z);
  const bool odd_z = kHasZ && 2 * z + 1 < tz;
  const Int* const in = reinterpret_cast<const Int*>(pass.in.of(blockIdx.y, warp));
  const Int* const originals = grid_integers<Int>(pass.job, pass.level);
  const Limits<Int> limits{static_cast<Int>(head.low), static_cast<Int>(head.high)};
  bool cubic[3];
  KnownOfUnit<Int> known[3];
#pragma unroll
  for (int axis = 0; axis < 3; ++axis) {
    const int u = max(pass.unit[axis], 0);
    cubic[axis] = head.cubic[u];
    known[axis] = {head.planes[u], state[u]};
  }
  // the most by which the error of a point that the pass along x makes exceeds that of its prediction
  const Int reach = static_cast<Int>(coefficient_error(known[2].planes, known[2].plane));
  const bool bounded = kLast && !known[2].none();

  Values* const shared = reinterpret_cast<Values*>(shared_memory) + threadIdx.x % 32;
  Values* const own = shared + 2 * 32 * (Items::kShared + warp * Items::kOwn);

  // with one row only, steps 0 and 2 do nothing
  const bool one_row = !kHasZ && fy == 1;
  const auto half_of = [one_row](std::uint32_t s) { return (one_row ? s / 2 : s) % 2; };
  // -- step s: loads row first - 1 + s of known points, and rows from 2 j on of the grid, j = first + s - 3

  const auto put = [&](Values* to, const Int* from, std::uint32_t count, std::uint32_t apart) {
    if constexpr (kWideRows) {
      if (count != 0)
        copy_16_later(to, from);
      else
        *to = Values{};
    } else {
      Values all = {};
#pragma unroll
      for (unsigned k = 0; k < kN; ++k)
        if (k < count) all.v[k] = from[k * apart];
      *to = all;
    }
  };
  const auto put_coefficients = [&](Values* to, int axis, std::uint32_t row_z, std::uint32_t row_y, bool there) {
    const int u = max(pass.unit[axis], 0);
    const std::uint32_t count = there && pass.unit[axis] >= 0 ? (axis == 2 ? odds : evens) : 0;
    const Int* const slots = reinterpret_cast<const Int*>(pass.job.slots_of(blockIdx.y, u));
    const UnitOffsets offsets(layout.unit[u]);
    Values all = {};
    if (count != 0) {
      const CoefficientRow row(offsets, row_z, row_y);
#pragma unroll
      for (unsigned k = 0; k < kN; ++k)
        if (k < count) all.v[k] = slots[row.offset(x + k)];
    }
    *to = all;
  };
  // kWideRows: start and stride of the rows of items, in tiles (rows 32 values apart) or in the grid; own rows start in
  // the reader's grid
  const Int** const offsets = reinterpret_cast<const Int**>(shared_memory + Items::vectors(warps)) + threadIdx.x % 32;
  std::uint64_t* const own_offsets = reinterpret_cast<std::uint64_t*>(offsets + 32 * Items::kShared);
  std::uint64_t* const apart = own_offsets - threadIdx.x % 32 + 32 * Items::kOwn;
  if constexpr (kWideRows) {
    for (std::uint32_t item = warp; item < Items::kShared; item += warps) {
      const Int* at = nullptr;
      std::uint64_t rows_apart = tx, tile_rows = 0;  // 2^tile_rows
      if (item < Items::kOriginals) {
        const std::uint32_t axis = kHasZ && item == Items::kAlongZ ? 0
                                   : item < Items::kAlongX         ? 1
                                                                   : 2,
                            i = axis == 1   ? item - Items::kAlongY
                                : axis == 2 ? (item - Items::kAlongX) / 2
                                            : 0;
        const int u = pass.unit[axis];
        if (u >= 0) {
          const UnitOffsets of(layout.unit[u]);
          rows_apart = of.unit.grid.x * kSlotValues;
          tile_rows = of.form == TileForm::plane ? 7 : 4;
          if ((axis == 2 ? odds : evens) != 0 && (odd_z || (axis != 0 && i == 0)))
            at = reinterpret_cast<const Int*>(pass.job.slots_of(blockIdx.y, u)) +
                 of.tiled_offset(axis == 0 ? z : kRows * z + i, 0, x);
        }
      } else {
        const std::uint32_t i = (item - Items::kOriginals) / 4, half = item % 2 ^ Items::kOriginals % 2;
        if (evens != 0 && (i == 0 || odd_z))
          at = originals + std::uint64_t{kRows * z + i} * ty * tx + 2 * x + half * kN;
      }
      offsets[32 * item] = at;
      if (threadIdx.x % 32 == 0) apart[item] = rows_apart << 3 | tile_rows;
    }
    for (std::uint32_t i = warp; i < Items::kOwn; i += warps) {
      const std::uint32_t at = kHasZ ? min(z + i == 0 ? 0 : z + i - 1, fz - 1) : z;
      own_offsets[32 * i] = std::uint64_t{at} * fy * fx + x;
    }
    __syncthreads();
  }
  const auto begin_wide_step = [&](std::uint32_t s) {
    const std::uint32_t next = part.first + s - 1, j = part.first + s - 3;
    Values* const to = shared + half_of(s) * 32 * Items::kShared;
    for (std::uint32_t item = warp; item < Items::kShared; item += warps) {
      const bool along_z = kHasZ && item == Items::kAlongZ;
      if (s < 3 && !along_z) continue;
      const bool original = item >= Items::kOriginals, along_x = item >= Items::kAlongX;
      const std::uint32_t second = original ? (item - Items::kOriginals) / 2 % 2 : (item - Items::kAlongX) % 2,
                          y = along_z   ? next
                              : along_x ? 2 * j + second
                                        : j,
                          rows_there = along_z   ? fy
                                       : along_x ? ty
                                                 : ty / 2;
      const Int* const at = offsets[32 * item];
      const std::uint64_t how = apart[item];
      const auto bits = static_cast<std::uint32_t>(how % 8);
      const std::uint64_t far = (y >> bits) * (how >> 3) + (y & ((1u << bits) - 1)) * 32;
      put(to + 32 * item, at + far, at != nullptr && y < rows_there ? kN : 0, 1);
    }
    if (works) {
      Values* const mine = own + half_of(s) * 32 * Items::kOwn;
      const Int* const row = in + std::uint64_t{next} * fx;
#pragma unroll
      for (std::uint32_t i = 0; i < Items::kOwn; ++i)
        put(mine + 32 * i, row + own_offsets[32 * i], next < fy ? evens : 0, 1);
    }
  };
  const auto begin_other_step = [&](std::uint32_t s) {
    const std::uint32_t next = part.first + s, j = part.first + s - 3;
    const bool row_there = next >= 1 && next <= fy && evens != 0, there = s >= 3 && j < fy && evens != 0;
    Values* const to = shared + half_of(s) * 32 * Items::kShared;
    for (std::uint32_t item = warp; item < Items::kShared; item += warps) {
      Values* const here = to + 32 * item;
      if (kHasZ && item == Items::kAlongZ) {
        put_coefficients(here, 0, z, next - 1, row_there && odd_z);
      } else if (s < 3) {
        continue;
      } else if (item < Items::kAlongX) {
        const std::uint32_t i = item - Items::kAlongY;
        put_coefficients(here, 1, kRows * z + i, j, there && 2 * j + 1 < ty && (i == 0 || odd_z));
      } else if (item < Items::kOriginals) {
        const std::uint32_t i = (item - Items::kAlongX) / 2, y = 2 * j + (item - Items::kAlongX) % 2;
        put_coefficients(here, 2, kRows * z + i, y, there && y < ty && (i == 0 || odd_z));
      } else {
        const std::uint32_t at = item - Items::kOriginals, i = at / 4, y = 2 * j + at / 2 % 2, half = at % 2;
        const bool here_too = there && y < ty && (i == 0 || odd_z);
        const Int* const row = originals + (std::uint64_t{kRows * z + i} * ty + y) * tx + 2 * x;
        const std::uint32_t points = here_too ? (2 * x + 2 * evens <= tx ? 2 * evens : tx - 2 * x) : 0;
        put(here, row + half * kN, points > half * kN ? min(points - half * kN, kN) : 0, 1);
      }
    }
    if (works) {
      Values* const mine = own + half_of(s) * 32 * Items::kOwn;
#pragma unroll
      for (std::uint32_t i = 0; i < Items::kOwn; ++i) {
        const std::uint32_t at = kHasZ ? min(z + i == 0 ? 0 : z + i - 1, fz - 1) : z;
        put(mine + 32 * i, in + (std::uint64_t{at} * fy + (next - 1)) * fx + x, row_there ? evens : 0, 1);
      }
    }
  };

  const auto begin_step = [&](std::uint32_t s) {
    if constexpr (kWideRows)
      begin_wide_step(s);
    else
      begin_other_step(s);
  };

  const auto largest_error = [&](const Values& made, const Values& original, std::uint32_t count) {
    Int largest = 0;
#pragma unroll
    for (unsigned k = 0; k < kN; ++k) {
      const Int d = made.v[k] - original.v[k], error = d < 0 ? -d : d;
      largest = max(largest, kWideRows || k < count ? error : Int{0});
    }
    return count != 0 ? largest : Int{0};
  };
  // raises the largest errors; `skip`: bits of special points, two apart
  const auto compare = [&](const Values& made, const Values& original, std::uint32_t count, std::uint32_t skip) {
    if (special == nullptr || !kLast) most = max(most, largest_error(made, original, count));
    if constexpr (!kSpecial) return;
    Int& largest = kLast ? most : ordinary;
    if (special != nullptr) largest = max(largest, largest_error(made, with_made(original, made, skip), count));
  };
  const Around around_z = around(z, fz, cubic[0], in);
  const bool first_of_row = x == 0 && evens != 0, last_of_row = evens != 0 && x + kN == fx;
  const bool any_first = __any_sync(kAllLanes, first_of_row), any_last = __any_sync(kAllLanes, last_of_row);
  const bool quadratic_ends = around(0, fx, cubic[2], in).stencil == Stencil::quadratic;
  // completes row y of plane i from its even points
  const auto finish_row = [&](std::uint32_t i, std::uint32_t y, const Values& even, bool there, bool made_before,
                              const Values* items) {
    const Int before = __shfl_up_sync(kAllLanes, even.v[kN - 1], 1, static_cast<int>(pass.lanes)),
              behind = __shfl_down_sync(kAllLanes, even.v[0], 1, static_cast<int>(pass.lanes)),
              further = __shfl_down_sync(kAllLanes, even.v[1], 1, static_cast<int>(pass.lanes));
    if (!there) return;
    const std::uint32_t at = 2 * i + y % 2;
    const Values low_original = items[32 * (Items::kOriginals + 2 * at)],
                 high_original = items[32 * (Items::kOriginals + 2 * at + 1)];
    const std::uint32_t skip = special == nullptr || evens == 0
                                   ? 0
                                   : bits_from(special, (std::uint64_t{kRows * z + i} * ty + y) * tx + 2 * x, 2 * kN);
    Values original;
#pragma unroll
    for (unsigned k = 0; k < kN; ++k) original.v[k] = (k < kN / 2 ? low_original : high_original).v[2 * k % kN];
    if (!kLast || !made_before) compare(even, original, evens, skip);
#pragma unroll
    for (unsigned k = 0; k < kN; ++k) original.v[k] = (k < kN / 2 ? low_original : high_original).v[(2 * k + 1) % kN];
    const auto number_of = [&](unsigned k) {  // known point x - 1 + k
      return k == 0 ? before : k <= kN ? even.v[(k - 1) % kN] : k == kN + 1 ? behind : further;
    };
    Values made;
    if (cubic[2]) {
#pragma unroll
      for (unsigned k = 0; k < kN; ++k)
        made.v[k] = predict<Stencil::cubic>(number_of(k + 1), number_of(k + 2), number_of(k), number_of(k + 3));
    } else {
#pragma unroll
      for (unsigned k = 0; k < kN; ++k)
        made.v[k] = predict<Stencil::linear>(number_of(k + 1), number_of(k + 2), Int{0}, Int{0});
    }
    if constexpr (kWideRows) {
      // a row has at least four known points: its ends are quadratic or like all others, and its last point is a copy
      if (any_first && quadratic_ends) {
        const Int other = predict_around({Stencil::quadratic, false}, Int{0}, number_of(1), number_of(2), number_of(3));
        made.v[0] = first_of_row ? other : made.v[0];
      }
      if (any_last) {
        if (quadratic_ends) {
          const Int other =
              predict_around({Stencil::quadratic, true}, number_of(kN - 2), number_of(kN - 1), number_of(kN), Int{0});
          made.v[kN - 2] = last_of_row ? other : made.v[kN - 2];
        }
        made.v[kN - 1] = last_of_row ? number_of(kN) : made.v[kN - 1];
      }
    } else {
#pragma unroll
      for (unsigned k = 0; k < kN; ++k)
        if (x + k < fx && (x + k == 0 || x + k + 2 >= fx))
          made.v[k] = predict_around(around(x + k, fx, cubic[2], in), number_of(k), number_of(k + 1), number_of(k + 2),
                                     number_of(k + 3));
    }
    const Values d = items[32 * (Items::kAlongX + at)];
    if constexpr (kLast) {
      if (bounded) {
        Int far = 0;
        const Values goal = kSpecial ? with_made(original, made, skip >> 1) : original;
#pragma unroll
        for (unsigned k = 0; k < kN; ++k) {
          const Int e = made.v[k] - goal.v[k] + d.v[k], error = e < 0 ? -e : e;
          if ((kWideRows || k < odds) && error > far) far = error;
        }
        if (odds == 0 || far + reach <= found) return;
      }
    }
    known[2].add(limits, made, d);
    compare(made, original, odds, skip >> 1);
    if constexpr (!kLast) {
      Int* const to =
          reinterpret_cast<Int*>(pass.out.of(blockIdx.y, warp)) + (std::uint64_t{kRows * z + i} * ty + y) * tx + 2 * x;
      if constexpr (kWideRows) {
        if (odds == 0) return;
        Values low, high;
#pragma unroll
        for (unsigned k = 0; k < kN; ++k) {
          low.v[k] = k % 2 == 0 ? even.v[k / 2] : made.v[k / 2];
          high.v[k] = k % 2 == 0 ? even.v[(kN + k) / 2] : made.v[(kN + k) / 2];
        }
        *reinterpret_cast<Values*>(to) = low;
        *reinterpret_cast<Values*>(to + kN) = high;
      } else {
        if (part.end_of_piece) return;
#pragma unroll
        for (unsigned k = 0; k < kN; ++k) {
          if (k < evens) to[2 * k] = even.v[k];
          if (k < odds) to[2 * k + 1] = made.v[k];
        }
      }
    }
  };

  Values rows[4][kRows] = {};
  const std::uint32_t each = one_row ? 2 : 1;
  begin_step(each - 1);
#pragma unroll 1
  for (std::uint32_t s = each - 1; s < pass.steps + 3; s += each) {
    wait_for_copies();
    __syncthreads();
    if (s + each < pass.steps + 3) begin_step(s + each);
    if (!works) continue;
    if constexpr (kLast)
      if (s % 4 == 0) found = static_cast<Int>(*static_cast<volatile unsigned long long*>(&note.measured[index]));
    const Values* const items = shared + half_of(s) * 32 * Items::kShared;
    const Values* const mine = own + half_of(s) * 32 * Items::kOwn;
    rows[3][0] = mine[kHasZ ? 32 : 0];
    if constexpr (kHasZ) {
      rows[3][1] = predict_around(around_z, mine[0], rows[3][0], mine[64], mine[96]);
      known[0].add(limits, rows[3][1], items[32 * Items::kAlongZ]);
    }
    const std::uint32_t j = part.first + s - 3;
    if (s >= 3) {
      const bool in_grid = evens != 0 && j < fy, odd_y = in_grid && 2 * j + 1 < ty;
      const Around around_y = around(j, fy, cubic[1], in);
#pragma unroll
      for (std::uint32_t i = 0; i < kRows; ++i) {
        finish_row(i, 2 * j, rows[1][i], in_grid && (i == 0 || odd_z), i == 0, items);
        Values made = predict_around(around_y, rows[0][i], rows[1][i], rows[2][i], rows[3][i]);
        known[1].add(limits, made, items[32 * (Items::kAlongY + i)]);
        finish_row(i, 2 * j + 1, made, odd_y && (i == 0 || odd_z), false, items);
      }
    }
#pragma unroll
    for (std::uint32_t i = 0; i < kRows; ++i) {
      rows[0][i] = rows[1][i];
      rows[1][i] = one_row ? rows[3][i] : rows[2][i];
      rows[2][i] = rows[3][i];
    }
    if constexpr (kLast) {
      if (__any_sync(kAllLanes, most > found)) {
        found = most = warp_largest(most);
        if (threadIdx.x % 32 == 0) atomicMax(&note.measured[index], static_cast<unsigned long long>(most));
      }
    } else if (s >= 3 && (s + 1 == pass.steps + 3 || (2 * j + 2) % kBrickY == 0)) {
      if (pass.level == 1 && pass.bricks.data != nullptr && evens != 0) {
        const std::uint32_t y = 2 * min(j, fy - 1);
        const auto bricks_x = static_cast<std::uint32_t>(tiles_along(tx, kBrickX)),
                   bricks_y = static_cast<std::uint32_t>(tiles_along(ty, kBrickY));
        auto* const bricks = reinterpret_cast<unsigned long long*>(pass.bricks.of(blockIdx.y, warp));
        atomicMax(bricks + (std::size_t{kRows * z / kBrickZ} * bricks_y + y / kBrickY) * bricks_x + 2 * x / kBrickX,
                  static_cast<unsigned long long>(most));
      }
      found = max(found, special == nullptr ? most : ordinary);
      most = 0;
    }
  }
  if constexpr (!kLast) {
    if (!works) return;
    found = warp_largest(found);
    if (threadIdx.x % 32 == 0) atomicMax(&note.measured[index], static_cast<unsigned long long>(found));
  }
}

}  // namespace pyfilter::cuda
