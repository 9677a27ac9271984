// SPDX-License-Identifier: BSD-3-Clause
// Encoding frames on the CPU, for codecs: the bound and step of a chunk, and payloads of another codec to fall back on.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/codec.hpp"
#include "core/status.hpp"
#include "core/types.hpp"

namespace pyfilter {

// The absolute bound of a request for these values; a pointwise relative bound is returned as it is. 0: the frame is
// bit-exact.
double resolve_bound(const Request& request, const void* values, std::uint64_t count) noexcept;

// Sets bound, step and sentinel of a frame. False if the bound is too tight for the dtype and the data: the frame must
// be bit-exact.
bool settle_step(const Request& request, const void* values, FrameInfo& info) noexcept;

// Encodes the payload with the codec of `request`, and resets `info` for it; `info` may have had another codec.
Status encode_payload(const Request& request, const void* values, std::uint64_t count, FrameInfo& info,
                      std::uint8_t* out, std::size_t limit, std::size_t* bytes) noexcept;

// Encodes a whole frame. The request has been checked; `out` has max_frame_bytes().
Status encode_frame(const Request& request, const void* values, std::uint64_t count, std::uint8_t* out,
                    std::size_t* frame_bytes) noexcept;

}  // namespace pyfilter
