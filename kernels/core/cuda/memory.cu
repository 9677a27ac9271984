// SPDX-License-Identifier: BSD-3-Clause
// CUDA errors, fork detection and the memory pools (memory.cuh). Each device has a pool of this library, apart from the
// default pool that other libraries of the process use.
#include "core/cuda/memory.cuh"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <mutex>

#include "core/error_text.hpp"

namespace pyfilter::cuda {
namespace {

constexpr int kMaxDevices = 64;
// Bytes that a pool keeps for the next call: this number, or a fraction of the device's memory if larger. Otherwise
// each synchronisation would return them to the driver.
constexpr std::uint64_t kKeptBytes = std::uint64_t{512} << 20, kKeptPart = 32;

std::atomic<pid_t> first_user{0};

struct Pools {
  std::mutex mutex;
  cudaMemPool_t pool[kMaxDevices] = {};
  std::uint64_t memory[kMaxDevices] = {};  // total memory of each device
};
Pools& pools() {
  static Pools* const all = new Pools;  // never destroyed: the driver may be gone by then
  return *all;
}

Status pool_of_device(cudaMemPool_t* pool, std::uint64_t* memory) {
  int device = 0;
  PYF_TRY(check(cudaGetDevice(&device), "cudaGetDevice"));
  if (device >= kMaxDevices) return fail(Code::device, "CUDA device %d, at most %d are supported", device, kMaxDevices);
  Pools& all = pools();
  const std::lock_guard<std::mutex> lock(all.mutex);
  if (all.pool[device] == nullptr) {
    cudaMemPoolProps properties = {};
    properties.allocType = cudaMemAllocationTypePinned;
    properties.location.type = cudaMemLocationTypeDevice;
    properties.location.id = device;
    PYF_TRY(check(cudaMemPoolCreate(&all.pool[device], &properties), "cudaMemPoolCreate"));
    std::size_t available = 0, total = 0;
    PYF_TRY(check(cudaMemGetInfo(&available, &total), "cudaMemGetInfo"));
    all.memory[device] = total;
    std::uint64_t kept = std::max(kKeptBytes, std::uint64_t{total} / kKeptPart);
    PYF_TRY(check(cudaMemPoolSetAttribute(all.pool[device], cudaMemPoolAttrReleaseThreshold, &kept),
                  "cudaMemPoolSetAttribute"));
  }
  *pool = all.pool[device];
  *memory = all.memory[device];
  return kOk;
}

}  // namespace

Status check(cudaError_t error, const char* what) noexcept {
  if (error == cudaSuccess) return kOk;
  (void)cudaGetLastError();
  const Code code = error == cudaErrorMemoryAllocation ? Code::no_memory : Code::device;
  return fail(code, "%s: %s (%s)", what, cudaGetErrorString(error), cudaGetErrorName(error));
}

Status usable() noexcept {
  const pid_t here = getpid();
  const pid_t first = first_user.load();
  if (first == here) return kOk;
  if (first != 0)
    return fail(Code::device,
                "CUDA was used before this process was forked (process %d, forked from %d); start workers with the "
                "\"spawn\" or \"forkserver\" method",
                static_cast<int>(here), static_cast<int>(first));
  int count = 0;
  const cudaError_t error = cudaGetDeviceCount(&count);
  if (error == cudaErrorInitializationError)
    return fail(Code::device, "CUDA cannot be initialised here: %s; a process forked after CUDA was used cannot use it",
                cudaGetErrorString(error));
  PYF_TRY(check(error, "no CUDA device"));
  if (count == 0) return fail(Code::device, "no CUDA device");
  pid_t none = 0;
  first_user.compare_exchange_strong(none, here);
  return kOk;
}

bool used_here() noexcept { return first_user.load() == getpid(); }

Workspace::~Workspace() {
  if (data_ != nullptr) (void)cudaFreeAsync(data_, stream_);
}

Status Workspace::allocate(std::size_t bytes) noexcept {
  cudaMemPool_t pool = nullptr;
  std::uint64_t of_device = 0;
  PYF_TRY(pool_of_device(&pool, &of_device));
  void* memory = nullptr;
  const cudaError_t error = cudaMallocFromPoolAsync(&memory, bytes, pool, stream_);
  if (error == cudaErrorMemoryAllocation) {
    (void)cudaGetLastError();
    return fail(Code::no_memory, "no device memory: %zu bytes are needed", bytes);
  }
  PYF_TRY(check(error, "cudaMallocFromPoolAsync"));
  data_ = static_cast<std::uint8_t*>(memory);
  return kOk;
}

Status device_memory(std::uint64_t* bytes) noexcept {
  cudaMemPool_t pool = nullptr;
  return pool_of_device(&pool, bytes);
}

Status release_pools() noexcept {
  Pools& all = pools();
  const std::lock_guard<std::mutex> lock(all.mutex);
  for (cudaMemPool_t pool : all.pool)
    if (pool != nullptr) PYF_TRY(check(cudaMemPoolTrimTo(pool, 0), "cudaMemPoolTrimTo"));
  return kOk;
}

}  // namespace pyfilter::cuda
