// SPDX-License-Identifier: BSD-3-Clause
// What the fuzz targets share: broken promises, memory with a guarded end, the meter of allocations, CPU levels.
// Targets use the library's C ABI alone. So they run with libFuzzer and sanitizers (CMakeLists.txt), and as plain
// programs that replay files (replay.cpp) against the installed library.
#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "filter/c_api.h"

namespace pyfilter::fuzz {

// Prints what is broken and aborts: a finding.
[[noreturn]] void broken(const char* what, long long a = 0, long long b = 0);

inline void require(bool holds, const char* what, long long a = 0, long long b = 0) {
  if (!holds) broken(what, a, b);
}

// Room for up to `most` bytes of which get() gives the last ones: a page without access follows them
// (AddressSanitizer's redzone where it is built with it). What lies before is poisoned for AddressSanitizer. What get()
// gives, and what lies before put()'s copy, counts as unwritten for MemorySanitizer.
class GuardedRoom {
 public:
  explicit GuardedRoom(std::size_t most);
  // The last `bytes` bytes, filled with `filling`. The room of the call before is gone.
  std::uint8_t* get(std::size_t bytes, std::uint8_t filling);
  // The last bytes, as a copy of these.
  const std::uint8_t* put(const std::uint8_t* data, std::size_t bytes);

 private:
  std::uint8_t* open(std::size_t bytes);
  std::uint8_t* memory_;
  std::size_t size_, open_;  // bytes at the end that may be used
};

// With MemorySanitizer: every one of these bytes was computed from bytes that were written.
void require_written(const void* memory, std::size_t bytes);
// LLVMFuzzerMutate, whose engine MemorySanitizer does not see writing.
std::size_t mutate(std::uint8_t* data, std::size_t size, std::size_t most);

// Bytes that malloc and its kind handed out on any thread and that were not freed: the most of them since the start.
class Meter {
 public:
  Meter();
  [[nodiscard]] std::size_t peak() const;

 private:
  std::size_t before_;
};

// The CPU levels of this machine, "baseline" first. One thread is used from then on.
const std::vector<std::string>& levels();
void use_level(const std::string& name);

// Numbers of codecs (registry.json), and header fields of a frame (docs/format.md, section 2).
inline constexpr std::uint8_t kLossless = 2, kParticles = 5, kProgressive = 6, kAdaptive = 7;
inline constexpr std::size_t kFixedHeader = 56, kMostHeader = kFixedHeader + 8 * 32;
std::uint32_t header_crc(const std::uint8_t* header, std::size_t bytes);
// Makes magic, version, header size, checksum and the frame's size right; `codec` 0 leaves that as it is. Frames that
// are too short for a header stay as they are.
void seal(std::uint8_t* frame, std::size_t size, std::uint8_t codec);
// A changed frame, sealed nearly always (mutate_frame.cpp).
std::size_t mutate_frame(std::uint8_t* frame, std::size_t size, std::size_t most, unsigned seed, std::uint8_t codec);
// Bytes put into a segment of a progressive frame or taken out, its size in the table made right, or its head changed
// (mutate_progressive.cpp). Returns the new size.
std::size_t mutate_progressive(std::uint8_t* frame, std::size_t size, std::size_t most, std::minstd_rand& random);

// Decodes a frame on every level, whole and in parts, and compares (decode_check.cpp). True where it is a good one.
// Frames that stand for much more work than others are left out, unless they are of `any_size`.
bool check_decoders(const std::uint8_t* frame, std::size_t size, bool any_size = false);
// Reads a progressive frame in part, on the level that is in use: what is read does not depend on bytes that are not
// needed, and all segments give the values of the whole, `values` (progressive_check.cpp). Damaged frames: nullptr.
void check_parts(const std::uint8_t* frame, std::size_t size, const pyf_info& info, const std::uint8_t* values);

template <class T>
T load(const std::uint8_t* from) {
  T value;
  __builtin_memcpy(&value, from, sizeof value);
  return value;
}
template <class T>
void store(std::uint8_t* to, T value) {
  __builtin_memcpy(to, &value, sizeof value);
}

inline constexpr int kFloat16 = 14, kBfloat16 = 15;  // dtypes

// Memory that a decoder may take for itself, whatever the frame says: tables of its coder.
inline constexpr std::size_t kDecoderBytes = std::size_t{512} << 10;
// progressive decodes whole chunks, also for a part of the values or an unaligned address. adaptive has a tile of up to
// 65,536 values in memory, as numbers and in the order of decoding.
inline constexpr std::size_t kAdaptiveDecoderBytes = std::size_t{5} << 20;
// lossless with bins has the numbers of a unit, their levels and up to 24 tables in memory.
inline constexpr std::size_t kBinsDecoderBytes = std::size_t{5} << 20;
// Whether a frame's header names lossless with bins.
inline bool has_bins(const std::uint8_t* frame) { return frame[8] == kLossless && frame[48] == 1; }
inline std::size_t decoder_bytes(const pyf_info& info) {
  if (info.codec == kAdaptive && info.stored_raw == 0) return kAdaptiveDecoderBytes;
  if (info.codec == kLossless && info.parameters[0] == 1) return kBinsDecoderBytes;
  return kDecoderBytes + (info.codec == kProgressive ? 2 * static_cast<std::size_t>(info.value_bytes) : 0);
}
// Frames that hold more than this are left out: their values are the caller's memory, and time.
inline constexpr std::size_t kMostValueBytes = std::size_t{96} << 10;

}  // namespace pyfilter::fuzz

extern "C" {
int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);
std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t most);
}
