// SPDX-License-Identifier: BSD-3-Clause
// The functions of one map on rows of values (any_map.hpp): values -> codes and back. Included only by the files with
// instances (cpu/maps_*.cpp).
#pragma once

#include <cstdint>
#include <cstring>
#include <new>

#include "core/target.hpp"
#include "stages/packed/any_map.hpp"
#include "stages/packed/encode_special.hpp"
#include "stages/packed/narrow.hpp"
#include "stages/packed/sampled_code.hpp"
#include "stages/packed/tile_instances.hpp"
#include "stages/packed/values.hpp"
#include "stages/tile_encode.hpp"

PYF_BEGIN_TARGET

// Implements MapFunctions<Map::Code>, which documents each function. `m`: the map constructed by make().
template <class Map>
struct MapSteps {
  using Value = typename Map::Value;
  using Code = typename Map::Code;
  static constexpr bool kQuantizesFloats = Map::kHasSpecial && !std::is_integral_v<Value>;

  // Functions that only entropy coders need.
  static constexpr auto narrow() -> decltype(MapFunctions<Code>::narrow_rows) {
    if constexpr (kQuantizesFloats) return &narrow_rows;
    return nullptr;
  }
  static constexpr auto residuals() -> decltype(MapFunctions<Code>::decode_residuals) {
    if constexpr (kQuantizesFloats) return &decode_residuals;
    return nullptr;
  }

  static const Map& map_at(const void* m) { return *static_cast<const Map*>(m); }
  static void make(const Plan& plan, MapMemory& memory) {
    static_assert(sizeof(Map) <= sizeof memory && alignof(Map) <= 64);
    new (memory) Map(plan);
  }

  // A row as wide as the tile: in memory, or a padded copy of a shorter row.
  static KFN const Loose<Value>* whole_row(const ValueRows& rows, const std::uint8_t* from, Value (&copy)[64]) {
    const Loose<Value>* const row = loose_values<Value>(from, 0);
    if (rows.columns == rows.width) [[likely]]
      return row;
    if (rows.width == 32)
      extend_row<32>(row, rows.columns, copy);
    else
      extend_row<64>(row, rows.columns, copy);
    return loose_values<Value>(copy, 0);
  }
  // Calls take(values) for each encoded run of a row, and end() after each row.
  template <class Take, class End>
  static KFN void for_runs(const ValueRows& rows, const Take& take, const End& end) {
    alignas(64) Value copy[64];
    const std::uint32_t in_row = (rows.worked + 31) / 32 * 32;
    const auto* from = static_cast<const std::uint8_t*>(rows.first);
    for (std::uint32_t row = 0; row < rows.rows; ++row, from += rows.stride) {
      const Loose<Value>* x = whole_row(rows, from, copy);
      const Loose<Value>* const behind = x + in_row;
      std::uintptr_t ahead = reinterpret_cast<std::uintptr_t>(from) + rows.ahead;
      do {
        // hardware prefetchers stop at the end of a page, and rows are too many streams for them
        for (std::size_t line = 0; line < 32 * sizeof(Value); line += 64)
          __builtin_prefetch(reinterpret_cast<const void*>(ahead + line));
        take(x);
        x += 32;
        ahead += 32 * sizeof(Value);
      } while (x != behind);
      end();
    }
  }

  static std::uint32_t encode_rows(const void* m, const ValueRows& all, Code* codes, std::uint32_t* misfits) {
    const Map map = map_at(m);  // a copy: stores to codes cannot change it
    const ValueRows rows = all;
    const std::uint32_t beside = rows.width / 32 - (rows.worked + 31) / 32;  // runs of a row that are not encoded
    std::uint32_t any = 0;
    for_runs(
        rows,
        [&](const Loose<Value>* x) {
          any |= * misfits = static_cast<std::uint32_t>(encode_block<Map, 32>(map, x, codes));
          ++misfits;
          codes += 32;
        },
        [&] {
          codes += 32 * beside;
          misfits += beside;
        });
    return any;
  }

  static std::uint64_t encode_blocks(const void* m, const void* values, std::uint32_t blocks, Code* codes) {
    const Map map = map_at(m);
    const auto* const x = static_cast<const Value*>(values);
    std::uint64_t misfits = 0;
    for (std::uint32_t b = 0; b < blocks; ++b) {
      alignas(64) Code q[32];
      misfits |= encode_block<Map, 32>(map, x + 32 * b, q);
      put_block<kPlane>(q, b, codes);
    }
    return misfits;
  }

  static void sort_row(const void* m, const ValueRows& row, std::uint32_t first_run, PackedScratch<Code>& s) {
    if constexpr (Map::kHasSpecial) {
      alignas(64) Value copy[64];
      const Loose<Value>* const x = whole_row(row, static_cast<const std::uint8_t*>(row.first), copy);
      for (std::uint32_t i = 0; i < row.worked; i += 32) sort_run(map_at(m), x + i, first_run + i / 32, s);
    }
  }
  // Sorts the special values of a run into its masks; a run without misfits has none.
  static KFN void sort_run(const Map& map, const Loose<Value>* x, std::uint32_t run, PackedScratch<Code>& s) {
    TileMarks& marks = s.marks;
    PackedSpecial special{};
    if (marks.misfits[run] != 0) {
      alignas(64) Value values[32];
      copy_bytes<sizeof values>(x, reinterpret_cast<std::uint8_t*>(values));
      sort_packed(map.quantizer, values, *reinterpret_cast<Code(*)[32]>(s.codes + 32 * run), marks.misfits[run],
                  special);
    }
    marks.kinds |= special.masks;
    marks.runs.of[0][run] = special.missing();
    marks.runs.of[1][run] = static_cast<std::uint32_t>(special.nan);
    marks.runs.of[2][run] = static_cast<std::uint32_t>(special.verbatim);
    if constexpr ((Map::kMasks & kMaskZero) != 0) marks.runs.of[3][run] = special.zero;
    if constexpr ((Map::kMasks & kMaskNegative) != 0) marks.runs.of[4][run] = special.negative;
  }

  static bool narrow_rows(const void* m, const ValueRows& all, std::uint32_t* codes, std::uint32_t codes_stride) {
    const Map map = map_at(m);
    const ValueRows rows = all;
    NarrowCodes<Map> narrow(map);
    const std::uint32_t beside = codes_stride - (rows.worked + 31) / 32 * 32;
    for_runs(
        rows,
        [&](const Loose<Value>* x) {
          narrow.take(x, codes);
          codes += 32;
        },
        [&] { codes += beside; });
    return narrow.fit();
  }

  // A value without a code takes the previous code of its run. Before the run's first code it takes that code, in a run
  // without codes 0.
  static void sample_runs(const void* m, const void* values, std::uint32_t runs, Code* codes) {
    const Map map = map_at(m);
    for (std::uint32_t run = 0; run < runs; ++run) {
      const Loose<Value>* const x = loose_values<Value>(values, 32 * run);
      Code* const q = codes + 32 * run;
      if (encode_block<Map, 32>(map, x, q) != 0) sample_special(map, x, q);
    }
  }
  [[gnu::noinline]] static void sample_special(const Map& map, const Loose<Value>* x, Code* q) {
    if constexpr (Map::kHasSpecial) {
      alignas(64) Code flags[32];  // all ones or 0
      for (int i = 0; i < 32; ++i) {
        Code same;
        flags[i] = static_cast<Code>(0 - static_cast<Code>(sampled_code(map.quantizer, Value{x[i]}, same)));
      }
      const auto plain = static_cast<std::uint32_t>(flag_bits<32>(flags));
      if (plain == ~0u) return;  // every value has a code, though some codes miss the bound
      if (plain != 0)
        forward_fill<32>(q, plain);
      else
        std::memset(q, 0, 32 * sizeof(Code));
    }
  }

  static void decode_rows(const void* m, Code* differences, std::uint32_t runs, std::uint32_t rows, std::uint32_t width,
                          void* values) {
    if (runs == 2)
      decode_rows<2>(m, differences, rows, width, static_cast<Value*>(values));
    else
      decode_rows<1>(m, differences, rows, width, static_cast<Value*>(values));
  }
  template <int kRuns>
  static KFN void decode_rows(const void* m, Code* differences, std::uint32_t rows, std::uint32_t width, Value* to) {
    static_assert(kRuns <= 2);
    const Map map = map_at(m);
    for (std::uint32_t row = 0; row < rows; ++row, differences += width, to += width) {
      Code carry = 0;
#pragma GCC unroll 2
      for (int i = 0; i < kRuns; ++i) {
        Code(&run)[32] = *reinterpret_cast<Code(*)[32]>(differences + 32 * i);
        accumulate_block<1>(run);
        map.decode(run, carry, to + 32 * i);
        carry = run[31];
      }
    }
  }

  static void decode_narrow(const void* m, int order, PresentRows present, const Code* d, void* values) {
    using Row = ShortRow<Code>;
    constexpr std::uint32_t kX = TileShape<kPlane>::kX;
    const Map map = map_at(m);
    auto* to = static_cast<Value*>(values);
    const RowMask<Code, 8> along_y(order >= 2 ? 8 : 1);
    const Row& mask = *reinterpret_cast<const Row*>(along_y.mask);
    Row above{}, before;
    for (std::uint32_t y = 0; y < present.y; ++y, d += kX, to += kX) {
      above = *reinterpret_cast<const Row*>(d) + (above & mask);
      alignas(64) Code q[8];
      Row& sums = *reinterpret_cast<Row*>(q);
      move_up<1, Code>(above, before);
      sums = above + before;
      move_up<2, Code>(sums, before);
      sums += before;
      move_up<4, Code>(sums, before);
      sums += before;
      map.decode(q, Code{0}, to);
    }
  }

  static void decode_runs(const void* m, const Code* codes, std::uint32_t runs, void* values) {
    const Map map = map_at(m);
    for (std::uint32_t i = 0; i < 32 * runs; i += 32)
      map.decode(*reinterpret_cast<const Code(*)[32]>(codes + i), Code{0}, static_cast<Value*>(values) + i);
  }

  static Status decode_chain(const void* m, bool differences, const PresentBlocks& present, PackedParts& parts,
                             const ChainTarget& target) {
    const Map map = map_at(m);
    auto* const to = static_cast<Loose<Value>*>(target.values);
    const std::uint8_t *words = parts.words, *descriptor = parts.descriptors, *entry = parts.entries;
    const Code first = unzigzag(static_cast<Code>(parts.first));
    const bool in_array = target.in_array, prefetch_by_slices = !in_array && present.all();
    Code carry = first;
    for (const std::uint32_t b : present) {
      if (in_array)
        ask_for_stores(to + 32 * b, kAskedAhead, 32 * sizeof(Value));
      else if (prefetch_by_slices)
        prefetch_slice<kChain>(sizeof(Value), *target.grid, *target.box, b, target.start, target.stop, target.out);
      const int width = parts.width[b];
      if (parts.is_special(b)) [[unlikely]] {
        Status error;
        words = take_masks(b, sizeof(Value), descriptor, words, parts, error);
        if (words == nullptr) return error;
        descriptor += 2;
      }
      alignas(64) Code z[32];
      const bool exception = parts.has_exception(b);
      const auto store_sums = [&] {
        if (b == 0) carry = static_cast<Code>(carry - z[0]);  // the planes' part of the first residual is ignored
        map.decode(z, carry, to + 32 * b);
        carry = static_cast<Code>(carry + z[31]);
      };
      if (!exception && differences) {
        if (width == 0) {
          for (int i = 0; i < 32; ++i) z[i] = 0;
          map.decode(z, carry, to + 32 * b);
        } else {
          unpack_sums(words, width, z);
          words += 4 * width;
          store_sums();  // in both branches, so that values stay in registers
        }
        continue;
      }
      unpack_residuals(words, width, exception, entry, z);
      for (int i = 0; i < 32; ++i) z[i] = unzigzag(z[i]);
      if (differences) {
        accumulate_block<1>(z);
        store_sums();
      } else {
        if (b == 0) z[0] = first;
        map.decode(z, Code{0}, to + 32 * b);
      }
    }
    return kOk;
  }

  static Code decode_residuals(const void* m, bool differences, const std::uint32_t (&coded)[4],
                               const Code (*blocks)[32], Code before, void* values) {
    const Map map = map_at(m);
    auto* const to = static_cast<Loose<Value>*>(values);
    for (std::uint32_t b = 0; b < kPackedBlocks; ++b) {
      alignas(64) Code z[32];
      if ((coded[b / 32] >> b % 32 & 1) != 0) {
        for (int i = 0; i < 32; ++i) z[i] = unzigzag((*blocks)[i]);
        ++blocks;
        if (differences) accumulate_block<1>(z);
      } else {
        for (Code& d : z) d = 0;
      }
      map.decode(z, differences ? before : Code{0}, to + 32 * b);
      before = static_cast<Code>(before + z[31]);
    }
    return before;
  }
};

template <class Map>
inline constexpr MapFunctions<typename Map::Code> kMapFunctions{
    sizeof(typename Map::Value),   Map::kMasks,
    &MapSteps<Map>::make,          &MapSteps<Map>::encode_rows,
    &MapSteps<Map>::encode_blocks, &MapSteps<Map>::sort_row,
    MapSteps<Map>::narrow(),       &MapSteps<Map>::sample_runs,
    &MapSteps<Map>::decode_rows,   &MapSteps<Map>::decode_narrow,
    &MapSteps<Map>::decode_runs,   &MapSteps<Map>::decode_chain,
    MapSteps<Map>::residuals(),
};

PYF_END_TARGET
