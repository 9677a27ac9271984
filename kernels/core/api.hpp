// SPDX-License-Identifier: BSD-3-Clause
// The library's C++ entry points: arrays to frames and back. No HDF5, no Python, no exceptions.
// filter/ wraps these for HDF5 and (through c_api) for Python. All are thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/status.hpp"
#include "core/types.hpp"

namespace pyfilter {

// Checks a request against registry.json (codec, dtype, bound, parameters, rank) without any data.
Status check_request(const Request& request) noexcept;

// Largest size of a frame for this request: the header and the raw values. 0 on overflow.
std::size_t max_frame_bytes(const Request& request) noexcept;

// Encodes `value_bytes` bytes of values (host byte order, C order, any alignment) into `frame`.
// `value_bytes` must be the product of the shape times the size of the dtype.
Status encode(const Request& request, const void* values, std::size_t value_bytes, void* frame,
              std::size_t frame_capacity, std::size_t* frame_bytes) noexcept;

// The same on the CPU, whatever the backend is.
Status encode_on_cpu(const Request& request, const void* values, std::size_t value_bytes, void* frame,
                     std::size_t frame_capacity, std::size_t* frame_bytes) noexcept;

// Reads and checks a header. `available` may be only the first bytes of a frame (at least the header); a frame longer
// than `available` is then no error. Everything that the header says is consistent when this returns ok.
Status frame_info(const void* frame, std::size_t available, FrameInfo* info) noexcept;

// Decodes a whole frame. `value_bytes` must be exactly FrameInfo::value_bytes.
Status decode(const void* frame, std::size_t frame_bytes, void* values, std::size_t value_bytes) noexcept;

// Decodes the values [start, stop) in C order, touching only the tiles that hold them.
Status decode_range(const void* frame, std::size_t frame_bytes, std::uint64_t start, std::uint64_t stop, void* values,
                    std::size_t value_bytes) noexcept;

// Smallest and largest finite value, without the fill value; *found is false if there is none. An integer that no
// double represents is rounded into the range: the smallest up, the largest down.
Status value_range(const Request& request, const void* values, std::size_t value_bytes, double* low, double* high,
                   bool* found) noexcept;

// Text of the last failure on this thread, with the values that were wrong ("bound is -1, must be > 0 and finite").
// Valid until the next call on this thread. Empty when nothing failed yet.
const char* last_error() noexcept;

// Threads used inside one call: 0 means one per available core. Returns invalid_argument outside 0..1024.
Status set_thread_count(int count) noexcept;
int thread_count() noexcept;  // the resolved number, >= 1
// Threads for calls from this thread only (0: follow the process setting). For callers that are themselves parallel.
Status set_local_thread_count(int count) noexcept;

// Instruction set used on the CPU: "auto", "baseline", "avx2", "avx512" (x86-64 with GFNI/VBMI). Frames are the same.
Status set_cpu_level(const char* name) noexcept;
const char* cpu_level() noexcept;     // the level in use
bool has_cuda() noexcept;             // whether the CUDA library can be loaded; loads it (bridge/loader.cpp)
const char* cuda_problem() noexcept;  // why it cannot be loaded

// Where encode() and decode() compute: "auto", "cpu", "cuda". With "cuda" the CPU does what the GPU cannot; setting it
// is an error (device) if there is no device.
Status set_backend(const char* name) noexcept;
const char* backend_name() noexcept;

}  // namespace pyfilter
