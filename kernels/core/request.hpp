// SPDX-License-Identifier: BSD-3-Clause
// What the registry allows: checks of requests (before encoding) and of frames' codec fields (before decoding).
#pragma once

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

// The codec, dtype, parameters and rank of a header fit together (docs/format.md, section 2).
Status check_frame_codec(const FrameInfo& info) noexcept;

}  // namespace pyfilter
