// SPDX-License-Identifier: BSD-3-Clause
// Volatile accesses, as the compiler reports them (tsan-distinguish-volatile): in CUDA they are relaxed, and do not
// race with atomic operations.
#include <cstdint>

#include "machine.hpp"

extern "C" {
int __tsan_atomic32_load(const volatile int*, int);
long __tsan_atomic64_load(const volatile long*, int);
void __tsan_atomic32_store(volatile int*, int, int);
void __tsan_atomic64_store(volatile long*, long, int);

void __tsan_volatile_read4(void* at) { (void)__tsan_atomic32_load(static_cast<int*>(at), __ATOMIC_RELAXED); }
void __tsan_volatile_read8(void* at) { (void)__tsan_atomic64_load(static_cast<long*>(at), __ATOMIC_RELAXED); }
// The compiler stores the value itself after this call, so this stores the present value again.
void __tsan_volatile_write4(void* at) {
  __tsan_atomic32_store(static_cast<int*>(at), *static_cast<int*>(at), __ATOMIC_RELAXED);
}
void __tsan_volatile_write8(void* at) {
  __tsan_atomic64_store(static_cast<long*>(at), *static_cast<long*>(at), __ATOMIC_RELAXED);
}
void __tsan_volatile_read1(void*) { simt::mistake("a volatile access of a byte"); }
void __tsan_volatile_read2(void*) { simt::mistake("a volatile access of two bytes"); }
void __tsan_volatile_read16(void*) { simt::mistake("a volatile access of 16 bytes"); }
void __tsan_volatile_write1(void*) { simt::mistake("a volatile access of a byte"); }
void __tsan_volatile_write2(void*) { simt::mistake("a volatile access of two bytes"); }
void __tsan_volatile_write16(void*) { simt::mistake("a volatile access of 16 bytes"); }
}
