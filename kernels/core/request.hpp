// SPDX-License-Identifier: BSD-3-Clause
// What the registry allows: checks of requests (before encoding) and of frames' codec fields (before decoding).
#pragma once

#include "core/status.hpp"
#include "core/types.hpp"
#include "registry_table.hpp"

namespace pyfilter {

// Row of registry.json, or nullptr.
const registry::CodecRow* find_codec(std::uint8_t id) noexcept;

// The codec, dtype, parameters and rank of a header fit together (docs/format.md, section 2).
Status check_frame_codec(const FrameInfo& info) noexcept;

}  // namespace pyfilter
