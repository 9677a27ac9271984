// SPDX-License-Identifier: BSD-3-Clause
// Kernels with one mistake each, and correct versions: test_machine.py checks that the machine tells them apart.
#include <cuda_pipeline.h>
#include <cuda_runtime.h>

#include <cstdint>
#include <cstdio>
#include <cstring>

namespace {

constexpr unsigned kThreads = 96;
constexpr std::uint32_t kAllLanes = 0xFFFFFFFFu;

// Reverses the numbers of a block through shared memory.
template <bool kRight>
__global__ void reverse_block(std::uint32_t* numbers) {
  __shared__ std::uint32_t room[kThreads];
  const std::uint32_t at = blockIdx.x * kThreads + threadIdx.x;
  room[threadIdx.x] = numbers[at];
  if (kRight) __syncthreads();
  numbers[at] = room[kThreads - 1 - threadIdx.x];
}

// Reverses the numbers of each warp.
template <bool kRight>
__global__ void reverse_warps(std::uint32_t* numbers) {
  extern __shared__ std::uint32_t room[];
  const std::uint32_t at = blockIdx.x * kThreads + threadIdx.x;
  room[threadIdx.x] = numbers[at];
  if (kRight) __syncwarp();
  numbers[at] = room[threadIdx.x / 32 * 32 + 31 - threadIdx.x % 32];
}

// Reverses the numbers of a block with an asynchronous copy.
template <bool kRight>
__global__ void reverse_copied(std::uint32_t* numbers) {
  __shared__ std::uint32_t room[kThreads];
  const std::uint32_t at = blockIdx.x * kThreads + threadIdx.x;
  __pipeline_memcpy_async(room + threadIdx.x, numbers + at, sizeof(std::uint32_t));
  __pipeline_commit();
  if (kRight) __pipeline_wait_prior(0);
  __syncthreads();
  numbers[at] = room[kThreads - 1 - threadIdx.x];
}

// The same with two groups of copies: after the wait only the first has arrived.
template <bool kRight>
__global__ void reverse_grouped(std::uint32_t* numbers) {
  __shared__ std::uint32_t room[kThreads];
  __shared__ std::uint32_t other[kThreads];
  const std::uint32_t at = blockIdx.x * kThreads + threadIdx.x;
  std::uint32_t* const both[] = {kRight ? room : other, kRight ? other : room};
  for (std::uint32_t* const to : both) {
    __pipeline_memcpy_async(to + threadIdx.x, numbers + at, sizeof(std::uint32_t));
    __pipeline_commit();
  }
  __pipeline_wait_prior(1);
  __syncthreads();
  const std::uint32_t number = room[kThreads - 1 - threadIdx.x];
  __pipeline_wait_prior(0);
  __syncthreads();
  numbers[at] = number;
}

// Reverses the numbers of each warp. All lanes have read before the shuffle returns, but a shuffle orders no memory.
template <bool kRight>
__global__ void reverse_quietly(std::uint32_t* numbers) {
  __shared__ std::uint32_t room[kThreads];
  const std::uint32_t at = blockIdx.x * kThreads + threadIdx.x, lane = threadIdx.x % 32;
  room[threadIdx.x] = numbers[at];
  __syncwarp();
  const std::uint32_t next = room[threadIdx.x / 32 * 32 + (lane + 1) % 32];
  const std::uint32_t found = __shfl_sync(kAllLanes, next, 30 - static_cast<int>(lane));
  if (kRight) __syncwarp();
  room[threadIdx.x] = found;
  numbers[at] = room[threadIdx.x];
}

// All blocks increment the same counter.
template <bool kRight>
__global__ void count(std::uint32_t* numbers) {
  if (kRight)
    atomicAdd(numbers, 1u);
  else
    ++*numbers;
}

// Values that others change by atomic operations must be read as volatile.
template <bool kRight>
__global__ void most(std::uint32_t* numbers) {
  std::uint32_t seen;
  if (kRight)
    seen = *static_cast<volatile const std::uint32_t*>(numbers);
  else
    seen = *numbers;
  if (seen < 1000 + threadIdx.x) atomicMax(numbers, 1000 + threadIdx.x);
}

template <bool kRight>
__global__ void beyond_memory(std::uint32_t* numbers) {
  const std::uint32_t at = blockIdx.x * kThreads + threadIdx.x;
  if (kRight ? at + 1 < gridDim.x * kThreads : true) numbers[at] = numbers[at + 1];
}

template <bool kRight>
__global__ void beyond_shared(std::uint32_t* numbers) {
  extern __shared__ std::uint32_t room[];
  room[threadIdx.x] = threadIdx.x;
  if (!kRight) room[threadIdx.x + 1024 * 1024] = 1;
  __syncthreads();
  numbers[threadIdx.x] = room[threadIdx.x];
}

// Some lanes of a warp vote while the others exchange.
template <bool kRight>
__global__ void apart(std::uint32_t* numbers) {
  const bool votes = kRight ? threadIdx.x < 32 : threadIdx.x % 2 == 0;
  numbers[threadIdx.x] =
      votes ? __ballot_sync(kAllLanes, 1) : __shfl_xor_sync(kAllLanes, static_cast<std::uint32_t>(threadIdx.x), 1);
}

// Not all threads reach the barrier.
template <bool kRight>
__global__ void stuck(std::uint32_t* numbers) {
  if (threadIdx.x % 32 == 0) {
    if (!kRight) numbers[threadIdx.x] = __ballot_sync(kAllLanes, 1);
  }
  __syncthreads();
}

template <bool kRight>
__global__ void not_aligned(std::uint32_t* numbers) {
  extern __shared__ std::uint32_t room[];
  const auto address = static_cast<std::uint32_t>(__cvta_generic_to_shared(room)) + (kRight ? 0 : 2);
  room[0] = 5;
  std::uint32_t word;
  asm("ld.shared.u32 %0, [%1];" : "=r"(word) : "r"(address));
  numbers[0] = word;
}

template <bool kRight>
__global__ void untrue(std::uint32_t* numbers) {
  __builtin_assume(kRight || numbers == nullptr);
}

// Each block waits for the block behind it.
template <bool kRight>
__global__ void following(std::uint32_t* numbers) {
  if (threadIdx.x != 0) return;
  const std::uint32_t other = kRight ? blockIdx.x - 1 : blockIdx.x + 1;
  while (other < gridDim.x && *static_cast<volatile std::uint32_t*>(numbers + other * kThreads) != 1) {
    __nanosleep(20);
    if (atomicAdd(numbers + 1, 1u) > 100000) return;  // gives up
  }
  numbers[blockIdx.x * kThreads] = 1;
}

using Kernel = void (*)(std::uint32_t*);
struct Case {
  const char* name;
  Kernel right, wrong;
};
constexpr Case kCases[] = {
    {"reverse_block", reverse_block<true>, reverse_block<false>},
    {"reverse_warps", reverse_warps<true>, reverse_warps<false>},
    {"reverse_copied", reverse_copied<true>, reverse_copied<false>},
    {"reverse_grouped", reverse_grouped<true>, reverse_grouped<false>},
    {"reverse_quietly", reverse_quietly<true>, reverse_quietly<false>},
    {"count", count<true>, count<false>},
    {"most", most<true>, most<false>},
    {"beyond_memory", beyond_memory<true>, beyond_memory<false>},
    {"beyond_shared", beyond_shared<true>, beyond_shared<false>},
    {"apart", apart<true>, apart<false>},
    {"stuck", stuck<true>, stuck<false>},
    {"not_aligned", not_aligned<true>, not_aligned<false>},
    {"untrue", untrue<true>, untrue<false>},
    {"following", following<true>, following<false>},
};

}  // namespace

// mistakes NAME right|wrong: prints the numbers that the kernel leaves.
int main(int count, char** words) {
  if (count != 3) return 2;
  constexpr unsigned kBlocks = 9;
  constexpr std::size_t kBytes = kBlocks * kThreads * sizeof(std::uint32_t);
  auto* const numbers = static_cast<std::uint32_t*>(simt::allocate(kBytes));
  for (std::uint32_t i = 0; i < kBlocks * kThreads; ++i) numbers[i] = 3 * i;
  for (const Case& each : kCases) {
    if (std::strcmp(each.name, words[1]) != 0) continue;
    const Kernel kernel = std::strcmp(words[2], "right") == 0 ? each.right : each.wrong;
    kernel<<<kBlocks, kThreads, kThreads * sizeof(std::uint32_t)>>>(numbers);
    for (std::uint32_t i = 0; i < kBlocks * kThreads; ++i) std::printf("%u ", numbers[i]);
    simt::release(numbers);
    return 0;
  }
  return 2;
}
