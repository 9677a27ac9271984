// SPDX-License-Identifier: BSD-3-Clause
// Reads and writes frame headers (docs/format.md, section 2). No other file knows the layout of their fields.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/status.hpp"
#include "core/types.hpp"
#include "registry_table.hpp"

namespace pyfilter {

inline constexpr std::size_t kFixedHeaderBytes = 56;
inline constexpr std::uint64_t kMaxValueCount = std::uint64_t{1} << 61;

inline constexpr std::uint8_t kMagic[4] = {0x89, 'P', 'Y', 'F'};
inline constexpr std::uint8_t kDerivedVersion = 8;  // the format version that brought derived types

constexpr std::size_t header_bytes(int rank) { return kFixedHeaderBytes + 8 * static_cast<std::size_t>(rank); }

// Product of the dims, 1 for a scalar; false when it is 2^61 or more.
bool value_count(const Shape& shape, std::uint64_t* count) noexcept;

// CRC-32 as in zlib and PNG, with the checksum's own field (bytes 12 to 15) taken as 0. `bytes` is a multiple of 8.
std::uint32_t header_crc(const std::uint8_t* header, std::size_t bytes) noexcept;

// Writes header_bytes(info.shape.rank) bytes with their checksum. info.header_bytes and value counts are not read.
void write_header(const FrameInfo& info, const registry::CodecRow& codec, std::uint8_t* out) noexcept;

// Reads and checks the header of a frame whose first `available` bytes are given; see api.hpp, frame_info().
Status read_header(const std::uint8_t* frame, std::size_t available, FrameInfo* info) noexcept;

}  // namespace pyfilter
