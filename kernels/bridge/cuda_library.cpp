// SPDX-License-Identifier: BSD-3-Clause
// The CUDA library's side of functions.hpp: its entry point, and the host library's functions called through the table.
// Compiled into libh5pyfilter_cuda.so only.
#include "bridge/functions.hpp"

#include <cstdarg>
#include <cstdio>
#include <cstring>

#include "core/api.hpp"
#include "core/error_text.hpp"
#include "core/header.hpp"
#include "core/request.hpp"
#include "core/settings.hpp"
#include "core/threads.hpp"
#include "particles/driver.hpp"
#include "progressive/driver.hpp"

#if defined(PYF_CUDA_LIBRARY)

namespace pyfilter {
namespace {

HostFunctions host;

bool same(const BridgeVersion& a, const BridgeVersion& b) {
  return std::strcmp(a.release, b.release) == 0 && a.format == b.format && a.host_bytes == b.host_bytes &&
         a.device_bytes == b.device_bytes && a.request_bytes == b.request_bytes && a.info_bytes == b.info_bytes &&
         a.channel_bytes == b.channel_bytes;
}

}  // namespace

#define PYF_CALL_HOST(Result, name, parameters, arguments) \
  Result name parameters noexcept { return host.name arguments; }
PYF_HOST_FUNCTIONS(PYF_CALL_HOST)

Status fail(Code code, const char* format, ...) noexcept {
  char text[512];
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  return host.fail_with(code, text);
}

Status cuda_open_waiter(CudaWaiter& waiter, const CudaChannel& channel) noexcept { return waiter.open(channel); }
Status cuda_wait(const CudaWaiter& waiter, const CudaChannel& channel, const char* what) noexcept {
  return waiter.wait(channel, what);
}
static void close_waiter(CudaWaiter& waiter) { waiter.close(); }

}  // namespace pyfilter

extern "C" __attribute__((visibility("default"))) const pyfilter::DeviceFunctions* pyfilter_cuda_open(
    const pyfilter::BridgeVersion* version, const pyfilter::HostFunctions* host, pyfilter::BridgeVersion* own) {
  static constexpr pyfilter::DeviceFunctions kFunctions{PYF_DEVICE_FUNCTIONS(PYF_TABLE_ENTRY) & pyfilter::close_waiter};
  *own = {};
  if (!pyfilter::same(*version, *own)) return nullptr;
  pyfilter::host = *host;
  return &kFunctions;
}

#endif
