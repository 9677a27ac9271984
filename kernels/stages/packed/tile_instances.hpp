// SPDX-License-Identifier: BSD-3-Clause
// Steps of packed tiles compiled once (cpu/tiles.cpp) for each tile shape and code width, and shared by all codecs. A
// step works on a whole tile, so the call costs nothing.
#pragma once

#include "stages/packed/decode.hpp"
#include "stages/packed/encode.hpp"
#include "stages/packed/tile_values.hpp"

PYF_BEGIN_TARGET

#define PYF_SHAPE_INSTANCES(INSTANCE, S)                                                                               \
  INSTANCE const void* load_values<S>(const TileValues&, void*);                                                       \
  INSTANCE void block_values<S>(const TileValues&, std::uint32_t, void*);                                              \
  INSTANCE void store_values<S>(std::uint32_t, const Grid&, const void*, const TileBox&, std::uint64_t, std::uint64_t, \
                                void*);                                                                                \
  INSTANCE void store_verbatim<S>(std::uint32_t, const Grid&, const TileBox&, const std::uint8_t*, std::uint64_t,      \
                                  std::uint64_t, void*, void*);                                                        \
  INSTANCE Status find_packed_parts<S>(const PackedPlan&, const TileLimits&, const PresentBlocks&,                     \
                                       const std::uint8_t*, std::size_t, PackedParts&);                                \
  INSTANCE void place_specials<S>(const PackedPlan&, const TileLimits&, PackedParts&, void*);                          \
  INSTANCE SpecialBlocks describe_masks<S>(const TileBox&, TileMarks&);

#define PYF_CODE_SHAPE_INSTANCES(INSTANCE, Code, S)                                                   \
  INSTANCE SpecialBlocks describe_specials<Code, S>(const TileBox&, PackedScratch<Code>&);            \
  INSTANCE SpecialBlocks encode_tile_codes<Code, S>(const AnyMap<Code>&, const TileBox&, const void*, \
                                                    PackedScratch<Code>&);

#define PYF_CODE_INSTANCES(INSTANCE, Code)                                                                          \
  INSTANCE EncodedTile write_packed_tile<Code>(const PresentBlocks&, const TileValues&, const SpecialBlocks&, Code, \
                                               const BlockBits&, PackedScratch<Code>&, std::uint8_t*);              \
  INSTANCE void values_of_differences<Code, kPlane>(const AnyMap<Code>&, int, PresentRows, Code*, void*);           \
  INSTANCE void values_of_differences<Code, kVolume>(const AnyMap<Code>&, int, PresentRows, Code*, void*);          \
  INSTANCE void values_of_differences<Code, kColumns>(const AnyMap<Code>&, int, PresentRows, Code*, void*);         \
  PYF_CODE_SHAPE_INSTANCES(INSTANCE, Code, kChain)                                                                  \
  PYF_CODE_SHAPE_INSTANCES(INSTANCE, Code, kPlane)                                                                  \
  PYF_CODE_SHAPE_INSTANCES(INSTANCE, Code, kVolume)                                                                 \
  PYF_CODE_SHAPE_INSTANCES(INSTANCE, Code, kColumns)

#define PYF_TILE_INSTANCES(INSTANCE)          \
  PYF_SHAPE_INSTANCES(INSTANCE, kChain)       \
  PYF_SHAPE_INSTANCES(INSTANCE, kPlane)       \
  PYF_SHAPE_INSTANCES(INSTANCE, kVolume)      \
  PYF_SHAPE_INSTANCES(INSTANCE, kColumns)     \
  PYF_CODE_INSTANCES(INSTANCE, std::uint32_t) \
  PYF_CODE_INSTANCES(INSTANCE, std::uint64_t)

#if !defined(PYF_MAKES_TILE_INSTANCES)
PYF_TILE_INSTANCES(extern template)
#endif

PYF_END_TARGET
