// SPDX-License-Identifier: BSD-3-Clause
// What the fuzz targets share (support.hpp).
#include "support.hpp"

#include <sys/mman.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "registry_table.hpp"

#if defined(__SANITIZE_ADDRESS__)
#define PYF_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define PYF_ASAN 1
#endif
#endif
#if defined(__has_feature)
#if __has_feature(memory_sanitizer)
#define PYF_MSAN 1
#endif
#endif
#if defined(PYF_MSAN)
#include <sanitizer/msan_interface.h>
#else
#define __msan_poison(address, size) ((void)(address), (void)(size))
#define __msan_unpoison(address, size) ((void)(address), (void)(size))
#define __msan_check_mem_is_initialized(address, size) ((void)(address), (void)(size))
#endif
#if defined(PYF_ASAN)
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(address, size) ((void)(address), (void)(size))
#define ASAN_UNPOISON_MEMORY_REGION(address, size) ((void)(address), (void)(size))
#endif

namespace pyfilter::fuzz {

void broken(const char* what, long long a, long long b) {
  std::fprintf(stderr, "BROKEN: %s (%lld, %lld); last error: %s\n", what, a, b, pyf_last_error());
  std::abort();
}

GuardedRoom::GuardedRoom(std::size_t most) {
  const std::size_t page = 4096;
  size_ = (most + page - 1) / page * page;
  void* const memory = mmap(nullptr, size_ + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED || mprotect(static_cast<char*>(memory) + size_, page, PROT_NONE) != 0) {
    std::perror("mmap");
    std::exit(2);
  }
  memory_ = static_cast<std::uint8_t*>(memory);
  open_ = size_;
}

std::uint8_t* GuardedRoom::open(std::size_t bytes) {
  require(bytes <= size_, "a target asks for more memory than it has", static_cast<long long>(bytes));
  std::uint8_t* const start = memory_ + size_ - bytes;
  if (bytes >= open_)
    ASAN_UNPOISON_MEMORY_REGION(start, bytes - open_);
  else
    ASAN_POISON_MEMORY_REGION(memory_ + size_ - open_, open_ - bytes);
  open_ = bytes;
  return start;
}

std::uint8_t* GuardedRoom::get(std::size_t bytes, std::uint8_t filling) {
  std::uint8_t* const start = open(bytes);
  if (bytes != 0) std::memset(start, filling, bytes);
  __msan_poison(start, bytes);
  return start;
}

const std::uint8_t* GuardedRoom::put(const std::uint8_t* data, std::size_t bytes) {
  std::uint8_t* const start = open(bytes);
  __msan_poison(memory_, size_);
  if (bytes != 0) std::memcpy(start, data, bytes);
  return start;
}

void require_written(const void* memory, std::size_t bytes) { __msan_check_mem_is_initialized(memory, bytes); }

std::size_t mutate(std::uint8_t* data, std::size_t size, std::size_t most) {
  size = LLVMFuzzerMutate(data, size, most);
  __msan_unpoison(data, size);
  return size;
}

const std::vector<std::string>& levels() {
  static const std::vector<std::string> found = [] {
    if (pyf_configure("threads", "1") != PYF_OK) broken("threads cannot be set");
    std::vector<std::string> names;
    for (const char* name : {"baseline", "avx2", "avx512"})
      if (pyf_configure("cpu_level", name) == PYF_OK) names.emplace_back(name);
    return names;
  }();
  return found;
}

void use_level(const std::string& name) {
  if (pyf_configure("cpu_level", name.c_str()) != PYF_OK) broken("a level that was there is gone");
}

std::uint32_t header_crc(const std::uint8_t* header, std::size_t bytes) {
  static constexpr auto kTable = [] {
    std::array<std::uint32_t, 256> table{};
    for (std::uint32_t n = 0; n < 256; ++n) {
      std::uint32_t c = n;
      for (int k = 0; k < 8; ++k) c = (c & 1) != 0 ? 0xEDB88320u ^ (c >> 1) : c >> 1;
      table[n] = c;
    }
    return table;
  }();
  std::uint32_t crc = ~0u;
  for (std::size_t i = 0; i < bytes; ++i)
    crc = kTable[(crc ^ (i >= 12 && i < 16 ? 0u : header[i])) & 0xFF] ^ (crc >> 8);
  return ~crc;
}

void seal(std::uint8_t* frame, std::size_t size, std::uint8_t codec) {
  if (size < kFixedHeader) return;
  if (codec != 0) frame[8] = codec;
  if (frame[11] > 32) frame[11] %= 5;
  while (kFixedHeader + 8 * std::size_t{frame[11]} > size) --frame[11];
  static constexpr std::uint8_t kMagic[4] = {0x89, 'P', 'Y', 'F'};
  std::memcpy(frame, kMagic, 4);
  frame[4] = 1;
  for (const registry::CodecRow& row : registry::kCodecs)
    if (row.id == frame[8]) frame[4] = row.format_version;
  if (has_bins(frame)) frame[4] = 7;  // blocks came with the first format
  frame[7] = static_cast<std::uint8_t>(7 + frame[11]);
  store(frame + 16, std::uint64_t{size});
  store(frame + 12, header_crc(frame, 8 * std::size_t{frame[7]}));
}

}  // namespace pyfilter::fuzz
