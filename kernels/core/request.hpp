// SPDX-License-Identifier: BSD-3-Clause
// Checks against registry.json: of requests before encoding, of frames' codec fields before decoding.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "core/status.hpp"
#include "core/types.hpp"
#include "registry_table.hpp"

namespace pyfilter {

// The row of registry.json for a codec id, or nullptr.
const registry::CodecRow* find_codec(std::uint8_t id) noexcept;

const char* dtype_name(Dtype dtype) noexcept;

// "f32, f64": the dtypes of a mask (registry::CodecRow), by code.
void list_dtypes(std::uint32_t mask, char* out, std::size_t size) noexcept;
// "1 (absolute), 2 (relative)": the bound modes of a mask, by number.
void list_bounds(std::uint32_t mask, char* out, std::size_t size) noexcept;

// Whether there are CUDA kernels that decode a frame, and that encode for a request. Kernels may still refuse other
// properties.
bool on_devices(const FrameInfo& info) noexcept;
bool encodes_on_devices(const Request& request) noexcept;
// The format version that frames of a codec with these parameters have.
std::uint8_t version_of(const registry::CodecRow& row,
                        const std::array<std::uint8_t, kParameterBytes>& parameters) noexcept;

// Checks that codec, dtype, parameters and rank of a header fit together (docs/format.md, section 2).
Status check_frame_codec(const FrameInfo& info) noexcept;

// Checks that a frame of `frame_bytes` bytes has the size in its header.
Status check_frame_bytes(std::uint64_t in_header, std::size_t frame_bytes) noexcept;
// The same, and that it holds the values [start, stop), and that
// these take `value_bytes` bytes.
Status check_decode(const FrameInfo& info, std::size_t frame_bytes, std::uint64_t start, std::uint64_t stop,
                    std::size_t value_bytes) noexcept;

// The header of a frame of `count` values for this request, without bound, step, sentinel and size. `codec` is the
// request's codec, or the codec that it falls back on.
FrameInfo frame_template(const Request& request, std::uint8_t codec, std::uint64_t count) noexcept;

// Code of an error about parameters: of a damaged frame, or of a request.
constexpr Code parameter_code(bool in_frame) { return in_frame ? Code::corrupt : Code::invalid_argument; }
// Parameters from `first` on must be 0.
Status check_zero_parameters(const registry::CodecRow& row, const std::array<std::uint8_t, kParameterBytes>& parameters,
                             std::size_t first, bool in_frame) noexcept;
// For codecs: checks that a payload is longer than its directory of `entries` entries.
Status check_directory_size(std::uint64_t entries, std::uint64_t payload_bytes) noexcept;
// The error for a dtype that registry.json allows but the codec has no function for: a fault of this library.
Status no_kernel(const FrameInfo& info) noexcept;

// Writes the header, with the lowest release of pyfilter that can read the codec.
void finish_header(const FrameInfo& info, std::uint8_t* out) noexcept;

}  // namespace pyfilter
