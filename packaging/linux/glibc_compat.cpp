// SPDX-License-Identifier: BSD-3-Clause
// Symbols newer than glibc 2.28 that libgcc, libstdc++ and newer headers use, for wheels that load with 2.28
// (glibc_stubs.py). Hidden: each library of a wheel has its own.
#include <dlfcn.h>
#include <elf.h>
#include <link.h>

#include <cstdarg>
#include <cstddef>
#include <cstdint>

#define PYF_HIDDEN __attribute__((visibility("hidden")))

extern "C" {

// glibc 2.32: whether the process has one thread. 0 leads to atomic operations, which are always right.
extern char __libc_single_threaded;
PYF_HIDDEN char __libc_single_threaded = 0;

// glibc 2.38: its headers give C's functions that read numbers these names. They also know binary numbers (C23), which
// nothing here is given.
long plain_strtol(const char* text, char** end, int base) asm("strtol");
unsigned long plain_strtoul(const char* text, char** end, int base) asm("strtoul");
long long plain_strtoll(const char* text, char** end, int base) asm("strtoll");
unsigned long long plain_strtoull(const char* text, char** end, int base) asm("strtoull");
int plain_vsscanf(const char* text, const char* format, std::va_list arguments) asm("vsscanf");

PYF_HIDDEN long __isoc23_strtol(const char* text, char** end, int base) { return plain_strtol(text, end, base); }
PYF_HIDDEN unsigned long __isoc23_strtoul(const char* text, char** end, int base) {
  return plain_strtoul(text, end, base);
}
PYF_HIDDEN long long __isoc23_strtoll(const char* text, char** end, int base) { return plain_strtoll(text, end, base); }
PYF_HIDDEN unsigned long long __isoc23_strtoull(const char* text, char** end, int base) {
  return plain_strtoull(text, end, base);
}
PYF_HIDDEN int __isoc23_sscanf(const char* text, const char* format, ...) {
  std::va_list arguments;
  va_start(arguments, format);
  const int count = plain_vsscanf(text, format, arguments);
  va_end(arguments);
  return count;
}

#if defined(DLFO_STRUCT_HAS_EH_DBASE)

// Of an object that has the address dlfo_map_start, sets where it is mapped and its section .eh_frame_hdr.
static int find_in_object(dl_phdr_info* info, std::size_t, void* data) {
  auto* const found = static_cast<dl_find_object*>(data);
  const auto wanted = reinterpret_cast<std::uintptr_t>(found->dlfo_map_start);
  std::uintptr_t first = UINTPTR_MAX, last = 0, table = 0;
  bool here = false;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const auto& header = info->dlpi_phdr[i];
    const std::uintptr_t start = info->dlpi_addr + header.p_vaddr, end = start + header.p_memsz;
    if (header.p_type == PT_GNU_EH_FRAME) table = start;
    if (header.p_type != PT_LOAD) continue;
    if (start < first) first = start;
    if (end > last) last = end;
    here = here || (start <= wanted && wanted < end);
  }
  if (!here || table == 0) return 0;
  found->dlfo_map_start = reinterpret_cast<void*>(first);
  found->dlfo_map_end = reinterpret_cast<void*>(last);
  found->dlfo_eh_frame = reinterpret_cast<void*>(table);
  return 1;
}

// glibc 2.35: by which libgcc finds the unwind table of a program counter.
PYF_HIDDEN int _dl_find_object(void* address, dl_find_object* result) noexcept {
  *result = {};
  result->dlfo_map_start = address;
  return dl_iterate_phdr(find_in_object, result) == 1 ? 0 : -1;
}

#endif

}  // extern "C"
