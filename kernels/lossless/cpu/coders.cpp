// SPDX-License-Identifier: BSD-3-Clause
// Lossless on the CPU; compiled once per level (core/target.hpp).
#include "lossless/codec.hpp"
#include "stages/bit_map.hpp"
#include "stages/tile_coder.hpp"

PYF_BEGIN_TARGET

// Floats and integers of the same width share a coder, which tests the kind at run time.
template <class U>
struct WordMap : BitMap<U, false> {
  using typename BitMap<U, false>::Code;
  static_assert(sizeof(U) == sizeof(Code));
  Code floats;  // all bits set for floats, else 0

  explicit WordMap(const Plan& plan) : floats(is_float(plan.dtype) ? static_cast<Code>(~Code{0}) : Code{0}) {}

  template <std::size_t N, class Values, class Note>
  KFN void encode(const Values* x, Code* q, Note&& /*note*/) const {
    const Code mask = floats;
    for (std::size_t i = 0; i < N; ++i) q[i] = WordMap::fold(x[i], mask);
  }
  template <std::size_t N, class Values>
  KFN void decode(const Code (&q)[N], Code offset, Values* x) const {
    const Code mask = floats;
    for (std::size_t i = 0; i < N; ++i) x[i] = WordMap::fold(static_cast<Code>(q[i] + offset), mask);
  }
};

static const TileCoder* find_coder(Dtype dtype, int block_dims) {
  switch (dtype_bytes(dtype)) {
    case 1:
      return tile_coder<BitMap<std::uint8_t, false>>(block_dims);
    case 2:
      return tile_coder<BitMap<std::uint16_t, false>>(block_dims);
    case 4:
      return tile_coder<WordMap<std::uint32_t>>(block_dims);
    case 8:
      return tile_coder<WordMap<std::uint64_t>>(block_dims);
    default:
      return nullptr;
  }
}

const LosslessCoders kLosslessCoders{&find_coder};

PYF_END_TARGET
