// SPDX-License-Identifier: BSD-3-Clause
// Fuzz target: what HDF5 hands to the filter. An input is a byte (low five bits: the number of cd_values; bit 7:
// decode), the cd_values, and the chunk. For any input the filter refuses and leaves the buffer unchanged, or returns a
// buffer of the size that it reports. Decoding takes no more memory than the dataset's chunk, and its own
// (support.hpp).
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <random>

#include "support.hpp"

using namespace pyfilter::fuzz;

namespace {

// H5Z_class2_t; its fields have not changed since HDF5 1.8.
struct FilterClass {
  int version, id;
  unsigned encoder_present, decoder_present;
  const char* name;
  void *can_apply, *set_local;
  std::size_t (*filter)(unsigned flags, std::size_t count, const unsigned words[], std::size_t bytes,
                        std::size_t* buffer_bytes, void** buffer);
};
extern "C" const void* H5PLget_plugin_info(void);

constexpr std::size_t kMostWords = 31;
constexpr unsigned kDecode = 0x0100, kStampLetters = 0x465950, kRecordStamp = 0x32465950;
constexpr std::size_t kWidths[] = {0, 4, 8, 1, 1, 2, 2, 4, 4, 8, 8, 8, 16, 1, 2, 2};

struct Input {
  unsigned words[kMostWords] = {};
  std::size_t count = 0;
  bool decode = false;
  const std::uint8_t* chunk = nullptr;
  std::size_t bytes = 0;

  Input(const std::uint8_t* data, std::size_t size) {
    if (size == 0) return;
    count = std::min<std::size_t>(data[0] & 31, (size - 1) / 4);
    decode = (data[0] & 0x80) != 0;
    if (count != 0) std::memcpy(words, data + 1, 4 * count);
    chunk = data + 1 + 4 * count;
    bytes = size - 1 - 4 * count;
  }
};

// The same of records (a compound type), whose columns add up.
std::size_t record_chunk_bytes(const Input& input) {
  std::size_t at = 1;
  const auto word = [&] { return at < input.count ? input.words[at++] : 0u; };
  const unsigned fields = word();
  (void)word();
  for (unsigned i = 0; i < std::min(fields, unsigned{kMostWords}); ++i) at += 3 + ((word() >> 16) + 3) / 4;
  const unsigned head = word();
  std::size_t count = 1, bytes = 0;
  for (unsigned i = 0; i < (head & 0xFF); ++i) {
    const std::size_t low = word(), high = word();
    if (__builtin_mul_overflow(count, low | high << 32, &count)) return 0;
  }
  for (unsigned i = 0; i < head >> 16; ++i) {
    const unsigned column = word(), dtype = column & 0xFF;
    if (dtype > 15) return 0;
    std::size_t width = dtype == 0 ? word() : kWidths[dtype];
    const unsigned rank = (column & 1u << 11) != 0 ? word() : 0;
    for (unsigned k = 0; k < std::min(rank, 32u); ++k)
      if (__builtin_mul_overflow(width, std::size_t{word()}, &width)) return 0;
    if ((column & 1u << 9) != 0) {
      const unsigned parts = dtype == 11 || dtype == 12 ? 2 : 1;
      at += parts * (kWidths[dtype] / parts > 4 ? 2 : 1);
    }
    if (__builtin_add_overflow(bytes, width, &bytes)) return 0;
  }
  return __builtin_mul_overflow(count, bytes, &bytes) ? 0 : bytes;
}

// Bytes of the dataset's chunks by stored cd_values (docs/cd_values.md); 0 where they are nonsense.
std::size_t chunk_bytes(const Input& input) {
  if (input.count != 0 && input.words[0] == kRecordStamp) return record_chunk_bytes(input);
  if (input.count < 10 || (input.words[0] & 0xFFFFFF) != kStampLetters || input.words[9] > 5) return 0;
  const unsigned dtype = input.words[6] & 0xFF;
  if (dtype < 1 || dtype > 15 || input.count < 10 + 2 * std::size_t{input.words[9]}) return 0;
  std::size_t bytes = kWidths[dtype];
  for (unsigned i = 0; i < input.words[9]; ++i)
    if (__builtin_mul_overflow(bytes, input.words[10 + 2 * i] | std::size_t{input.words[11 + 2 * i]} << 32, &bytes))
      return 0;
  return bytes;
}

void check_words(const Input& input) {
  pyf_request request{};
  request.struct_bytes = sizeof request;
  const std::unique_ptr<unsigned[]> words(new unsigned[input.count]);  // its end is watched
  std::copy_n(input.words, input.count, words.get());
  const int code = pyf_parse_cd_values(words.get(), input.count, &request);
  require(code == PYF_OK || pyf_last_error()[0] != '\0', "cd_values are refused without a text", code);
  if (code == PYF_OK && request.rank > 0) require(chunk_bytes(input) != 0, "cd_values of chunks without a size");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const auto* const filter = static_cast<const FilterClass*>(H5PLget_plugin_info());
  (void)levels();  // one thread
  const Input input(data, size);
  check_words(input);
  const std::size_t chunk = chunk_bytes(input);
  if (chunk > kMostValueBytes) return 0;
  void* buffer = std::malloc(input.bytes);
  if (buffer == nullptr) return 0;
  if (input.bytes != 0) std::memcpy(buffer, input.chunk, input.bytes);
  void* const before = buffer;
  std::size_t buffer_bytes = input.bytes;
  const Meter meter;
  const std::size_t used =
      filter->filter(input.decode ? kDecode : 0, input.count, input.words, input.bytes, &buffer_bytes, &buffer);
  const std::size_t peak = meter.peak();
  const std::size_t own = !input.decode || input.bytes < kFixedHeader ? kDecoderBytes
                          : input.chunk[8] == kAdaptive               ? kAdaptiveDecoderBytes
                          : has_bins(input.chunk)                     ? kBinsDecoderBytes
                                                                      : kDecoderBytes;
  const std::size_t column = input.count != 0 && input.words[0] == kRecordStamp ? chunk : 0;  // at most
  if (input.decode)
    require(peak <= chunk + column + 64 + own, "more memory than a chunk", static_cast<long long>(peak));
  if (used == 0) {
    require(buffer == before && buffer_bytes == input.bytes, "a failure changed the buffer");
    require(input.bytes == 0 || std::memcmp(buffer, input.chunk, input.bytes) == 0, "a failure changed the bytes");
  } else {
    require(used <= buffer_bytes, "more bytes in use than the buffer has");
    if (buffer != before) {
      if (input.decode)
        require(used == chunk, "decoded to another size than the chunk's", static_cast<long long>(used));
      volatile std::uint8_t sink = 0;  // all of it can be read
      for (std::size_t i = 0; i < used; ++i) sink = static_cast<const std::uint8_t*>(buffer)[i];
      (void)sink;
    }
  }
  std::free(buffer);
  return 0;
}

// Changes the words, or the chunk as the frame that it is; then, often, the words say what the frame's header says.
extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t most, unsigned seed) {
  std::minstd_rand random(seed + 1);
  for (int i = 0; i < 8; ++i) random();
  if (size == 0 || random() % 8 == 0) return mutate(data, size, most);
  const std::size_t count = std::min<std::size_t>(data[0] & 31, (size - 1) / 4), head = 1 + 4 * count;
  std::uint8_t* const words = data + 1;
  if (random() % 2 == 0 && count != 0)
    mutate(words, 4 * count, 4 * count);
  else if (head < most)
    size = head + mutate_frame(data + head, size - head, most - head, static_cast<unsigned>(random()), 0);
  const std::uint8_t* const frame = data + head;
  if (random() % 4 != 0 && count >= 10 && size >= head + kFixedHeader && frame[11] <= 5 &&
      count >= 10 + 2u * frame[11] && size >= head + kFixedHeader + 8 * std::size_t{frame[11]}) {
    data[0] = static_cast<std::uint8_t>(0x80 | (10 + 2 * frame[11]));
    store(words, unsigned{'1'} << 24 | kStampLetters);
    store(words + 24, unsigned{frame[9]} | unsigned{frame[10] & 2u} << 7);
    store(words + 28, std::uint64_t{0});
    store(words + 36, unsigned{frame[11]});
    std::memmove(words + 40, frame + kFixedHeader, 8 * std::size_t{frame[11]});
    const std::size_t shorter = 40 + 8 * std::size_t{frame[11]};
    std::memmove(words + shorter, frame, size - head);
    size -= 4 * count - shorter;
  }
  return size;
}
