// SPDX-License-Identifier: BSD-3-Clause
// The bytes of a tile of particles to values (docs/format.md, section 12.2).
#pragma once

#include <cstdint>
#include <cstring>

#include "core/cpu_driver.hpp"
#include "core/target.hpp"
#include "core/wire.hpp"
#include "particles/cpu/encode.hpp"
#include "particles/head.hpp"
#include "particles/plan.hpp"

PYF_BEGIN_TARGET

// A static text: the text of fail() belongs to the thread.
inline constexpr Status kBadParticles{Code::corrupt, "corrupt frame: a tile of particles contradicts itself"};
inline constexpr Status kNoParticleMemory{Code::no_memory, "no memory for the codec's scratch buffers"};

// Reads the keys of all ordinary particles; returns the start of offsets, nullptr if the keys are damaged.
template <class T>
inline const std::uint8_t* read_keys(const std::uint8_t* in, const std::uint8_t* end, std::uint32_t ordinary, bool runs,
                                     unsigned bits, TileSpace<T>& space) {
  std::uint64_t key = 0;
  if (!runs) {
    in = read_sequence(in, end, ordinary, space.keys);
    if (in == nullptr) return nullptr;
    for (std::uint32_t i = 0; i < ordinary; ++i) {
      key += space.keys[i];
      space.keys[i] = static_cast<std::uint32_t>(key);
    }
    return key >> bits == 0 ? in : nullptr;
  }
  if (end - in < 4) return nullptr;
  const auto distinct = load_le<std::uint32_t>(in);
  if (distinct == 0 || distinct > ordinary) return nullptr;
  in = read_sequence(in + 4, end, distinct, space.gaps);
  if (in == nullptr) return nullptr;
  in = read_sequence(in, end, distinct, space.counts);
  if (in == nullptr) return nullptr;
  std::uint32_t filled = 0;
  for (std::uint32_t r = 0; r < distinct; ++r) {
    key += space.gaps[r] + std::uint64_t{r != 0};
    const std::uint32_t times = space.counts[r] + 1;
    if (times > ordinary - filled) return nullptr;
    for (std::uint32_t i = 0; i < times; ++i) space.keys[filled + i] = static_cast<std::uint32_t>(key);
    filled += times;
  }
  return filled == ordinary && key >> bits == 0 ? in : nullptr;
}

// Adds offsets to the codes in space.q; returns their end.
template <class T, int D>
inline const std::uint8_t* read_offsets(const std::uint8_t* in, const TileHead<typename FloatTraits<T>::Code>& head,
                                        TileSpace<T>& space) {
  for (std::uint32_t from = 0; from < head.ordinary; from += kGroup) {
    for (int d = 0; d < D; ++d) {
      const unsigned planes = head.planes(d);
      if (planes == 0) continue;
      typename FloatTraits<T>::Code offsets[kGroup];
      unpack_planes(in, static_cast<int>(planes), offsets);
      in += 4 * planes;
      for (std::uint32_t i = 0; i < kGroup; ++i) space.q[d][from + i] += offsets[i];
    }
  }
  return in;
}

// Codes of each axis from segment numbers.
template <class T, int D>
inline void place_segments(const KeyLayout& given, const TileHead<typename FloatTraits<T>::Code>& head,
                           TileSpace<T>& space) {
  using Code = typename FloatTraits<T>::Code;
  const KeyLayout layout = given;
  const std::uint32_t rounded = (head.ordinary + kGroup - 1) / kGroup * kGroup;
  if (layout.bits() == 0) {
    for (int d = 0; d < D; ++d)
      for (std::uint32_t i = 0; i < rounded; ++i) space.q[d][i] = head.origin[d];
    return;
  }
  const unsigned shift = layout.shift;
  Code* __restrict const a = space.q[layout.axis[0]];
  Code* __restrict const b = space.q[layout.axis[1]];
  Code* __restrict const c = space.q[layout.axis[2]];
  std::uint32_t* __restrict const keys = space.keys;
  const Code low_a = head.origin[layout.axis[0]], low_b = head.origin[layout.axis[1]],
             low_c = head.origin[layout.axis[2]];
  for (std::uint32_t i = head.ordinary; i < rounded; ++i) keys[i] = 0;
  for (std::uint32_t i = 0; i < rounded; ++i) {
    std::uint32_t na, nb, nc;
    numbers_of(layout, keys[i], na, nb, nc);
    a[i] = low_a + static_cast<Code>(Code{na} << shift);
    b[i] = low_b + static_cast<Code>(Code{nb} << shift);
    if constexpr (D == 3) c[i] = low_c + static_cast<Code>(Code{nc} << shift);
  }
}

template <class T, int D>
inline Status decode_particles(const Plan& base, const std::uint8_t* bytes, std::size_t size, bool uniform,
                               std::uint64_t number, std::uint64_t start, std::uint64_t stop, void* out) {
  const auto& plan = static_cast<const ParticlePlan&>(base);
  using Code = typename FloatTraits<T>::Code;
  const std::uint64_t first = number * kTileParticles, particles = plan.grid.values / D;
  const auto count = static_cast<std::uint32_t>(std::min<std::uint64_t>(kTileParticles, particles - first));
  const std::uint8_t* const end = bytes + size;
  std::uint8_t* const scratch = thread_scratch(kParticleScratchBytes);
  if (scratch == nullptr) return kNoParticleMemory;
  TileSpace<T> space(scratch);
  TileHead<Code> head;
  const auto word = [bytes](std::uint32_t i) { return load_le<std::uint32_t>(bytes + 4 * std::size_t{i}); };
  const std::uint32_t head_words = uniform ? 0 : read_head<Code, D>(word, size / 4, count, head);
  if (head_words == 0) return kBadParticles;
  const std::uint8_t* in = bytes + 4 * std::size_t{head_words};
  if (head.ordinary != 0) {
    const KeyLayout layout = make_layout(head.width, head.shift);
    if (layout.bits() != 0) in = read_keys(in, end, head.ordinary, head.runs, layout.bits(), space);
    if (in == nullptr) return kBadParticles;
    const std::size_t planes = head.planes();
    const std::size_t offset_bytes = 4 * planes * ((head.ordinary + kGroup - 1) / kGroup);
    if (static_cast<std::size_t>(end - in) < offset_bytes) return kBadParticles;
    place_segments<T, D>(layout, head, space);
    if (planes != 0) in = read_offsets<T, D>(in, head, space);
  }
  if (static_cast<std::size_t>(end - in) != std::size_t{head.stored} * D * sizeof(T)) return kBadParticles;

  const std::uint64_t from = first * D, to = from + std::uint64_t{count} * D;
  const auto step = static_cast<T>(plan.step);
  T* const values = space.values;
  for (int d = 0; d < D; ++d) {  // in place: a code and its value have the same size
    Code* const q = space.q[d];
    for (std::uint32_t i = 0; i < head.ordinary; ++i) q[i] = std::bit_cast<Code>(value_of_code(step, q[i]));
  }
  for (std::uint32_t i = 0; i < head.ordinary; ++i)
    for (int d = 0; d < D; ++d) std::memcpy(values + i * D + d, space.q[d] + i, sizeof(T));
  T* const special = values + std::size_t{head.ordinary} * D;
  std::memcpy(special, in, std::size_t{head.stored} * D * sizeof(T));
  for (std::size_t i = std::size_t{head.stored} * D; i < std::size_t{head.stored + head.repeats} * D; ++i)
    special[i] = special[i - D];
  const std::uint64_t low = std::max(start, from), high = std::min(stop, to);
  if (low < high)
    std::memcpy(static_cast<std::uint8_t*>(out) + (low - start) * sizeof(T), values + (low - from),
                static_cast<std::size_t>(high - low) * sizeof(T));
  return kOk;
}

PYF_END_TARGET
