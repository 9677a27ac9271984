// SPDX-License-Identifier: BSD-3-Clause
// Joins the host library, libh5pyfilter.so (the plugin, the C ABI, the CPU), and cuda/libh5pyfilter_cuda.so. The host
// library loads the CUDA library when a device is first needed (loader.cpp). Neither links the other: each gives the
// other a table of functions. Each function is listed once here. The macros make the tables. In the library that does
// not define a function they also make one of the same name that calls through the table.
#pragma once

#include <cstddef>
#include <cstdint>

#include "adaptive/grid.hpp"
#include "adaptive/taps.hpp"
#include "core/base_values.hpp"
#include "core/cuda/channel.hpp"
#include "core/cuda/driver.hpp"
#include "core/grid.hpp"
#include "core/half_values.hpp"
#include "core/status.hpp"
#include "core/types.hpp"
#include "particles/device.hpp"
#include "progressive/device.hpp"
#include "registry_table.hpp"

namespace pyfilter {

struct ProgressiveSummary;
struct ProgressivePart;

// Functions of the host library that the CUDA library calls: F(result, name, (parameters), (arguments)).
#define PYF_HOST_FUNCTIONS(F)                                                                                          \
  F(AdaptiveTaps, adaptive_taps, (TileKind kind), (kind))                                                              \
  F(FrameInfo, base_info, (const FrameInfo& info), (info))                                                             \
  F(Request, base_request, (const Request& request), (request))                                                        \
  F(Status, check_decode,                                                                                              \
    (const FrameInfo& info, std::size_t frame_bytes, std::uint64_t start, std::uint64_t stop,                          \
     std::size_t value_bytes),                                                                                         \
    (info, frame_bytes, start, stop, value_bytes))                                                                     \
  F(Status, check_order_request,                                                                                       \
    (const Request& request, std::size_t value_bytes, std::uint64_t* count, int* coordinates),                         \
    (request, value_bytes, count, coordinates))                                                                        \
  F(Status, check_request, (const Request& request), (request))                                                        \
  F(Status, derived_header,                                                                                            \
    (const Request& request, const void* frame, std::size_t frame_bytes, void* header, std::size_t* derived_bytes),    \
    (request, frame, frame_bytes, header, derived_bytes))                                                              \
  F(const char*, dtype_name, (Dtype dtype), (dtype))                                                                   \
  F(bool, encodes_on_devices, (const Request& request), (request))                                                     \
  F(Status, encode_on_cpu,                                                                                             \
    (const Request& request, const void* values, std::size_t value_bytes, void* frame, std::size_t frame_capacity,     \
     std::size_t* frame_bytes),                                                                                        \
    (request, values, value_bytes, frame, frame_capacity, frame_bytes))                                                \
  F(Request, exact_request, (const Request& request), (request))                                                       \
  F(const registry::CodecRow*, find_codec, (std::uint8_t id), (id))                                                    \
  F(void, finish_header, (const FrameInfo& info, std::uint8_t* out), (info, out))                                      \
  F(Status, frame_info, (const void* frame, std::size_t available, FrameInfo* info), (frame, available, info))         \
  F(FrameInfo, frame_template, (const Request& request, std::uint8_t codec, std::uint64_t count),                      \
    (request, codec, count))                                                                                           \
  F(HalfBound, half_bound, (const Request& base, Dtype dtype, const HalfExtremes& extremes), (base, dtype, extremes))  \
  F(Request, lorenzo_request, (const Request& request), (request))                                                     \
  F(AdaptiveGrid, make_adaptive_grid, (const Shape& shape, std::uint64_t values, bool across),                         \
    (shape, values, across))                                                                                           \
  F(Grid, make_grid, (const Shape& shape, std::uint64_t values, int block_dims), (shape, values, block_dims))          \
  F(Grid, make_packed_grid, (const Shape& shape, std::uint64_t values, int tile_shape), (shape, values, tile_shape))   \
  F(Grid, make_run_grid, (std::uint64_t values, std::uint64_t tile_values), (values, tile_values))                     \
  F(std::size_t, max_frame_bytes, (const Request& request), (request))                                                 \
  F(bool, may_become_fill, (const Request& base, const HalfExtremes& extremes, double bound), (base, extremes, bound)) \
  F(Status, name_half_frame,                                                                                           \
    (const Request& request, double bound, void* frame, std::size_t* frame_bytes, FrameInfo* info),                    \
    (request, bound, frame, frame_bytes, info))                                                                        \
  F(Status, no_kernel, (const FrameInfo& info), (info))                                                                \
  F(bool, on_devices, (const FrameInfo& info), (info))                                                                 \
  F(void, parallel_for,                                                                                                \
    (int threads, std::uint64_t count, void (*run)(void* context, std::uint64_t index), void* context),                \
    (threads, count, run, context))                                                                                    \
  F(Status, progressive_parts,                                                                                         \
    (const void* frame, std::size_t available, std::uint32_t level, ProgressivePart* parts, std::uint32_t count),      \
    (frame, available, level, parts, count))                                                                           \
  F(Status, progressive_summary, (const void* frame, std::size_t available, ProgressiveSummary* summary),              \
    (frame, available, summary))                                                                                       \
  F(int, resolved_threads, (), ())                                                                                     \
  F(SentinelTest, sentinel_test, (const Request& request), (request))                                                  \
  F(void, tiles_of_range,                                                                                              \
    (const Grid& grid, std::uint64_t start, std::uint64_t stop, std::uint64_t* first, std::uint64_t* last),            \
    (grid, start, stop, first, last))                                                                                  \
  F(Request, tried_request, (const Request& request, double bound, std::uint64_t particles, int coordinates),          \
    (request, bound, particles, coordinates))                                                                          \
  F(bool, value_count, (const Shape& shape, std::uint64_t* count), (shape, count))

// Functions of the CUDA library that the host library calls.
#define PYF_DEVICE_FUNCTIONS(F)                                                                                      \
  F(Status, cuda_device_count, (int* count), (count))                                                                \
  F(Status, cuda_encode, (const Request& request, const CudaEncodeBatch& batch), (request, batch))                   \
  F(Status, cuda_decode,                                                                                             \
    (const CudaFrame* frames, std::size_t count, std::uint64_t start, std::uint64_t stop, std::size_t value_bytes,   \
     std::uint32_t* faults, void* stream),                                                                           \
    (frames, count, start, stop, value_bytes, faults, stream))                                                       \
  F(Status, cuda_fault, (std::uint32_t fault), (fault))                                                              \
  F(Status, cuda_pack_frames,                                                                                        \
    (const void* slots, std::size_t slot_bytes, const std::uint64_t* sizes, const std::uint64_t* ends,               \
     std::size_t count, void* packed, void* stream),                                                                 \
    (slots, slot_bytes, sizes, ends, count, packed, stream))                                                         \
  F(Status, cuda_encode_host,                                                                                        \
    (const Request& request, const void* values, std::size_t value_bytes, void* frame, std::size_t* frame_bytes),    \
    (request, values, value_bytes, frame, frame_bytes))                                                              \
  F(Status, cuda_decode_host,                                                                                        \
    (const void* frame, std::size_t frame_bytes, std::uint64_t start, std::uint64_t stop, void* values,              \
     std::size_t value_bytes),                                                                                       \
    (frame, frame_bytes, start, stop, values, value_bytes))                                                          \
  F(Status, cuda_particle_order,                                                                                     \
    (const Request& request, const void* values, std::size_t value_bytes, std::uint32_t* particles, void* stream),   \
    (request, values, value_bytes, particles, stream))                                                               \
  F(Status, cuda_decode_progressive_part,                                                                            \
    (const void* frame, std::size_t available, std::uint32_t segments, std::uint32_t level, void* values,            \
     std::size_t value_bytes, void* stream),                                                                         \
    (frame, available, segments, level, values, value_bytes, stream))                                                \
  F(Status, cuda_open_waiter, (CudaWaiter & waiter, const CudaChannel& channel), (waiter, channel))                  \
  F(Status, cuda_wait, (const CudaWaiter& waiter, const CudaChannel& channel, const char* what),                     \
    (waiter, channel, what))                                                                                         \
  F(Status, cuda_channel_encode,                                                                                     \
    (const CudaChannel& channel, const CudaWaiter& waiter, const Request& request, const CudaChannelValues& values,  \
     std::size_t count, std::size_t chunk_bytes, std::size_t stride),                                                \
    (channel, waiter, request, values, count, chunk_bytes, stride))                                                  \
  F(Status, cuda_channel_fetch,                                                                                      \
    (const CudaChannel& channel, const CudaWaiter& waiter, std::size_t first, std::size_t count, std::size_t stride, \
     const std::uint64_t* offsets),                                                                                  \
    (channel, waiter, first, count, stride, offsets))                                                                \
  F(Status, cuda_channel_decode,                                                                                     \
    (const CudaChannel& channel, const CudaWaiter& waiter, const CudaChannelFrames& frames,                          \
     const CudaChannelValues& values),                                                                               \
    (channel, waiter, frames, values))                                                                               \
  F(Status, cuda_release_memory, (), ())

#define PYF_TABLE_FIELD(Result, name, parameters, arguments) Result(*name) parameters = nullptr;
#define PYF_TABLE_ENTRY(Result, name, parameters, arguments) &pyfilter::name,

struct HostFunctions {
  PYF_HOST_FUNCTIONS(PYF_TABLE_FIELD)
  Status (*fail_with)(Code code, const char* text) = nullptr;
};

struct DeviceFunctions {
  PYF_DEVICE_FUNCTIONS(PYF_TABLE_FIELD)
  void (*close_waiter)(CudaWaiter& waiter) = nullptr;
};

// Values that must be equal in both libraries.
struct BridgeVersion {
  const char* release = registry::kVersion;
  std::uint32_t format = registry::kFormatVersion, host_bytes = sizeof(HostFunctions),
                device_bytes = sizeof(DeviceFunctions), request_bytes = sizeof(Request), info_bytes = sizeof(FrameInfo),
                channel_bytes = sizeof(CudaChannel) + sizeof(CudaChannelFrames) + sizeof(CudaEncodeBatch);
};

// Exported by the CUDA library: returns its functions, or nullptr if `version` differs from its own; *own is set.
using OpenDeviceFunctions = const DeviceFunctions*(const BridgeVersion* version, const HostFunctions* host,
                                                   BridgeVersion* own);
inline constexpr const char* kOpenDeviceFunctions = "pyfilter_cuda_open";

}  // namespace pyfilter
