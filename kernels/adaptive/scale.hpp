// SPDX-License-Identifier: BSD-3-Clause
// The scale of a chunk: how its values become r and back, which of them are special, and which decoded values keep the
// bound (FORMAT.md). For encoders, on CPU and GPU.
#pragma once

#include <bit>
#include <cstdint>
#include <type_traits>

#include "adaptive/tile.hpp"

PYF_BEGIN_TARGET

template <class T>
using ValueBits = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;

template <class T>
struct ChunkScale {
  double offset, step, inverse, bound;  // inverse: 1 / step; bound: a little less than the frame's
  ValueBits<T> sentinel;
  bool has_sentinel;

  ChunkScale() = default;
  KFN ChunkScale(double offset_, double step_, double bound_, std::uint64_t sentinel_, bool has_sentinel_)
      : offset(offset_),
        step(step_),
        inverse(1 / step_),
        bound(bound_ * (1 - 0x1p-40)),
        sentinel(static_cast<ValueBits<T>>(sentinel_)),
        has_sentinel(has_sentinel_) {}

  KFN float normalised(T x) const { return static_cast<float>((static_cast<double>(x) - offset) * inverse); }
  KFN T reconstructed(float r) const { return static_cast<T>(offset + step * static_cast<double>(r)); }
  // The kind of a value; *t: the number to code. Values out of the codes' reach are kExact.
  KFN ValueKind kind_of(T value, float* t) const {
    const bool special =
        has_sentinel && (std::bit_cast<ValueBits<T>>(value) == sentinel || (sentinel == 0 && value == 0));  // -0.0
    const float own = normalised(value);
    const bool far = !((own < kFarthest) & (own > -kFarthest));  // NaN included
    *t = special ? 0 : far ? kFarthest : own;
    return special ? kSentinel : far ? kExact : kCoded;
  }
  // Whether a coded value is within the bound after decoding. A decoded zero must come from a zero, and no coded value
  // may become the sentinel.
  KFN bool fits(T value, float r) const {
    const T decoded = reconstructed(r);
    const double error = static_cast<double>(value) - static_cast<double>(decoded);
    return (error <= bound) & (error >= -bound) & ((value != 0) | (decoded == 0)) &
           !(has_sentinel && std::bit_cast<ValueBits<T>>(decoded) == sentinel);
  }
};

PYF_END_TARGET
