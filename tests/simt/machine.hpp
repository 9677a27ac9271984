// SPDX-License-Identifier: BSD-3-Clause
// A machine for kernels on a CPU: the threads of a few thread blocks at a time, each with a stack of its own, take
// turns on one thread of the system. A thread runs until it has to wait for others (a barrier, an exchange between
// lanes) or says that it waits (__nanosleep). Which one goes on then is drawn, so that what a missing barrier lets
// happen happens.
//
// It finds what is wrong by the rules of the language: lanes that meet in different operations, threads that wait for
// ever, accesses beyond an allocation (its last byte is the last of a page). It says nothing about speed.
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

struct Copy {
  void* to;
  const void* from;
  std::size_t bytes;
};
// What a thread of a kernel knows of itself.
struct Thread {
  Place thread;
  Block* block = nullptr;
  Warp* warp = nullptr;
  unsigned lane = 0;
  std::vector<Copy> copies;  // to shared memory that it has not waited for
};
// The thread that runs.
extern thread_local Thread* self;

// What lanes of a warp do together; all that meet must do the same.
enum class Meeting : std::uint8_t { barrier, shuffle, vote, reduce };
// Hands in a value, and waits until all lanes of the warp have: values of all lanes, until this lane meets others
// again.
const std::uint64_t* meet(Meeting what, std::uint64_t value);
// Whether a lane took part.
bool took_part(unsigned lane);

// Waits until all threads of the block have come; the sum, the or and the and of their values.
struct Joined {
  unsigned count, any, all;
};
Joined join_block(unsigned value);

// Lets others run.
void pause();

// A copy to shared memory that comes at any time until the thread waits for it.
void copy_later(void* to, const void* from, std::size_t bytes);
void copy_now();

// Shared memory of the block: `bytes` that belong to `key`, and what the launch asked for.
void* shared(const void* key, std::size_t bytes);
void* dynamic_shared();
bool is_shared(const void* at);

struct Grid {
  Place blocks, threads;
  std::size_t dynamic_bytes;
};
extern thread_local Grid grid;
const Place& block_place();

// Thread blocks that take turns: kernels may count on so many of a launch; and dynamic shared memory of one.
inline constexpr unsigned kResidentBlocks = 4;
inline constexpr std::size_t kMostDynamicBytes = 227 << 10;

// Runs a kernel to its end: `kernel` is called by every thread.
void run(const Grid& launch, const std::function<void()>& kernel);

// Memory of the device. Bytes behind it cannot be accessed.
void* allocate(std::size_t bytes);
void release(void* memory);

// Reports a mistake of a kernel and ends the process: nothing can be said about what it would do next.
[[noreturn]] void mistake(const char* format, ...) __attribute__((format(printf, 1, 2)));

}  // namespace simt
