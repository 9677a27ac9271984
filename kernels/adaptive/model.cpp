// SPDX-License-Identifier: BSD-3-Clause
// Models to bits and back (model.hpp).
#include "adaptive/model.hpp"

#include <cstring>

#include "adaptive/model_write.hpp"

namespace pyfilter {
std::size_t write_model(const AdaptiveModel& model, std::uint8_t* out) {
  std::memset(out, 0, kMostModelBytes);
  return write_model_integers(model, causal_taps(model.kind), refining_taps(model.kind), out);
}

void finish_model(AdaptiveModel& model) {
  for (std::uint32_t p = 0; p <= model.levels; ++p)
    for (std::uint32_t set = 0; set < kSets; ++set) finish_set(model.passes[p], set);
}

bool read_model(const std::uint8_t* from, std::size_t available, AdaptiveModel& model, std::size_t* bytes) {
  if (!read_model_integers(from, available, causal_taps(model.kind), refining_taps(model.kind), model, bytes))
    return false;
  finish_model(model);
  return true;
}

}  // namespace pyfilter
