// SPDX-License-Identifier: BSD-3-Clause
// A machine for kernels on a CPU: the threads of a few thread blocks at a time, each with a stack of its own, take
// turns on one thread of the system. A thread runs until it must wait for others (a barrier, an exchange between lanes)
// or says that it waits (__nanosleep). The next thread is drawn at random, so that the effect of a missing barrier
// shows.
// The machine finds violations of the language's rules: lanes that meet in different operations, threads that wait for
// ever, accesses beyond an allocation (its last byte is the last of a page). It tells nothing about speed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

namespace simt {

struct Place {
  unsigned x = 0, y = 0, z = 0;
};

struct Warp;
struct Block;

// A copy to shared memory: bytes, then zeros.
struct Copy {
  void* to;
  const void* from;
  std::size_t bytes, zeros, group;
};
// The state of a kernel's thread.
struct Thread {
  Place thread;
  Block* block = nullptr;
  Warp* warp = nullptr;
  unsigned lane = 0;
  std::vector<Copy> copies;     // that it has not waited for
  std::size_t copy_groups = 0;  // that it has ended
};
// The running thread. No variable of a thread of the system: one launch runs at a time, and kernels read this often.
extern Thread* self __attribute__((visibility("hidden")));

// Operations of the lanes of a warp together; all lanes that meet must do the same.
enum class Meeting : std::uint8_t { barrier, shuffle, vote, reduce };
// What lanes handed in: the values, which lanes they are of, and, of a vote, the lanes whose value is not 0.
struct Met {
  std::uint64_t values[32] = {};
  std::uint32_t lanes = 0, votes = 0;
  [[nodiscard]] bool took_part(unsigned lane) const { return (lanes >> lane & 1) != 0; }
};
// Hands in a value, and waits until all lanes of the warp have done so. What it returns is valid until this lane meets
// others again.
const Met& meet(Meeting what, std::uint64_t value);

// Waits until all threads of the block have come. Returns the sum, the OR and the AND of their values.
struct Joined {
  unsigned count, any, all;
};
Joined join_block(unsigned value);

// Lets other threads run.
void pause();
// Tosses a coin.
bool coin();

// Copies to shared memory at any time until the thread waits for the copy; the last `zeros` of the bytes are zeros.
void copy_later(void* to, const void* from, std::size_t bytes, std::size_t zeros = 0);
// Ends a group of copies; waits for all groups but the last ones; waits for all copies.
void end_copy_group();
void copy_groups_now(std::size_t left);
void copy_now();

// Shared memory of the block: the `bytes` bytes of `key`, and the dynamic memory that the launch requested.
void* shared(const void* key, std::size_t bytes);
void* dynamic_shared();
bool is_shared(const void* at);

struct Grid {
  Place blocks, threads;
  std::size_t dynamic_bytes;
};
extern Grid grid __attribute__((visibility("hidden")));
const Place& block_place();

// The number of thread blocks that take turns (kernels may rely on so many of a launch), and the most dynamic shared
// memory of a block.
inline constexpr unsigned kResidentBlocks = 4;
inline constexpr std::size_t kMostDynamicBytes = 227 << 10;

// Runs a kernel to its end; every thread calls `kernel`.
void run(const Grid& launch, const std::function<void()>& kernel);

// Device memory. Bytes behind it cannot be accessed.
void* allocate(std::size_t bytes);
void release(void* memory);

// Reports a mistake of a kernel and ends the process, since nothing is defined afterwards.
[[noreturn]] void mistake(const char* format, ...) __attribute__((format(printf, 1, 2)));

}  // namespace simt
