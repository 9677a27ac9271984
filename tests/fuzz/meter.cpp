// SPDX-License-Identifier: BSD-3-Clause
// The meter of allocations (support.hpp): hooks of AddressSanitizer or MemorySanitizer in builds that have one, else
// replacements of malloc and related functions, which the library calls as well.
#include <malloc.h>

#include <atomic>
#include <cerrno>

#include "support.hpp"

namespace {
std::atomic<std::size_t> live{0}, most{0};

void taken(std::size_t bytes) {
  const std::size_t now = live.fetch_add(bytes) + bytes;
  std::size_t seen = most.load();
  while (now > seen && !most.compare_exchange_weak(seen, now)) {
  }
}
void given(std::size_t bytes) { live.fetch_sub(bytes); }
}  // namespace

namespace pyfilter::fuzz {
Meter::Meter() : before_(live.load()) { most.store(before_); }
std::size_t Meter::peak() const { return most.load() - before_; }
}  // namespace pyfilter::fuzz

#if defined(__SANITIZE_ADDRESS__)
#define PYF_SANITIZER_ALLOCATOR 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(memory_sanitizer)
#define PYF_SANITIZER_ALLOCATOR 1
#endif
#endif

#if defined(PYF_SANITIZER_ALLOCATOR)
#include <sanitizer/allocator_interface.h>
namespace {
const int installed = __sanitizer_install_malloc_and_free_hooks(
    [](const volatile void*, std::size_t bytes) { taken(bytes); },
    [](const volatile void* memory) {
      if (memory != nullptr) given(__sanitizer_get_allocated_size(const_cast<const void*>(memory)));
    });
}  // namespace
#else
extern "C" {
void* __libc_malloc(std::size_t);
void* __libc_calloc(std::size_t, std::size_t);
void* __libc_realloc(void*, std::size_t);
void* __libc_memalign(std::size_t, std::size_t);
void __libc_free(void*);

static void* counted(void* memory) {
  if (memory != nullptr) taken(malloc_usable_size(memory));
  return memory;
}
void* malloc(std::size_t bytes) { return counted(__libc_malloc(bytes)); }
void* calloc(std::size_t count, std::size_t bytes) { return counted(__libc_calloc(count, bytes)); }
void* memalign(std::size_t alignment, std::size_t bytes) { return counted(__libc_memalign(alignment, bytes)); }
void* aligned_alloc(std::size_t alignment, std::size_t bytes) { return counted(__libc_memalign(alignment, bytes)); }
int posix_memalign(void** memory, std::size_t alignment, std::size_t bytes) {
  *memory = counted(__libc_memalign(alignment, bytes));
  return *memory != nullptr ? 0 : ENOMEM;
}
void free(void* memory) {
  if (memory != nullptr) given(malloc_usable_size(memory));
  __libc_free(memory);
}
void* realloc(void* memory, std::size_t bytes) {
  const std::size_t before = memory != nullptr ? malloc_usable_size(memory) : 0;
  void* const grown = __libc_realloc(memory, bytes);
  if (grown != nullptr || bytes == 0) given(before);
  return counted(grown);
}
}
#endif
