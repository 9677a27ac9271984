// SPDX-License-Identifier: BSD-3-Clause
// What the registry allows: checks of requests (before encoding) and of frames' codec fields (before decoding).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "core/status.hpp"
#include "core/types.hpp"
#include "registry_table.hpp"

namespace pyfilter {

// Row of registry.json, or nullptr.
const registry::CodecRow* find_codec(std::uint8_t id) noexcept;

const char* dtype_name(Dtype dtype) noexcept;

// "f32, f64": the dtypes of a mask (registry::CodecRow), by code.
void list_dtypes(std::uint32_t mask, char* out, std::size_t size) noexcept;
// "1 (absolute), 2 (relative)": the bound modes of a mask, by number.
void list_bounds(std::uint32_t mask, char* out, std::size_t size) noexcept;

// Whether devices have kernels for the codec and dtype of a request, or of a frame; the rest they say themselves.
bool on_devices(std::uint8_t codec, Dtype dtype) noexcept;

// The codec, dtype, parameters and rank of a header fit together (docs/format.md, section 2).
Status check_frame_codec(const FrameInfo& info) noexcept;

// A frame of `frame_bytes` bytes is as long as its header says, holds the values [start, stop), and `value_bytes` is
// their size.
Status check_decode(const FrameInfo& info, std::size_t frame_bytes, std::uint64_t start, std::uint64_t stop,
                    std::size_t value_bytes) noexcept;

// What a frame of `count` values for this request says in its header but for bound, step, sentinel and size; `codec` is
// the request's or the bit-exact one that stands in for it.
FrameInfo frame_template(const Request& request, std::uint8_t codec, std::uint64_t count) noexcept;

// For rooms. What parameters that are not allowed are called, in a frame or in a request.
constexpr Code parameter_code(bool in_frame) { return in_frame ? Code::corrupt : Code::invalid_argument; }
// Parameters from `first` on must be 0.
Status check_zero_parameters(const registry::CodecRow& row, const std::array<std::uint8_t, kParameterBytes>& parameters,
                             std::size_t first, bool in_frame) noexcept;
// A payload of tiles is longer than a directory of so many entries.
Status check_directory_size(std::uint64_t entries, std::uint64_t payload_bytes) noexcept;
// An error of this library: a codec that registry.json allows for a dtype has no kernel for it.
Status no_kernel(const FrameInfo& info) noexcept;

// Writes the header, with the release that its codec needs.
void finish_header(const FrameInfo& info, std::uint8_t* out) noexcept;

}  // namespace pyfilter
