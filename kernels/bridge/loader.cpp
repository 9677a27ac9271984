// SPDX-License-Identifier: BSD-3-Clause
// The host library's side of functions.hpp: loads cuda/libh5pyfilter_cuda.so when a device is first needed, and calls
// its functions through its table. The CUDA library is in a subfolder because HDF5 opens every lib*.so that lies beside
// a plugin. PYFILTER_CUDA_LIBRARY names another file.
#include <dlfcn.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "bridge/functions.hpp"
#include "core/api.hpp"
#include "core/error_text.hpp"
#include "core/header.hpp"
#include "core/request.hpp"
#include "core/settings.hpp"
#include "core/threads.hpp"
#include "particles/driver.hpp"
#include "progressive/driver.hpp"

namespace pyfilter {
namespace {

Status fail_with(Code code, const char* text) noexcept { return fail(code, "%s", text); }

constexpr HostFunctions kHost{PYF_HOST_FUNCTIONS(PYF_TABLE_ENTRY) & fail_with};

struct Loaded {
  const DeviceFunctions* functions = nullptr;
  char problem[1024] = "";
};

// Finds the path of the CUDA library; false if it is too long, or if this library's own path is not known.
bool library_path(char* path, std::size_t size) {
  if (const char* const named = std::getenv("PYFILTER_CUDA_LIBRARY"); named != nullptr && *named != '\0')
    return std::snprintf(path, size, "%s", named) < static_cast<int>(size);
  Dl_info own;
  if (dladdr(reinterpret_cast<const void*>(&library_path), &own) == 0 || own.dli_fname == nullptr) return false;
  const char* const slash = std::strrchr(own.dli_fname, '/');
  const int folder = slash == nullptr ? 1 : static_cast<int>(slash - own.dli_fname);
  return std::snprintf(path, size, "%.*s/cuda/libh5pyfilter_cuda.so", folder, slash == nullptr ? "." : own.dli_fname) <
         static_cast<int>(size);
}

Loaded load() {
  Loaded loaded;
  const auto problem = [&](const char* format, auto... values) {
    std::snprintf(loaded.problem, sizeof loaded.problem, format, values...);
    return loaded;
  };
  char path[768];
  if (!library_path(path, sizeof path)) return problem("%s", "the folder of libh5pyfilter.so is not known");
  if (access(path, R_OK) != 0)
    return problem(
        "this pyfilter has no CUDA library: %s is not there; pip install 'h5pyfilter[gpu]', or build with "
        "CMAKE_ARGS=-DPYF_CUDA=ON",
        path);
  void* const library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return problem("pyfilter's CUDA library cannot be loaded: %s", dlerror());
  auto* const open = reinterpret_cast<OpenDeviceFunctions*>(dlsym(library, kOpenDeviceFunctions));
  if (open == nullptr) return problem("%s is not pyfilter's CUDA library", path);
  const BridgeVersion version;
  BridgeVersion own;
  loaded.functions = open(&version, &kHost, &own);
  if (loaded.functions == nullptr)
    return problem("%s belongs to pyfilter %s (frame format %u), this is %s (%u) or another build of it", path,
                   own.release, own.format, version.release, version.format);
  return loaded;
}

const Loaded& loaded() {
  static const Loaded once = load();
  return once;
}

Status absent() noexcept { return fail(Code::device, "%s", loaded().problem); }

}  // namespace

bool has_cuda() noexcept { return loaded().functions != nullptr; }
const char* cuda_problem() noexcept { return loaded().problem; }

#define PYF_CALL_DEVICE(Result, name, parameters, arguments)            \
  Result name parameters noexcept {                                     \
    const DeviceFunctions* const functions = loaded().functions;        \
    return functions != nullptr ? functions->name arguments : absent(); \
  }
PYF_DEVICE_FUNCTIONS(PYF_CALL_DEVICE)

void CudaWaiter::close() noexcept {
  for (void* event : events_)
    if (event != nullptr) return loaded().functions->close_waiter(*this);
}
Status CudaWaiter::open(const CudaChannel& channel) noexcept { return cuda_open_waiter(*this, channel); }
Status CudaWaiter::wait(const CudaChannel& channel, const char* what) const noexcept {
  return cuda_wait(*this, channel, what);
}

}  // namespace pyfilter
