// SPDX-License-Identifier: BSD-3-Clause
// For LD_PRELOAD: an allocator that has no memory when it is told so (test_no_memory.py). Only the calling thread is
// concerned. calloc, which the library does not call, always has memory: glibc ends the process where it has none.
#include <errno.h>
#include <pthread.h>
#include <stddef.h>

void* __libc_malloc(size_t);
void* __libc_realloc(void*, size_t);
void* __libc_memalign(size_t, size_t);

static __thread long until = -1, refusals = 0, refused = 0;  // allocations before the first refusal; refusals left

static int refuses(void) {
  if (until < 0) return 0;
  if (until > 0) return --until, 0;
  if (refusals == 0) return 0;
  --refusals, ++refused;
  errno = ENOMEM;
  return 1;
}

void* malloc(size_t bytes) { return refuses() ? NULL : __libc_malloc(bytes); }
void* realloc(void* memory, size_t bytes) { return refuses() ? NULL : __libc_realloc(memory, bytes); }
void* aligned_alloc(size_t alignment, size_t bytes) { return refuses() ? NULL : __libc_memalign(alignment, bytes); }
int posix_memalign(void** memory, size_t alignment, size_t bytes) {
  if (refuses()) return ENOMEM;
  return (*memory = __libc_memalign(alignment, bytes)) != NULL ? 0 : ENOMEM;
}

struct call {
  long (*function)(long, long, long, long, long, long, long, long);
  const char* (*first)(void);
  long before, count, result, refused;
  const long* arguments;
};

static void* run(void* memory) {
  struct call* const all = memory;
  const long* const a = all->arguments;
  all->first();  // glibc has memory for a library's thread-local data, or ends the process
  until = all->before, refusals = all->count, refused = 0;
  all->result = all->function(a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7]);
  until = -1;
  all->refused = refused;
  return NULL;
}

// Calls a function on a thread of its own, after another of the same library. The allocation after the first `before` is refused, `count` in a row.
// How many were refused, and in `result` what the function returned.
long call_without_memory(void* function, void* first, const long* arguments, long before, long count, long* result) {
  struct call all = {(long (*)(long, long, long, long, long, long, long, long))function, (const char* (*)(void))first, before, count, 0, 0, arguments};
  pthread_t thread;
  if (pthread_create(&thread, NULL, run, &all) != 0) return -1;
  pthread_join(thread, NULL);
  *result = all.result;
  return all.refused;
}
