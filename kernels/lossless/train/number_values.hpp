// SPDX-License-Identifier: BSD-3-Clause
// Values to numbers and remainders: the encoder's side of lossless/numbers.hpp, for CPU and GPU. Indices of a list of
// values are found by hash tables with open addressing.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "core/bits.hpp"
#include "lossless/numbers.hpp"
#include "stages/team.hpp"

PYF_BEGIN_TARGET

template <class T>
KFN T bits_of_value(const void* values, std::uint64_t index) {
#if defined(__CUDA_ARCH__)
  return static_cast<const T*>(values)[index];  // aligned; a copy of bytes would be loads of bytes
#else
  T x;
  std::memcpy(&x, static_cast<const std::uint8_t*>(values) + index * sizeof(T), sizeof(T));
  return x;
#endif
}

// At least four slots for each pattern.
inline constexpr std::uint32_t kPatternSlotsLog2 = 14, kPatternSlots = 1u << kPatternSlotsLog2;
static_assert(4 * kMostEntries == kPatternSlots);

template <class U>
KFN std::uint32_t slot_of_pattern(U bits) {
  return static_cast<std::uint32_t>((std::uint64_t{bits} * 0x9E3779B97F4A7C15ull) >> (64 - kPatternSlotsLog2));
}
KFN std::uint32_t next_slot(std::uint32_t slot) { return (slot + 1) & (kPatternSlots - 1); }

// Finds the index of an ordered pattern in a list of values that has it. `slots`: an index plus one, or 0.
template <class U>
struct FindPlace {
  const std::uint64_t* dictionary;
  const std::uint32_t* slots;
  std::uint32_t width;

  KFN std::uint32_t operator()(U pattern) const {
    const U above = above_lowest(width, pattern);
    std::uint32_t slot = slot_of_pattern(above);
    while (static_cast<U>(dictionary[slots[slot] - 1u]) != above) slot = next_slot(slot);
    return slots[slot] - 1u;
  }
};
// Fills the slots of a map's list, by all threads of a team.
template <class U, class Team>
KFN void fill_places(const Team& team, const NumberMap& map, std::uint32_t* slots) {
  each(team, kPatternSlots, [&](std::uint32_t i) { slots[i] = 0; });
  team.wait();
  each(team, map.entries, [&](std::uint32_t i) {
    std::uint32_t slot = slot_of_pattern(static_cast<U>(map.dictionary[i]));
    while (team.replace(slots[slot], 0u, i + 1) != 0) slot = next_slot(slot);
  });
  team.wait();
}

// The value of a float's bit pattern.
template <class U>
KFN double float_value(U bits) {
  if constexpr (sizeof(U) == 8)
    return std::bit_cast<double>(bits);
  else
    return static_cast<double>(std::bit_cast<float>(bits));
}
// A value in units of a grid, from its base on, and whether the grid reaches so far (not to NaN).
template <class U>
KFN double grid_units(const NumberMap& map, U bits) {
  const double x = float_value(bits);
  return map.product ? (x - map.base) / map.unit : (x - map.base) * map.unit;
}
template <class U>
KFN bool is_reached(double units) {
  constexpr double kMost = sizeof(U) == 8 ? 9007199254740992.0 : 1073741824.0;
  return (units < kMost) & (units > -kMost);
}
template <class U>
KFN U rounded_units(double units) {
  return static_cast<U>(static_cast<std::make_signed_t<U>>(units < 0 ? units - 0.5 : units + 0.5));
}
// The nearest point of a grid, as a number. Returns false if there is none.
template <class U>
KFN bool nearest_grid_number(const NumberMap& map, U bits, U& number) {
  const double units = grid_units(map, bits);
  if (!is_reached<U>(units)) return false;
  number = rounded_units<U>(units);
  return true;
}

template <class U>
struct NumberOfValue {
  U number, remainder;
};
template <class U>
KFN NumberOfValue<U> on_grid(const NumberMap& map, U bits, U number) {
  return {number, static_cast<U>(ordered(map, bits) - grid_point(map, number))};
}
// The number and the remainder of a value. `before`: the number of the value before, for one that no grid reaches.
template <NumberKind kKind, class U>
KFN NumberOfValue<U> number_of_value(const NumberMap& map, const FindPlace<U>& place, U bits, U before) {
  using S = std::make_signed_t<U>;
  if constexpr (kKind == NumberKind::multiple) {
    if (map.is_float) {
      const bool negative = static_cast<S>(bits) < 0;
      const U magnitude = static_cast<U>(static_cast<U>(bits << 1) >> 1) >> map.shift;
      return {negative ? static_cast<U>(~magnitude) : magnitude, bits & static_cast<U>((U{1} << map.shift) - 1)};
    }
    const U above = static_cast<U>(ordered(map, bits) - static_cast<U>(map.origin));
    return {static_cast<U>(above / static_cast<U>(map.multiple)), static_cast<U>(above % static_cast<U>(map.multiple))};
  } else if constexpr (kKind == NumberKind::grid) {
    nearest_grid_number(map, bits, before);
    return on_grid(map, bits, before);
  } else if constexpr (kKind == NumberKind::dictionary) {
    return {static_cast<U>(place(ordered(map, bits))), 0};
  } else {
    return {ordered(map, bits), 0};
  }
}

// Value `i` of a run that begins at `origin`, which may be before the array; the value is in the array. Before the
// run's first value in it is the number 0.
template <NumberKind kKind, class T, class U>
KFN NumberOfValue<U> number_in_run(const NumberMap& map, const void* values, const FindPlace<U>& place,
                                   std::int64_t origin, std::uint32_t i) {
  const auto bits_at = [&](std::int64_t at) {
    return static_cast<U>(bits_of_value<T>(values, static_cast<std::uint64_t>(at)));
  };
  U before = 0;
  if constexpr (kKind == NumberKind::grid)
    for (std::int64_t at = origin + i; at >= 0 && at >= origin && !nearest_grid_number(map, bits_at(at), before);) --at;
  return number_of_value<kKind>(map, place, bits_at(origin + i), before);
}

// Calls put(i, number) for the values of a grid in [first, end), in loops that the compiler vectorises. Returns whether
// the grid reaches all of them.
template <class U, class Bits, class Put>
inline bool each_on_grid(const NumberMap& of, std::uint32_t first, std::uint32_t end, const Bits& bits_at,
                         const Put& put) {
  constexpr std::uint32_t kTogether = 256;
  const NumberMap map = of;  // no store changes it
  U bits[kTogether], numbers[kTogether];
  U before = 0;
  bool all = true;
  for (std::uint32_t from = first; from < end; from += kTogether) {
    const std::uint32_t count = end - from < kTogether ? end - from : kTogether;
    std::uint32_t reached = 0;
    for (std::uint32_t k = 0; k < count; ++k) {
      bits[k] = bits_at(from + k);
      const double units = grid_units(map, bits[k]);
      const bool reaches = is_reached<U>(units);
      numbers[k] = rounded_units<U>(reaches ? units : 0);
      reached += reaches ? 1 : 0;
    }
    for (std::uint32_t k = 0; reached != count && k < count; ++k) {
      if (!is_reached<U>(grid_units(map, bits[k]))) numbers[k] = before;
      before = numbers[k];
    }
    before = numbers[count - 1];
    all = all && reached == count;
    for (std::uint32_t k = 0; k < count; ++k) put(from + k, on_grid(map, bits[k], numbers[k]));
  }
  return all;
}

// Calls put(run, i, number) for the values of `runs` runs of `length` values, by all threads of a team. Run r begins at
// origin(r); values before the array are left out. A team of one thread returns false if a grid does not reach a value:
// then numbers depend on where runs begin.
template <class T, class U, class Team, class Origin, class Put>
KFN bool each_number(const Team& team, const NumberMap& map, const void* values, const FindPlace<U>& place,
                     std::uint32_t runs, std::uint32_t length, const Origin& origin, const Put& put) {
  bool all = true;
  with_number_kind(map.kind, [&]<NumberKind kKind>() {
    if constexpr (Team::kSize == 1) {  // value by value, so that a number is found once
      for (std::uint32_t run = 0; run < runs; ++run) {
        const std::int64_t from = origin(run);
        if (from + static_cast<std::int64_t>(length) <= 0) continue;
        const auto first = static_cast<std::uint32_t>(from < 0 ? -from : 0);
        const auto bits_at = [&](std::uint32_t i) {
          return static_cast<U>(bits_of_value<T>(values, static_cast<std::uint64_t>(from + i)));
        };
        if constexpr (kKind == NumberKind::grid) {
          const auto put_one = [&](std::uint32_t i, const NumberOfValue<U>& own) { put(run, i, own); };
          all = each_on_grid<U>(map, first, length, bits_at, put_one) && all;
        } else {
          const NumberMap held = map;  // no store changes it
          for (std::uint32_t i = first; i < length; ++i)
            put(run, i, number_of_value<kKind>(held, place, bits_at(i), U{0}));
        }
      }
    } else {
      each_in_rows(team, runs, length, [&](std::uint32_t run, std::uint32_t i, std::uint32_t) {
        const std::int64_t from = origin(run);
        if (from + i >= 0) put(run, i, number_in_run<kKind, T>(map, values, place, from, i));
      });
    }
  });
  return all;
}

// Sign-extends a number of a value with fewer bits than U.
template <class U>
KFN U wrapped(std::uint32_t width, U number) {
  const std::uint32_t unused = static_cast<std::uint32_t>(8 * sizeof(U)) - width;
  return static_cast<U>(static_cast<std::make_signed_t<U>>(static_cast<U>(number << unused)) >> unused);
}

PYF_END_TARGET
