// SPDX-License-Identifier: BSD-3-Clause
// The CUDA driver's place in builds without CUDA (core/cuda/driver.hpp).
#include "core/api.hpp"
#include "core/cuda/driver.hpp"
#include "core/cuda/lane.hpp"
#include "core/error_text.hpp"

#if !defined(PYF_HAVE_CUDA)

namespace pyfilter {
namespace {

Status absent() { return fail(Code::device, "this library was built without CUDA kernels"); }

}  // namespace

bool has_cuda() noexcept { return false; }

Status cuda_device_count(int* count) noexcept {
  *count = 0;
  return absent();
}
Status cuda_encode(const Request&, const CudaEncodeBatch&) noexcept { return absent(); }
Status cuda_particle_order(const Request&, const void*, std::size_t, std::uint32_t*, void*) noexcept {
  return absent();
}
Status cuda_decode(const CudaFrame*, std::size_t, std::uint64_t, std::uint64_t, std::size_t, std::uint32_t*,
                   void*) noexcept {
  return absent();
}
Status cuda_fault(std::uint32_t) noexcept { return absent(); }
Status cuda_decode_progressive_part(const void*, std::size_t, std::uint32_t, std::uint32_t, void*, std::size_t,
                                    void*) noexcept {
  return absent();
}
Status cuda_encode_host(const Request&, const void*, std::size_t, void*, std::size_t*) noexcept { return absent(); }
Status cuda_decode_host(const void*, std::size_t, std::uint64_t, std::uint64_t, void*, std::size_t) noexcept {
  return absent();
}
CudaWaiter::~CudaWaiter() = default;
Status CudaWaiter::open(const CudaLane&) noexcept { return absent(); }
Status CudaWaiter::wait(const CudaLane&, const char*) const noexcept { return absent(); }
Status CudaWaiter::mark(const CudaLane&, std::size_t) const noexcept { return absent(); }
Status CudaWaiter::reach(std::size_t) const noexcept { return absent(); }
Status cuda_lane_encode(const CudaLane&, const CudaWaiter&, const Request&, const CudaLaneValues&, std::size_t,
                        std::size_t, std::size_t) noexcept {
  return absent();
}
Status cuda_lane_fetch(const CudaLane&, const CudaWaiter&, std::size_t, std::size_t, std::size_t,
                       const std::uint64_t*) noexcept {
  return absent();
}
Status cuda_lane_decode(const CudaLane&, const CudaWaiter&, const CudaLaneFrames&, const CudaLaneValues&) noexcept {
  return absent();
}
Status cuda_release_memory() noexcept { return kOk; }

}  // namespace pyfilter

#endif
