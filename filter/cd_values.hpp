// SPDX-License-Identifier: BSD-3-Clause
// cd_values <-> Request: the two word layouts of docs/cd_values.md. The user's words are parsed and checked here;
// dataset.hpp adds dtype, shape and fill value of the dataset.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "core/status.hpp"
#include "core/types.hpp"

namespace pyfilter::filter {

inline constexpr std::size_t kMaxWords = 20;  // more would not fit HDF5's inline storage
// Of complex values the imaginary part of the fill value takes the place of a dimension.
constexpr int max_stored_rank(Dtype dtype) { return is_complex(dtype) ? 4 : 5; }
// Word 6 of the stored form: dtype and flags.
inline constexpr std::size_t kTypeWord = 6;
inline constexpr unsigned kTypeWithoutZeros = 1u << 10;  // Request::without_zeros

// The first four parameters of a codec as a word, the first one lowest.
constexpr unsigned parameter_word(const std::array<std::uint8_t, kParameterBytes>& parameters) {
  unsigned word = 0;
  for (unsigned byte = 0; byte < 4; ++byte) word |= unsigned{parameters[byte]} << 8 * byte;
  return word;
}
constexpr void set_parameters(unsigned word, std::array<std::uint8_t, kParameterBytes>& parameters) {
  for (unsigned byte = 0; byte < 4; ++byte) parameters[byte] = static_cast<std::uint8_t>(word >> 8 * byte);
}

struct Words {
  std::array<unsigned, kMaxWords> values{};
  std::size_t count = 0;
};

// Whether the words are the stored form, of any version: chunks of such a dataset are frames.
[[nodiscard]] bool is_stamped(const unsigned* words, std::size_t count) noexcept;

// Parses the stored form. Checks that it is well formed, but not that its codec exists: decoding reads the frame.
Status parse_stored(const unsigned* words, std::size_t count, Request* request) noexcept;

// Parses either form. Checks what does not depend on the dataset: codec, bound mode, parameters, and that the bound is
// finite and > 0. The user form leaves dtype, shape and fill empty.
Status parse_words(const unsigned* words, std::size_t count, Request* request) noexcept;

// Writes the user form of a request: six words.
[[nodiscard]] Words user_words(const Request& request) noexcept;

// Writes the stored form of a request. Leading dimensions are multiplied together until max_stored_rank() are left.
[[nodiscard]] Words stored_words(const Request& request) noexcept;

}  // namespace pyfilter::filter
