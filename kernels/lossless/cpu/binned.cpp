// SPDX-License-Identifier: BSD-3-Clause
// Lossless's form `ratio` on the CPU; compiled once per level (core/target.hpp).
#include <memory>
#include <new>

#include "core/cpu_driver.hpp"
#include "lossless/codec.hpp"
#include "lossless/cpu/binned_unit.hpp"
#include "lossless/train/train.hpp"

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

// Logarithms of counts, made when they are first needed.
static CountLogs count_logs() {
  static const std::unique_ptr<double[]> table = [] {
    std::unique_ptr<double[]> made(new double[kTabledLogs]);
    for (std::uint32_t i = 0; i < kTabledLogs; ++i) made[i] = rough_log2(i);
    return made;
  }();
  return {table.get()};
}

template <class T>
static void train_by(const FrameInfo& info, const void* values, BinnedModel& model) {
  using Space = TrainSpace<NumberOf<T>>;
  auto* const space = reinterpret_cast<Space*>(thread_scratch(sizeof(Space)));
  if (space == nullptr) throw std::bad_alloc();
  space->logs = count_logs();
  train_model(Trained<T, Alone>(Alone{}, info.shape, values, info.value_count, model.map, *space), model);
  if (model.map.kind != NumberKind::dictionary) return;
  model.dictionary.assign(space->dictionary, space->dictionary + model.map.entries);
  model.places.assign(space->places, space->places + kPatternSlots);
  model.map.dictionary = model.dictionary.data();
}

static void train(const FrameInfo& info, const void* values, BinnedModel& model) {
  switch (dtype_bytes(info.dtype)) {
    case 1:
      return train_by<std::uint8_t>(info, values, model);
    case 2:
      return train_by<std::uint16_t>(info, values, model);
    case 4:
      return train_by<std::uint32_t>(info, values, model);
    default:
      return train_by<std::uint64_t>(info, values, model);
  }
}

const BinnedCoders kBinnedCoders{&find_units, &train};

PYF_END_TARGET
