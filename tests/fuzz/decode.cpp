// SPDX-License-Identifier: BSD-3-Clause
// Fuzz target: frames of one codec (PYF_FUZZ_CODEC, its number in registry.json; 0: of any, and headers that are not
// put right). An input is a frame.
#include "support.hpp"

using namespace pyfilter::fuzz;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  check_decoders(data, size);
  return 0;
}

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t most, unsigned seed) {
  return mutate_frame(data, size, most, seed, PYF_FUZZ_CODEC);
}
