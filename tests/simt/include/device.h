// SPDX-License-Identifier: BSD-3-Clause
// CUDA's device functions.
#pragma once

#define threadIdx simt_thread()
#define blockIdx simt_block()
#define blockDim simt_block_dim()
#define gridDim simt_grid_dim()  // members of a launch's configuration have these names, too (runtime.h)

inline const simt::Place& simt_thread() { return simt::self->thread; }
inline const simt::Place& simt_block() { return simt::block_place(); }
inline const simt::Place& simt_block_dim() { return simt::grid.threads; }
inline const simt::Place& simt_grid_dim() { return simt::grid.blocks; }

namespace simt {

template <class T>
inline std::uint64_t to_bits(T value) {
  static_assert(sizeof(T) <= 8 && std::is_trivially_copyable_v<T>);
  std::uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof(T));
  return bits;
}
template <class T>
inline T from_bits(std::uint64_t bits) {
  T value;
  std::memcpy(&value, &bits, sizeof(T));
  return value;
}
inline void check_mask(unsigned mask) {
  if (mask != 0xFFFFFFFFu) mistake("an operation of some lanes: %08x", mask);
}
// The value that lane `from` gave; poison if the lane does not exist.
template <class T>
inline T shuffle(unsigned mask, T value, unsigned from) {
  check_mask(mask);
  const Met& met = meet(Meeting::shuffle, to_bits(value));
  return from_bits<T>(met.took_part(from) ? met.values[from] : 0xA5A5A5A5A5A5A5A5u);
}
inline unsigned segment_of(int width) { return self->lane & ~(static_cast<unsigned>(width) - 1); }

template <class Combine>
inline unsigned reduce(unsigned mask, unsigned value, const Combine& combine) {
  check_mask(mask);
  const Met& met = meet(Meeting::reduce, value);
  bool first = true;
  unsigned sum = 0;
  for (unsigned lane = 0; lane < 32; ++lane) {
    if (!met.took_part(lane)) continue;
    const auto x = static_cast<unsigned>(met.values[lane]);
    sum = first ? x : combine(sum, x);
    first = false;
  }
  return sum;
}

}  // namespace simt

// -- lanes of a warp

template <class T>
inline T __shfl_sync(unsigned mask, T value, int from, int width = 32) {
  return simt::shuffle(mask, value, simt::segment_of(width) + (static_cast<unsigned>(from) & (width - 1)));
}
template <class T>
inline T __shfl_up_sync(unsigned mask, T value, unsigned by, int width = 32) {
  const unsigned lane = simt::self->lane, inside = lane - simt::segment_of(width);
  return simt::shuffle(mask, value, by > inside ? lane : lane - by);
}
template <class T>
inline T __shfl_down_sync(unsigned mask, T value, unsigned by, int width = 32) {
  const unsigned lane = simt::self->lane, inside = lane - simt::segment_of(width);
  return simt::shuffle(mask, value, inside + by >= static_cast<unsigned>(width) ? lane : lane + by);
}
template <class T>
inline T __shfl_xor_sync(unsigned mask, T value, int with) {
  return simt::shuffle(mask, value, simt::self->lane ^ static_cast<unsigned>(with));
}
inline unsigned __ballot_sync(unsigned mask, int predicate) {
  simt::check_mask(mask);
  return simt::meet(simt::Meeting::vote, predicate != 0 ? 1 : 0).votes;
}
inline int __any_sync(unsigned mask, int predicate) { return __ballot_sync(mask, predicate) != 0; }
inline int __all_sync(unsigned mask, int predicate) { return __ballot_sync(mask, predicate == 0) == 0; }
inline unsigned __match_any_sync(unsigned mask, unsigned value) {
  unsigned same = 0;
  for (unsigned lane = 0; lane < 32; ++lane)
    if (simt::shuffle(mask, value, lane) == value) same |= 1u << lane;
  return same;
}
inline void __syncwarp(unsigned mask = 0xFFFFFFFFu) {
  simt::check_mask(mask);
  simt::meet(simt::Meeting::barrier, 0);
}
inline unsigned __reduce_add_sync(unsigned mask, unsigned x) {
  return simt::reduce(mask, x, [](unsigned a, unsigned b) { return a + b; });
}
inline unsigned __reduce_or_sync(unsigned mask, unsigned x) {
  return simt::reduce(mask, x, [](unsigned a, unsigned b) { return a | b; });
}
inline unsigned __reduce_min_sync(unsigned mask, unsigned x) {
  return simt::reduce(mask, x, [](unsigned a, unsigned b) { return a < b ? a : b; });
}
inline unsigned __reduce_max_sync(unsigned mask, unsigned x) {
  return simt::reduce(mask, x, [](unsigned a, unsigned b) { return a < b ? b : a; });
}
inline int __reduce_min_sync(unsigned mask, int x) {
  return static_cast<int>(simt::reduce(mask, static_cast<unsigned>(x), [](unsigned a, unsigned b) {
    return static_cast<int>(a) < static_cast<int>(b) ? a : b;
  }));
}
inline int __reduce_max_sync(unsigned mask, int x) {
  return static_cast<int>(simt::reduce(mask, static_cast<unsigned>(x), [](unsigned a, unsigned b) {
    return static_cast<int>(a) < static_cast<int>(b) ? b : a;
  }));
}

// -- threads of a block

inline void __syncthreads() { simt::join_block(0); }
inline int __syncthreads_or(int x) { return static_cast<int>(simt::join_block(x != 0).any); }
inline int __syncthreads_and(int x) { return static_cast<int>(simt::join_block(x != 0).all); }
inline int __syncthreads_count(int x) { return static_cast<int>(simt::join_block(x != 0).count); }
inline void __nanosleep(unsigned) { simt::pause(); }

// -- atomics: relaxed, they order no other access

template <class T, class U>
inline T atomicAdd(T* at, U x) {
  return __atomic_fetch_add(at, static_cast<T>(x), __ATOMIC_RELAXED);
}
template <class T, class U>
inline T atomicOr(T* at, U x) {
  return __atomic_fetch_or(at, static_cast<T>(x), __ATOMIC_RELAXED);
}
namespace simt {
template <class T, class Choose>
inline T update(T* at, const Choose& choose) {
  T before = __atomic_load_n(at, __ATOMIC_RELAXED);
  while (!__atomic_compare_exchange_n(at, &before, choose(before), false, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
  }
  return before;
}
}  // namespace simt
template <class T, class U>
inline T atomicMin(T* at, U x) {
  return simt::update(at, [&](T before) { return std::min(before, static_cast<T>(x)); });
}
template <class T, class U>
inline T atomicMax(T* at, U x) {
  return simt::update(at, [&](T before) { return std::max(before, static_cast<T>(x)); });
}
template <class T, class U, class V>
inline T atomicCAS(T* at, U expected, V x) {
  auto before = static_cast<T>(expected);
  __atomic_compare_exchange_n(at, &before, static_cast<T>(x), false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
  return before;
}

// -- integers

constexpr int __popc(unsigned x) { return std::popcount(x); }
constexpr int __popcll(unsigned long long x) { return std::popcount(x); }
constexpr int __clz(int x) { return std::countl_zero(static_cast<unsigned>(x)); }
constexpr int __clzll(long long x) { return std::countl_zero(static_cast<unsigned long long>(x)); }
constexpr int __ffs(int x) { return x == 0 ? 0 : std::countr_zero(static_cast<unsigned>(x)) + 1; }
constexpr int __ffsll(long long x) { return x == 0 ? 0 : std::countr_zero(static_cast<unsigned long long>(x)) + 1; }
constexpr unsigned __brev(unsigned x) {
  unsigned found = 0;
  for (unsigned i = 0; i < 32; ++i) found |= (x >> i & 1) << (31 - i);
  return found;
}
constexpr unsigned __umulhi(unsigned a, unsigned b) {
  return static_cast<unsigned>(static_cast<unsigned long long>(a) * b >> 32);
}
constexpr unsigned long long __umul64hi(unsigned long long a, unsigned long long b) {
  return static_cast<unsigned long long>(static_cast<unsigned __int128>(a) * b >> 64);
}
constexpr unsigned __funnelshift_l(unsigned low, unsigned high, unsigned by) {
  return static_cast<unsigned>((static_cast<unsigned long long>(high) << 32 | low) << (by & 31) >> 32);
}
constexpr unsigned __funnelshift_lc(unsigned low, unsigned high, unsigned by) {
  return by >= 32 ? low : __funnelshift_l(low, high, by);
}
constexpr unsigned __funnelshift_r(unsigned low, unsigned high, unsigned by) {
  return static_cast<unsigned>((static_cast<unsigned long long>(high) << 32 | low) >> (by & 31));
}
constexpr unsigned __funnelshift_rc(unsigned low, unsigned high, unsigned by) {
  return static_cast<unsigned>((static_cast<unsigned long long>(high) << 32 | low) >> (by < 32 ? by : 32));
}
constexpr unsigned __byte_perm(unsigned x, unsigned y, unsigned pick) {
  const unsigned long long both = static_cast<unsigned long long>(y) << 32 | x;
  unsigned found = 0;
  for (unsigned i = 0; i < 4; ++i) found |= static_cast<unsigned>(both >> (pick >> (4 * i) & 7) * 8 & 0xFF) << (8 * i);
  return found;
}
constexpr int __vimin3_s32(int a, int b, int c) { return std::min(std::min(a, b), c); }
constexpr int __vimax3_s32(int a, int b, int c) { return std::max(std::max(a, b), c); }

// as in CUDA: arguments of two types are converted to the common one
template <class A, class B>
  requires(std::is_arithmetic_v<A> && std::is_arithmetic_v<B>)
constexpr auto min(A a, B b) {
  using C = std::common_type_t<A, B>;
  return static_cast<C>(b) < static_cast<C>(a) ? static_cast<C>(b) : static_cast<C>(a);
}
template <class A, class B>
  requires(std::is_arithmetic_v<A> && std::is_arithmetic_v<B>)
constexpr auto max(A a, B b) {
  using C = std::common_type_t<A, B>;
  return static_cast<C>(a) < static_cast<C>(b) ? static_cast<C>(b) : static_cast<C>(a);
}

// -- numbers

inline float __fmaf_rn(float a, float b, float c) { return std::fma(a, b, c); }
inline double __fma_rn(double a, double b, double c) { return std::fma(a, b, c); }
inline long long __double_as_longlong(double x) { return std::bit_cast<long long>(x); }
inline double __longlong_as_double(long long x) { return std::bit_cast<double>(x); }

// -- memory

template <class T>
inline T __ldg(const T* at) {
  return *at;
}
template <class T>
inline T __ldcs(const T* at) {
  return *at;
}
template <class T>
inline void __stcs(T* at, T value) {
  *at = value;
}
// A promise of a kernel must hold.
#define __builtin_assume(condition) (simt::must_hold(condition, #condition))
namespace simt {
inline void must_hold(bool holds, const char* what) {
  if (!holds) mistake("what a kernel takes for granted does not hold: %s", what);
}
}  // namespace simt
inline bool __isShared(const void* at) { return simt::is_shared(at); }
inline bool __isGlobal(const void* at) { return !simt::is_shared(at); }
inline std::size_t __cvta_generic_to_shared(const void* at) {
  const auto address = reinterpret_cast<std::uintptr_t>(at);
  if (address >> 32 != 0) simt::mistake("an address of shared memory that is none");
  return address;
}
