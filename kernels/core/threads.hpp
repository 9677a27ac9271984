// SPDX-License-Identifier: BSD-3-Clause
// Worker threads shared by all calls of the process. They wait between calls and hold nothing then, so the library
// may be unloaded by HDF5 (it stays mapped: -z nodelete) and the process may fork (the child starts its own).
#pragma once

#include <chrono>
#include <cstdint>
#include <mutex>

namespace pyfilter {

// Runs work(context, index) for every index below `count` on up to `threads` threads, the caller among them. Indices
// are handed out in increasing order. Returns when all are done. If the workers are busy with another call, or cannot
// be started, the caller does it all. `work` must not throw.
void parallel_for(int threads, std::uint64_t count, void (*work)(void* context, std::uint64_t index),
                  void* context) noexcept;

int available_cores() noexcept;

inline void pause_shortly() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// Looks again and again, while `waiting()` holds: for as long as it takes to sleep and be woken.
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

// Takes a mutex that others hold for some instructions at a time: who meets them there need not sleep.
inline void lock_soon(std::unique_lock<std::mutex>& lock) {
  for (int i = 0; i < 100; ++i) {
    if (lock.try_lock()) return;
    pause_shortly();
  }
  lock.lock();
}

}  // namespace pyfilter
