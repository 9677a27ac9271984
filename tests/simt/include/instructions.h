// SPDX-License-Identifier: BSD-3-Clause
// The instructions of inline assembly, which translate.py finds in a table. Operands are in the order of the assembly
// text.
#pragma once

namespace simt {

// -- bits

inline void lop3_select(std::uint32_t& to, std::uint32_t a, std::uint32_t b, std::uint32_t mask) {
  to = (a & mask) | (b & ~mask);
}
inline void lop3_xor(std::uint32_t& to, std::uint32_t a, std::uint32_t b, std::uint32_t c) { to = a ^ b ^ c; }
inline void prmt(std::uint32_t& to, std::uint32_t x, std::uint32_t y, unsigned pick) {
  const std::uint64_t both = std::uint64_t{y} << 32 | x;
  to = 0;
  for (unsigned i = 0; i < 4; ++i) {
    const unsigned which = pick >> (4 * i) & 15;
    auto byte = static_cast<std::uint32_t>(both >> (which & 7) * 8 & 0xFF);
    if (which >= 8) byte = byte >> 7 != 0 ? 0xFF : 0;
    to |= byte << (8 * i);
  }
}
inline void sign_extend_bit(int& to, int x) { to = (x & 1) != 0 ? -1 : 0; }

// -- memory

template <class T>
inline T* at_shared(std::uint32_t address) {
  if (address % sizeof(T) != 0) mistake("an access to shared memory that is not aligned");
  return reinterpret_cast<T*>(static_cast<std::uintptr_t>(address));
}
template <class To>
inline void load_shared(To& to, std::uint32_t address) {
  to = *at_shared<To>(address);
}
inline void store_shared(std::uint32_t address, std::uint32_t word) { *at_shared<std::uint32_t>(address) = word; }
inline void load_shared_four(std::uint32_t& a, std::uint32_t& b, std::uint32_t& c, std::uint32_t& d,
                             std::uint32_t address) {
  const uint4 four = *at_shared<uint4>(address);
  a = four.x, b = four.y, c = four.z, d = four.w;
}
inline void load_four(std::uint32_t& a, std::uint32_t& b, std::uint32_t& c, std::uint32_t& d, const void* from) {
  if (reinterpret_cast<std::uintptr_t>(from) % 16 != 0) mistake("an access to memory that is not aligned");
  uint4 four;
  std::memcpy(&four, from, sizeof(four));
  a = four.x, b = four.y, c = four.z, d = four.w;
}
inline void add_ordered(std::uint32_t& before, std::uint32_t* at, std::uint32_t x) {
  before = __atomic_fetch_add(at, x, __ATOMIC_ACQ_REL);
}
inline void load_ordered(std::uint32_t& to, const std::uint32_t* from) { to = __atomic_load_n(from, __ATOMIC_ACQUIRE); }
inline void store_ordered(std::uint32_t* to, std::uint32_t word) { __atomic_store_n(to, word, __ATOMIC_RELEASE); }
inline void load_word(std::uint32_t& to, const std::uint32_t* from) { to = __atomic_load_n(from, __ATOMIC_RELAXED); }
inline void store_word(std::uint32_t* to, std::uint32_t word) { __atomic_store_n(to, word, __ATOMIC_RELAXED); }
inline void load_pair(std::uint32_t& a, std::uint32_t& b, const uint2* from) {
  const auto pair =
      std::bit_cast<uint2>(__atomic_load_n(reinterpret_cast<const std::uint64_t*>(from), __ATOMIC_RELAXED));
  a = pair.x, b = pair.y;
}
inline void store_pair(uint2* to, std::uint32_t a, std::uint32_t b) {
  __atomic_store_n(reinterpret_cast<std::uint64_t*>(to), std::bit_cast<std::uint64_t>(uint2{a, b}), __ATOMIC_RELAXED);
}
inline void nothing(...) {}

inline void copy_16(std::uint32_t to, const void* from) { copy_later(at_shared<uint4>(to), from, 16); }
inline void copy_some_of_16(std::uint32_t to, const void* from, std::uint32_t bytes) {
  copy_later(at_shared<uint4>(to), from, 16, 16 - bytes);
}

inline void copy_bytes_if(std::uint32_t to, const void* from, std::uint32_t due, std::size_t bytes) {
  if (due != 0) copy_later(at_shared<std::uint32_t>(to), from, bytes);
}
inline void copy_16_if(std::uint32_t to, const void* from, std::uint32_t due) { copy_bytes_if(to, from, due, 16); }

// -- lanes

template <class T>
inline void add_lane_before(T& x, int step, int clamp) {
  const unsigned first = self->lane & static_cast<unsigned>(clamp) >> 8, lane = self->lane;
  const Met& met = meet(Meeting::shuffle, to_bits(x));
  const bool inside = lane >= static_cast<unsigned>(step) && lane - static_cast<unsigned>(step) >= first;
  if (inside && met.took_part(lane - static_cast<unsigned>(step)))
    x += from_bits<T>(met.values[lane - static_cast<unsigned>(step)]);
}
inline void ballot_from(std::uint32_t& giving, std::uint32_t x, std::uint32_t limit) {
  giving = __ballot_sync(0xFFFFFFFFu, x >= limit);
}
inline void spill_from(std::uint32_t& x, std::uint32_t limit, std::uint16_t* to, std::uint16_t word) {
  if (x < limit) return;
  *to = word;
  x >>= 16;
}

}  // namespace simt
