// SPDX-License-Identifier: BSD-3-Clause
// The SIMD vocabulary: vectors of a CPU level and the operations that algorithms are written with. Sums, products,
// logic and shifts of all lanes by one number are operators; vector_avx2.hpp, vector_avx512.hpp and vector_neon.hpp
// have the rest under the same names.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/target.hpp"
#if defined(PYF_LEVEL_AVX512) || defined(PYF_LEVEL_AVX2)
#define PYF_VECTORS 1  // the level has the whole vocabulary
#endif
#if defined(PYF_VECTORS) || defined(PYF_LEVEL_NEON)
#define PYF_FLAG_VECTORS 1  // it has that of flags: load, equal, set_lanes, joined_bits
#endif

#if defined(PYF_FLAG_VECTORS)
PYF_BEGIN_TARGET

#if defined(PYF_LEVEL_AVX512)
inline constexpr int kVectorBytes = 64;
#elif defined(PYF_LEVEL_AVX2)
inline constexpr int kVectorBytes = 32;
#else
inline constexpr int kVectorBytes = 16;
#endif

template <class T>
struct Vectors {
  using Type [[gnu::vector_size(kVectorBytes)]] = T;
  using Loose [[gnu::vector_size(kVectorBytes), gnu::aligned(1), gnu::may_alias]] = T;  // at any address
};
template <class T>
using Vector = typename Vectors<T>::Type;
template <class T>
inline constexpr int kPer = kVectorBytes / static_cast<int>(sizeof(T));  // numbers in a vector

using U32 = Vector<std::uint32_t>;
using U64 = Vector<std::uint64_t>;
using F32 = Vector<float>;
using F64 = Vector<double>;

PYF_END_TARGET

#if defined(PYF_LEVEL_AVX512)
#include "stages/simd/vector_avx512.hpp"
#elif defined(PYF_LEVEL_AVX2)
#include "stages/simd/vector_avx2.hpp"
#elif defined(PYF_LEVEL_NEON)
#include "stages/simd/vector_neon.hpp"
#endif

PYF_BEGIN_TARGET

template <class T>
KFN Vector<T> load(const void* from) {
  return *static_cast<const typename Vectors<T>::Loose*>(from);
}
template <class T>
KFN Vector<T> load(const T* from) {
  return load<T>(static_cast<const void*>(from));
}
template <class T>
KFN void store(void* to, Vector<T> v) {
  *static_cast<typename Vectors<T>::Loose*>(to) = v;
}
template <class T>
KFN void store(T* to, Vector<T> v) {
  store<T>(static_cast<void*>(to), v);
}

PYF_END_TARGET
#endif

#if defined(PYF_VECTORS)
PYF_BEGIN_TARGET

// Numbers below 2^31 as floats, their bits.
KFN U32 float_bits(U32 x) { return (U32) __builtin_convertvector((Vector<std::int32_t>)x, F32); }
// The lowest bits of each lane, as many as `bits` says.
KFN U32 low_bits(U32 x, U32 bits) { return x & ~shifted_left(all_of(~0u), bits); }

PYF_END_TARGET
#endif
