// SPDX-License-Identifier: BSD-3-Clause
// The part of CUDA's runtime that is used: one device with two multiprocessors, whose work is complete when a call
// returns.
#pragma once

enum cudaError_t {
  cudaSuccess = 0,
  cudaErrorInvalidValue = 1,
  cudaErrorMemoryAllocation = 2,
  cudaErrorInitializationError = 3,
  cudaErrorNotReady = 600
};
enum cudaMemcpyKind { cudaMemcpyHostToDevice = 1, cudaMemcpyDeviceToHost = 2 };
enum cudaDeviceAttr {
  cudaDevAttrMultiProcessorCount,
  cudaDevAttrMaxSharedMemoryPerBlockOptin,
  cudaDevAttrMaxSharedMemoryPerMultiprocessor,
  cudaDevAttrReservedSharedMemoryPerBlock,
  cudaDevAttrComputeCapabilityMajor
};
enum cudaFuncAttribute { cudaFuncAttributeMaxDynamicSharedMemorySize };
enum cudaMemPoolAttr { cudaMemPoolAttrReleaseThreshold };
enum { cudaMemAllocationTypePinned = 1, cudaMemLocationTypeDevice = 1 };
enum { cudaStreamNonBlocking = 1, cudaEventDisableTiming = 2, cudaHostAllocDefault = 0 };
enum { cudaLaunchAttributeProgrammaticStreamSerialization = 1 };
struct cudaMemPoolProps {
  int allocType;
  struct {
    int type, id;
  } location;
};
struct cudaLaunchAttribute {
  int id;
  struct {
    int programmaticStreamSerializationAllowed;
  } val;
};
using cudaStream_t = struct SimtStream*;
using cudaEvent_t = struct SimtEvent*;
using cudaMemPool_t = struct SimtPool*;
struct cudaLaunchConfig_t {
  dim3 blocks, threads;
  dim3& gridDim { return blocks; }
  dim3& blockDim { return threads; }
  std::size_t dynamicSmemBytes;
  cudaStream_t stream;
  cudaLaunchAttribute* attrs;
  unsigned numAttrs;
};

inline const char* cudaGetErrorString(cudaError_t) { return "an error of a device that is none"; }
inline const char* cudaGetErrorName(cudaError_t) { return "simt"; }
inline cudaError_t cudaGetLastError() { return cudaSuccess; }

inline cudaError_t cudaGetDeviceCount(int* count) {
  *count = 1;
  return cudaSuccess;
}
inline cudaError_t cudaGetDevice(int* device) {
  *device = 0;
  return cudaSuccess;
}
inline cudaError_t cudaSetDevice(int device) { return device == 0 ? cudaSuccess : cudaErrorInvalidValue; }
inline cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr what, int) {
  constexpr int kMost = static_cast<int>(simt::kMostDynamicBytes);
  *value = what == cudaDevAttrMultiProcessorCount                ? static_cast<int>(simt::kResidentBlocks) / 2
           : what == cudaDevAttrMaxSharedMemoryPerBlockOptin     ? kMost
           : what == cudaDevAttrMaxSharedMemoryPerMultiprocessor ? kMost + 1024
           : what == cudaDevAttrReservedSharedMemoryPerBlock     ? 1024
                                                                 : 9;
  return cudaSuccess;
}
inline cudaError_t cudaDeviceGetStreamPriorityRange(int* lowest, int* highest) {
  *lowest = 0;
  *highest = -1;
  return cudaSuccess;
}
template <class Kernel>
inline cudaError_t cudaFuncSetAttribute(Kernel, cudaFuncAttribute, int bytes) {
  return bytes <= static_cast<int>(simt::kMostDynamicBytes) ? cudaSuccess : cudaErrorInvalidValue;
}
template <class Kernel>
inline cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, Kernel, int, std::size_t) {
  *blocks = 2;
  return cudaSuccess;
}

// -- memory

inline cudaError_t cudaMemGetInfo(std::size_t* available, std::size_t* total) {
  *available = *total = std::size_t{4} << 30;
  return cudaSuccess;
}
inline cudaError_t cudaMemPoolCreate(cudaMemPool_t* pool, const cudaMemPoolProps*) {
  *pool = reinterpret_cast<cudaMemPool_t>(1);
  return cudaSuccess;
}
inline cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t, cudaMemPoolAttr, void*) { return cudaSuccess; }
inline cudaError_t cudaMemPoolTrimTo(cudaMemPool_t, std::size_t) { return cudaSuccess; }
inline cudaError_t cudaMallocFromPoolAsync(void** memory, std::size_t bytes, cudaMemPool_t, cudaStream_t) {
  *memory = simt::allocate(bytes);
  return cudaSuccess;
}
inline cudaError_t cudaFreeAsync(void* memory, cudaStream_t) {
  simt::release(memory);
  return cudaSuccess;
}
inline cudaError_t cudaHostAlloc(void** memory, std::size_t bytes, unsigned) {
  *memory = simt::allocate(bytes);
  return cudaSuccess;
}
inline cudaError_t cudaFreeHost(void* memory) {
  simt::release(memory);
  return cudaSuccess;
}
inline cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind, cudaStream_t) {
  if (bytes != 0) std::memcpy(to, from, bytes);
  return cudaSuccess;
}
inline cudaError_t cudaMemsetAsync(void* to, int value, std::size_t bytes, cudaStream_t) {
  if (bytes != 0) std::memset(to, value, bytes);
  return cudaSuccess;
}
inline cudaError_t cudaMemcpy2DAsync(void* to, std::size_t to_step, const void* from, std::size_t from_step,
                                     std::size_t width, std::size_t rows, cudaMemcpyKind, cudaStream_t) {
  for (std::size_t row = 0; row < rows && width != 0; ++row)
    std::memcpy(static_cast<char*>(to) + row * to_step, static_cast<const char*>(from) + row * from_step, width);
  return cudaSuccess;
}
inline cudaError_t cudaMemset2DAsync(void* to, std::size_t step, int value, std::size_t width, std::size_t rows,
                                     cudaStream_t) {
  for (std::size_t row = 0; row < rows && width != 0; ++row)
    std::memset(static_cast<char*>(to) + row * step, value, width);
  return cudaSuccess;
}

// -- streams and events: no work is ever pending

inline cudaError_t cudaStreamCreate(cudaStream_t* stream) {
  *stream = reinterpret_cast<cudaStream_t>(1);
  return cudaSuccess;
}
inline cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned) { return cudaStreamCreate(stream); }
inline cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned, int) {
  return cudaStreamCreate(stream);
}
inline cudaError_t cudaStreamDestroy(cudaStream_t) { return cudaSuccess; }
inline cudaError_t cudaStreamSynchronize(cudaStream_t) { return cudaSuccess; }
inline cudaError_t cudaEventCreate(cudaEvent_t* event) {
  *event = reinterpret_cast<cudaEvent_t>(1);
  return cudaSuccess;
}
inline cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) { return cudaEventCreate(event); }
inline cudaError_t cudaEventDestroy(cudaEvent_t) { return cudaSuccess; }
inline cudaError_t cudaEventRecord(cudaEvent_t, cudaStream_t) { return cudaSuccess; }
inline cudaError_t cudaEventQuery(cudaEvent_t) { return cudaSuccess; }
inline cudaError_t cudaEventSynchronize(cudaEvent_t) { return cudaSuccess; }
inline cudaError_t cudaStreamWaitEvent(cudaStream_t, cudaEvent_t, unsigned) { return cudaSuccess; }

// -- launches

namespace simt {

// kernel<<<blocks, threads, bytes, stream>>>(arguments...) is Launch(blocks, threads, bytes, stream)(kernel)(...).
class Launch {
 public:
  Launch(dim3 blocks, dim3 threads, std::size_t bytes = 0, cudaStream_t = nullptr)
      : grid_{{blocks.x, blocks.y, blocks.z}, {threads.x, threads.y, threads.z}, bytes} {}
  template <class... Parameters>
  auto operator()(void (*kernel)(Parameters...)) const {
    return [grid = grid_, kernel](std::type_identity_t<Parameters>... arguments) {
      run(grid, [&] { kernel(arguments...); });
    };
  }

 private:
  Grid grid_;
};

}  // namespace simt

inline void cudaTriggerProgrammaticLaunchCompletion() {}
inline void cudaGridDependencySynchronize() {}
template <class... Parameters, class... Arguments>
inline cudaError_t cudaLaunchKernelEx(const cudaLaunchConfig_t* config, void (*kernel)(Parameters...),
                                      const Arguments&... arguments) {
  simt::Launch(config->blocks, config->threads, config->dynamicSmemBytes)(kernel)(arguments...);
  return cudaSuccess;
}
