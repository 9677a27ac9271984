// SPDX-License-Identifier: BSD-3-Clause
// ThreadSanitizer's view of the machine (PYF_SIMT_RACES). Every thread of a kernel is a thread to it. Only CUDA's
// memory-ordering operations order memory: __syncthreads(), __syncwarp(), begin and end of a kernel. Shuffles, votes
// and atomic operations do not. So it reports races that no drawn order shows, in global memory, too.
#pragma once

#include <cstddef>

#if defined(PYF_SIMT_RACES)
extern "C" {
void* __tsan_get_current_fiber();
void* __tsan_create_fiber(unsigned);
void __tsan_switch_to_fiber(void*, unsigned);
void __tsan_acquire(void*);
void __tsan_release(void*);
void __tsan_read_range(const void*, unsigned long);
void __tsan_write_range(void*, unsigned long);
void AnnotateIgnoreReadsBegin(const char*, int);
void AnnotateIgnoreReadsEnd(const char*, int);
void AnnotateIgnoreWritesBegin(const char*, int);
void AnnotateIgnoreWritesEnd(const char*, int);
}
#endif

namespace simt::races {

#if defined(PYF_SIMT_RACES)
inline void* here() { return __tsan_get_current_fiber(); }
inline void* create() { return __tsan_create_fiber(0); }
inline void turn_to(void* thread) { __tsan_switch_to_fiber(thread, 1); }  // the switch orders nothing
// Accesses of this thread so far come before accesses of threads that acquire later.
inline void release(void* at) { __tsan_release(at); }
inline void acquire(void* at) { __tsan_acquire(at); }
inline void copy(void* to, const void* from, std::size_t bytes, std::size_t zeros) {
  __tsan_read_range(from, bytes);
  __tsan_write_range(to, bytes + zeros);
}
// Accesses of the machine are not the thread's.
struct Unseen {
  Unseen() {
    AnnotateIgnoreReadsBegin(__FILE__, __LINE__);
    AnnotateIgnoreWritesBegin(__FILE__, __LINE__);
  }
  ~Unseen() {
    AnnotateIgnoreWritesEnd(__FILE__, __LINE__);
    AnnotateIgnoreReadsEnd(__FILE__, __LINE__);
  }
};
#else
inline void* here() { return nullptr; }
inline void* create() { return nullptr; }
inline void turn_to(void*) {}
inline void release(void*) {}
inline void acquire(void*) {}
inline void copy(void*, const void*, std::size_t, std::size_t) {}
struct [[maybe_unused]] Unseen {
  Unseen() {}  // with a constructor, variables of the type count as used
};
#endif

}  // namespace simt::races
