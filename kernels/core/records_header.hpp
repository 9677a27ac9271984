// SPDX-License-Identifier: BSD-3-Clause
// Header and table of a container of records (records.hpp; docs/format.md, section 17). No other file knows the layout.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/records.hpp"

namespace pyfilter {

inline constexpr std::size_t kTableEntryBytes = 16;

// Where the table of columns begins.
constexpr std::size_t records_table_at(int rank) { return 40 + 8 * static_cast<std::size_t>(rank); }
// Frames of columns begin at multiples of 8 bytes.
constexpr std::uint64_t padded(std::uint64_t bytes) { return (bytes + 7) / 8 * 8; }

// Writes header and table with their checksum.
void write_records_header(const RecordsInfo& info, std::uint8_t* out) noexcept;

// Checks that bytes between the frames of columns are zero. `frame` holds the whole container.
Status check_padding(const void* frame, const RecordsInfo& info) noexcept;

}  // namespace pyfilter
