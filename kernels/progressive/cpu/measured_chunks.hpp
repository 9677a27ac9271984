// SPDX-License-Identifier: BSD-3-Clause
// Chunks of points: a reader's values and largest errors, bounds of unknown errors, and which chunks must be computed
// by these bounds (measured_finest.hpp).
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "core/target.hpp"
#include "progressive/choices.hpp"
#include "progressive/layout.hpp"
#include "progressive/transform.hpp"

PYF_BEGIN_TARGET

inline constexpr std::uint64_t kChunk = 16, kChunkPadding = 2 * kChunk;
// Neighbouring rows before and behind a row, besides itself; rows beyond the block's edge do not exist, so their chunks
// have errors of 0.
inline constexpr std::uint64_t kRowsBefore = 1, kRowsBehind = 2;

// Rows of units, axis by axis. Along z: the rows of a plane of odd z. Along y: the rows of odd y of a plane. Along x:
// all rows, even y first.
template <class Int>
struct FinestArrays {
  Int *coefficients[3] = {}, *originals[3] = {};  // in rows of whole chunks
  Int* largest[3] = {};  // largest coefficient of each chunk and its neighbours; along x of the chunk alone
  Int *known = nullptr, *above = nullptr;  // original integers of the next grid; its errors around chunks
  Int* around[2] = {};                     // errors around chunks of a plane's rows, or their bounds
  Int *made[2] = {}, *error = nullptr, *most = nullptr;
  std::uint8_t* wanted[2] = {};    // flags of chunks to compute
  std::uint8_t* at_end = nullptr;  // chunks of a plane that have odd points with other stencils

  template <class Take>
  void allocate(Extents fine, Extents coarse, Take&& take) {
    const std::uint64_t chunks = (coarse.x + kChunk - 1) / kChunk, pitch = chunks * kChunk;
    const std::uint64_t rows[3] = {fine.z / 2 * coarse.y, fine.z * (fine.y / 2), fine.z * fine.y};
    for (int a = 0; a < 3; ++a) {
      coefficients[a] = take(rows[a] * pitch);
      originals[a] = take(rows[a] * pitch);
      largest[a] = take(rows[a] * chunks);
    }
    known = take(coarse.z * coarse.y * pitch);
    const std::uint64_t padded = (coarse.y + kRowsBefore + kRowsBehind) * chunks;
    above = take(coarse.z * padded);
    around[0] = take(padded);
    around[1] = take(fine.y / 2 * chunks);
    made[0] = take(coarse.y * pitch + 2 * kChunkPadding);
    made[1] = take(fine.y / 2 * pitch + 2 * kChunkPadding);
    most = take(coarse.y * chunks);
    error = take(coarse.y * pitch + 2 * kChunkPadding);
    for (std::uint8_t** const w : {&wanted[0], &wanted[1], &at_end})
      *w = reinterpret_cast<std::uint8_t*>(take(padded + fine.y * chunks + 8));
  }
};

template <class Int>
KFN Int larger(Int a, Int b) {
  return a > b ? a : b;
}

// A reader's knowledge of coefficients, the alternative to KnownPart.
struct NothingKnown {};
struct AllKnown {
  template <class Int>
  KFN Int operator()(Int d) const {
    return d;
  }
};

// Calls use(stencil, known) with constants: known is a reader's knowledge of coefficients from the planes down to
// `plane`.
template <class Int, class Use>
KFN void by_kind(Stencil stencil, bool some, int plane, Use&& use) {
  const auto go = [&](auto s) {
    if (!some)
      use(s, NothingKnown{});
    else if (plane < 0)
      use(s, AllKnown{});
    else
      use(s, KnownPart<Int>(plane));
  };
  switch (stencil) {
    case Stencil::copy:
      return go(std::integral_constant<Stencil, Stencil::copy>{});
    case Stencil::linear:
      return go(std::integral_constant<Stencil, Stencil::linear>{});
    case Stencil::quadratic:
      return go(std::integral_constant<Stencil, Stencil::quadratic>{});
    case Stencil::cubic:
      return go(std::integral_constant<Stencil, Stencil::cubic>{});
  }
}

// Computes a reader's values of chunks with one stencil, stores them in `to` (kStored), and the magnitudes of their
// errors. Returns the largest error, or 0 if the values are stored.
template <Stencil S, bool kStored, class Known, class Int>
KFN Int errors_of_chunks(const Neighbours<Int> from, const Limits<Int> limits, const Known known,
                         const Int* __restrict coefficients, const Int* __restrict original, std::uint64_t chunks,
                         Int* __restrict to, Int* __restrict error) {
  Int most = 0;
  for (std::size_t i = 0; i < kChunk * chunks; ++i) {
    Int v;
    if constexpr (std::is_same_v<Known, NothingKnown>)
      v = clamp_to(limits, predict_at<S>(from, i));
    else
      v = inverse_value(limits, predict_at<S>(from, i), known(coefficients[i]));
    const Int e = static_cast<Int>(original[i] - v), m = e < 0 ? -e : e;
    if constexpr (kStored) to[i] = v;
    error[i] = m;
    if constexpr (!kStored) most = larger(most, m);
  }
  return most;
}

// The largest magnitude in each chunk; and in the four values before and behind it as well, the predecessors of points
// between its own.
template <class Int>
inline void largest_of_chunks(const Int* magnitudes, std::uint64_t chunks, Int* __restrict to) {
  for (std::uint64_t k = 0; k < chunks; ++k) {
    const Int* const at = magnitudes + k * kChunk;
    Int most = 0;
    for (int i = 0; i < static_cast<int>(kChunk); ++i) most = larger(most, at[i]);
    to[k] = most;
  }
}
template <class Int>
inline void largest_around_chunks(const Int* magnitudes, std::uint64_t chunks, Int* __restrict to) {
  for (std::uint64_t k = 0; k < chunks; ++k) {
    const Int* const at = magnitudes + k * kChunk;
    Int most = 0;
    for (int i = -4; i < static_cast<int>(kChunk) + 4; ++i) most = larger(most, at[i]);
    to[k] = most;
  }
}

// Applies error_after_pass to a known error.
template <class Int>
KFN Int grown(bool cubic, Int error) {
  using Unsigned = std::make_unsigned_t<Int>;
  return cubic ? static_cast<Int>(static_cast<Unsigned>(error) + (static_cast<Unsigned>(error) + 3) / 4) : error;
}

// Bounds of the errors of `count` chunks. They fit Int: for integers of b bits (27 or 56) errors and coefficients are
// below 2^(b + 1). So the bound after three passes is below 6 * 2^(b + 1). A bound comes from the errors of four
// neighbours, and the unknown part of coefficients.
template <bool kCubic, class Int>
inline void bounds_of_chunks(const Int* a, const Int* b, const Int* c, const Int* d, const Int* largest, Int missing,
                             std::uint64_t count, Int* __restrict to) {
  for (std::uint64_t i = 0; i < count; ++i) {
    const Int one = a[i] > b[i] ? a[i] : b[i], two = c[i] > d[i] ? c[i] : d[i], most = one > two ? one : two;
    to[i] = static_cast<Int>(grown(kCubic, most) + (largest[i] < missing ? largest[i] : missing));
  }
}

// Marks chunks whose error, or the error between whose points, can be above `most`.
template <bool kCubic, class Int>
inline void want_chunks(const Int* around, const Int* largest, Int missing, Int most, std::uint64_t count,
                        std::uint8_t* __restrict to) {
  for (std::uint64_t i = 0; i < count; ++i) {
    const Int bound = static_cast<Int>(grown(kCubic, around[i]) + (largest[i] < missing ? largest[i] : missing));
    to[i] = bound > most ? 1 : 0;
  }
  std::memset(to + count, 0, 8);
}

// Lowers bounds to the errors found; returns the largest bound.
template <class Int>
KFN Int lower_bounds(const Int* found, std::uint64_t count, Int* __restrict bound) {
  Int most = 0;
  for (std::uint64_t k = 0; k < count; ++k) {
    bound[k] = found[k] < bound[k] ? found[k] : bound[k];
    most = larger(most, bound[k]);
  }
  return most;
}

inline constexpr std::uint64_t kAllWanted = 0x0101010101010101;

// Calls visit(first, last) for runs of marked chunks among `count`, merging runs at most `gap` chunks apart.
template <class Visit>
KFN void visit_wanted(const std::uint8_t* wanted, std::uint64_t count, std::uint64_t gap, Visit&& visit) {
  for (std::uint64_t i = 0; i < count;) {
    std::uint64_t eight;
    std::memcpy(&eight, wanted + i, 8);
    if (eight == 0) {
      i += 8;
      continue;
    }
    i += static_cast<std::uint64_t>(std::countr_zero(eight)) / 8;
    if (i >= count) return;
    std::uint64_t last = i + 1;
    for (std::uint64_t k = last; k < count && k <= last + gap;) {
      std::memcpy(&eight, wanted + k, 8);
      const auto more = static_cast<std::uint64_t>(std::countr_zero(eight ^ kAllWanted)) / 8;
      if (more != 0) last = std::min(k + more, count);
      k += more == 8 ? 8 : more + 1;
    }
    visit(i, last);
    i = last;
  }
}

// The union of two sets of chunks.
inline void add_wanted(const std::uint8_t* from, std::uint64_t count, std::uint8_t* __restrict to) {
  for (std::uint64_t i = 0; i < count; ++i) to[i] = static_cast<std::uint8_t>(to[i] | from[i]);
}

PYF_END_TARGET
