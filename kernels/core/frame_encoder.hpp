// SPDX-License-Identifier: BSD-3-Clause
// Frames on the CPU, for rooms: the bound and step of a chunk, and frames of another codec in the place of one's own.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/codec.hpp"
#include "core/status.hpp"
#include "core/types.hpp"

namespace pyfilter {

// The absolute bound of a request for these values, or its own where that is relative to each value; 0 asks for a
// bit-exact frame.
double resolve_bound(const Request& request, const void* values, std::uint64_t count) noexcept;

// Settles bound, step and sentinel of a frame. False where the bound is too tight for the dtype and data: the frame has
// to be bit-exact.
bool settle_step(const Request& request, const void* values, FrameInfo& info) noexcept;

// Encodes the payload by the codec of `request`, which may be another one than that of `info` so far.
Status encode_payload(const Request& request, const void* values, std::uint64_t count, FrameInfo& info,
                      std::uint8_t* out, std::size_t limit, std::size_t* bytes) noexcept;

// Encodes a whole frame for a request that was checked; `out` has max_frame_bytes().
Status encode_frame(const Request& request, const void* values, std::uint64_t count, std::uint8_t* out,
                    std::size_t* frame_bytes) noexcept;

}  // namespace pyfilter
