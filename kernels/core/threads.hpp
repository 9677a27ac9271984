// SPDX-License-Identifier: BSD-3-Clause
// Worker threads shared by all calls of the process. Between calls they wait and hold no lock or memory. So HDF5 may
// unload the library (it stays mapped: -z nodelete), and the process may fork (the child starts its own workers).
#pragma once

#include <chrono>
#include <cstdint>
#include <mutex>

namespace pyfilter {

// Runs work(context, index) for every index below `count` on up to `threads` threads, the caller among them. Indices
// are handed out in increasing order. Returns when all are done. If the workers are busy with another call, or cannot
// be started, the caller does all the work. `work` must not throw.
void parallel_for(int threads, std::uint64_t count, void (*work)(void* context, std::uint64_t index),
                  void* context) noexcept;

// Whether this thread does work that parallel_for() shares: then no workers are left for what it calls.
bool works_beside_others() noexcept;

int available_cores() noexcept;

inline void pause_shortly() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// Spins while `waiting()` is true, for 50 us at most: the time that it takes to sleep and be woken.
template <class Waiting>
void spin_while(const Waiting& waiting) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::microseconds(50);
  do {
    for (int i = 0; i < 16; ++i) {
      if (!waiting()) return;
      pause_shortly();
    }
  } while (std::chrono::steady_clock::now() < end);
}

// Locks a mutex that other threads hold only for some instructions: spins first, since sleeping would take longer.
inline void lock_soon(std::unique_lock<std::mutex>& lock) {
  for (int i = 0; i < 100; ++i) {
    if (lock.try_lock()) return;
    pause_shortly();
  }
  lock.lock();
}

}  // namespace pyfilter
