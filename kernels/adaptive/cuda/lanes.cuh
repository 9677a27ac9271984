// SPDX-License-Identifier: BSD-3-Clause
// The 32 lanes of cpu/lanes.hpp as the threads of a warp: each thread holds one lane's binary32 or 32-bit integer. The
// names are equal, so that CPU and GPU share the code that walks over tiles.
#pragma once

#include <bit>
#include <cstdint>

#include "core/target.hpp"

#define PYF_ON_LANES __device__ __forceinline__
#define PYF_LANES static PYF_ON_LANES

namespace pyfilter::cuda {

inline constexpr std::uint32_t kRows = 32, kAllRows = 0xFFFFFFFFu;

PYF_LANES std::uint32_t this_lane() { return threadIdx.x % kRows; }
PYF_LANES std::uint32_t lanes_below() { return (1u << this_lane()) - 1; }
PYF_LANES std::uint32_t popcount(std::uint32_t bits) { return static_cast<std::uint32_t>(__popc(bits)); }

// As a condition, -1 is true and 0 is false.
struct Ints {
  std::int32_t v;

  PYF_LANES Ints all(std::int32_t x) { return {x}; }
  PYF_LANES Ints load(const std::int32_t* from) { return {from[this_lane()]}; }
  PYF_LANES Ints lanes() { return {static_cast<std::int32_t>(this_lane())}; }
};
struct Floats {
  float v;

  PYF_LANES Floats all(float x) { return {x}; }
};

#define PYF_LANEWISE(op)                                                                                    \
  PYF_LANES Ints operator op(const Ints& a, const Ints& b) {                                                \
    return {static_cast<std::int32_t>(static_cast<std::uint32_t>(a.v) op static_cast<std::uint32_t>(b.v))}; \
  }
PYF_LANEWISE(+)
PYF_LANEWISE(-)
PYF_LANEWISE(&)
PYF_LANEWISE(|)
PYF_LANEWISE(^)
PYF_LANEWISE(*)
#undef PYF_LANEWISE
PYF_LANES Ints operator<<(const Ints& a, const Ints& b) {
  return {static_cast<std::int32_t>(static_cast<std::uint32_t>(a.v) << (b.v & 31))};
}
PYF_LANES Ints operator>>(const Ints& a, const Ints& b) { return {a.v >> (b.v & 31)}; }
PYF_LANES Ints operator~(const Ints& a) { return {~a.v}; }

#define PYF_COMPARE(Operand, op) \
  PYF_LANES Ints operator op(const Operand& a, const Operand& b) { return {a.v op b.v ? -1 : 0}; }
PYF_COMPARE(Ints, ==)
PYF_COMPARE(Ints, <)
PYF_COMPARE(Ints, >=)
PYF_COMPARE(Floats, ==)
PYF_COMPARE(Floats, <)
PYF_COMPARE(Floats, >=)
#undef PYF_COMPARE

PYF_LANES Floats operator+(const Floats& a, const Floats& b) { return {a.v + b.v}; }
PYF_LANES Floats operator-(const Floats& a, const Floats& b) { return {a.v - b.v}; }
PYF_LANES Floats operator*(const Floats& a, const Floats& b) { return {a.v * b.v}; }

PYF_LANES Ints bits_of(const Floats& a) { return {std::bit_cast<std::int32_t>(a.v)}; }
PYF_LANES Floats as_floats(const Ints& a) { return {std::bit_cast<float>(a.v)}; }
PYF_LANES Ints shift_right(const Ints& a, int n) { return {a.v >> n}; }
PYF_LANES Ints select(const Ints& condition, const Ints& yes, const Ints& no) {
  return {condition.v != 0 ? yes.v : no.v};
}
PYF_LANES Floats select(const Ints& condition, const Floats& yes, const Floats& no) {
  return {condition.v != 0 ? yes.v : no.v};
}
PYF_LANES Floats absolute(const Floats& a) { return as_floats(bits_of(a) & Ints::all(0x7FFFFFFF)); }
PYF_LANES Floats least(const Floats& a, const Floats& b) { return {a.v < b.v ? a.v : b.v}; }
PYF_LANES Floats most(const Floats& a, const Floats& b) { return {a.v < b.v ? b.v : a.v}; }

// Returns a bit for each lane, lane 0 lowest. All lanes must call it together.
PYF_LANES std::uint32_t bits_of_condition(const Ints& c) { return __ballot_sync(kAllRows, c.v); }
PYF_LANES Ints condition_of_bits(std::uint32_t bits) { return {(bits >> this_lane() & 1) != 0 ? -1 : 0}; }

PYF_LANES Floats fused(const Floats& a, const Floats& b, const Floats& c) { return {__fmaf_rn(a.v, b.v, c.v)}; }
PYF_LANES Floats look_up(const float* table, const Ints& index) { return {table[index.v]}; }
PYF_LANES Ints gather(const std::uint32_t* table, const Ints& index) {
  return {static_cast<std::int32_t>(table[index.v])};
}

// An address in global memory that the compiler does not compute again: else it adds all parts for each neighbour.
PYF_LANES const float* address_here(const float* at) {
  asm("" : "+l"(at));
  __builtin_assume(__isGlobal(at));
  return at;
}

// The nearest integer, for |a| < 2^22, and the same as an integer.
PYF_LANES Floats nearest(const Floats& a) {
  const Floats magic = Floats::all(12582912.0f);
  return (a + magic) - magic;
}
PYF_LANES Ints integer_of(const Floats& a) { return bits_of(a + Floats::all(12582912.0f)) - Ints::all(0x4B400000); }
PYF_LANES Floats float_of(const Ints& a) {  // |a| < 2^22
  return as_floats(a + Ints::all(0x4B400000)) - Floats::all(12582912.0f);
}

}  // namespace pyfilter::cuda
