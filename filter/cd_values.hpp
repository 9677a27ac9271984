// SPDX-License-Identifier: BSD-3-Clause
// cd_values <-> Request: the two word layouts of docs/cd_values.md. What a user gives is parsed and checked here;
// dataset.hpp adds what the dataset is.
#pragma once

#include <array>
#include <cstddef>

#include "core/status.hpp"
#include "core/types.hpp"

namespace pyfilter::filter {

inline constexpr std::size_t kMaxWords = 20;  // more would leave HDF5's inline space
inline constexpr int kMaxStoredRank = 5;

struct Words {
  std::array<unsigned, kMaxWords> values{};
  std::size_t count = 0;
};

// The words are the stored form, in whatever version: a chunk with them is a frame.
[[nodiscard]] bool is_stamped(const unsigned* words, std::size_t count) noexcept;

// The stored form. Checks that it is well formed, not that its codec can be used: a decoder does not need it.
Status parse_stored(const unsigned* words, std::size_t count, Request* request) noexcept;

// Either form, checked as far as is possible without a dataset: known codec, bound mode and parameters, a bound that
// is finite and > 0. From the user form, dtype, shape and fill are empty.
Status parse_words(const unsigned* words, std::size_t count, Request* request) noexcept;

// The user form of a request: six words.
[[nodiscard]] Words user_words(const Request& request) noexcept;

// The stored form of a request. Leading dimensions are multiplied together until kMaxStoredRank are left.
[[nodiscard]] Words stored_words(const Request& request) noexcept;

}  // namespace pyfilter::filter
