// SPDX-License-Identifier: BSD-3-Clause
// Lossless's form `ratio` on the CPU; compiled once per level (core/target.hpp).
#include "lossless/codec.hpp"
#include "lossless/cpu/binned_train.hpp"

PYF_BEGIN_TARGET

template <class T>
inline constexpr TileCoder kUnits{&encode_binned_unit<T>, &decode_binned_unit<T>};

static const TileCoder* find_units(Dtype dtype) {
  switch (dtype_bytes(dtype)) {
    case 1:
      return &kUnits<std::uint8_t>;
    case 2:
      return &kUnits<std::uint16_t>;
    case 4:
      return &kUnits<std::uint32_t>;
    case 8:
      return &kUnits<std::uint64_t>;
    default:
      return nullptr;
  }
}

static void train(const FrameInfo& info, const void* values, BinnedModel& model) {
  const NumberMap plain = model.map;
  switch (dtype_bytes(info.dtype)) {
    case 1:
      return BinnedTrainer<std::uint8_t>(info.shape, values, info.value_count, plain).train(model);
    case 2:
      return BinnedTrainer<std::uint16_t>(info.shape, values, info.value_count, plain).train(model);
    case 4:
      return BinnedTrainer<std::uint32_t>(info.shape, values, info.value_count, plain).train(model);
    default:
      return BinnedTrainer<std::uint64_t>(info.shape, values, info.value_count, plain).train(model);
  }
}

const BinnedCoders kBinnedCoders{&find_units, &train};

PYF_END_TARGET
