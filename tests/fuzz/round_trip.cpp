// SPDX-License-Identifier: BSD-3-Clause
// Fuzz target: a request and values, encoded and decoded on every CPU level. The frames are the same bytes, no longer
// than the raw values and a header. The values keep the bound in exact arithmetic (judge.hpp), special values their
// bits. The encoder takes no more memory than its buffers (kEncoderBytes) and an eighth of the chunk.
//
// An input: codec, dtype, bound mode, flags (bit 0: a fill value, bit 1: values are sums of the input's, so smooth),
// four parameters, bound (f64), fill (8 bytes), rank, three dims (one byte each), then values, over and over again.
#include <algorithm>
#include <bit>
#include <cstring>
#include <random>
#include <vector>

#include "judge.hpp"
#include "registry_table.hpp"
#include "support.hpp"

using namespace pyfilter::fuzz;

namespace {

constexpr std::size_t kHeadBytes = 28;
constexpr std::size_t kEncoderBytes = std::size_t{6} << 20;    // scratch of a thread, tables and counts of streams
constexpr std::size_t kAdaptiveBytes = std::size_t{64} << 20;  // samples to train with, a unit and its codes
constexpr std::size_t kHalfCopies = 5;  // of floats of 16 bits: as f32, the frame of these, as integers
constexpr std::size_t kWidths[] = {0, 4, 8, 1, 1, 2, 2, 4, 4, 8, 8, 0, 0, 0, 2, 2};  // 0: dtypes left out

// Values of an input at most, and with those that fill up tiles of any shape: more of the same takes time only.
constexpr std::size_t kMostValues = 16384, kMostPadded = 80 * 4096;

std::size_t padded(const pyf_request& request) {
  const auto to = [](std::uint64_t n, std::size_t side) {
    return (static_cast<std::size_t>(n) + side - 1) / side * side;
  };
  const std::uint64_t* const d = request.dims;
  if (request.rank == 3)
    return std::max(to(d[0], 8) * to(d[1], 16) * to(d[2], 32),
                    static_cast<std::size_t>(d[0]) * to(d[1], 64) * to(d[2], 64));
  return request.rank == 2 ? std::max(to(d[0], 64) * to(d[1], 64), to(d[0], 1024) * to(d[1], 4)) : 0;
}

template <class Word>
void fill_values(std::vector<std::uint8_t>& values, const std::uint8_t* from, std::size_t size, bool sums) {
  const std::size_t words = size / sizeof(Word);
  Word sum = 0;
  for (std::size_t i = 0; words != 0 && i < values.size() / sizeof(Word); ++i) {
    const Word word = load<Word>(from + i % words * sizeof(Word));
    sum = static_cast<Word>(sums ? sum + static_cast<Word>(word >> (4 * sizeof(Word))) : word);
    store(values.data() + i * sizeof(Word), sum);
  }
}

bool read_request(const std::uint8_t* data, std::size_t size, pyf_request& request, std::vector<std::uint8_t>& values) {
  request = {};
  request.struct_bytes = sizeof request;
  request.codec = data[0];
  request.dtype = data[1];
  request.bound_mode = data[2];
  request.has_fill = data[3] & 1;
  std::memcpy(request.parameters, data + 4, 4);
  request.bound = load<double>(data + 8);
  request.fill = load<std::uint64_t>(data + 16);
  request.rank = data[24] % 4;
  std::size_t count = 1;
  for (int i = 0; i < request.rank; ++i) count *= request.dims[i] = data[25 + i];
  if (count > kMostValues || padded(request) > kMostPadded) return false;
  const std::size_t width = request.dtype < std::size(kWidths) ? kWidths[request.dtype] : 0;
  if (width == 0) return false;
  if (count > kMostValueBytes / width) return false;
  if (width < 8) request.fill &= (std::uint64_t{1} << 8 * width) - 1;
  values.assign(count * width, 0);
  const bool sums = (data[3] & 2) != 0;
  const std::uint8_t* const from = data + kHeadBytes;
  if (width == 1) fill_values<std::uint8_t>(values, from, size - kHeadBytes, sums);
  if (width == 2) fill_values<std::uint16_t>(values, from, size - kHeadBytes, sums);
  if (width == 4) fill_values<std::uint32_t>(values, from, size - kHeadBytes, sums);
  if (width == 8) fill_values<std::uint64_t>(values, from, size - kHeadBytes, sums);
  return true;
}

// Rows as particles lays them: in the order that the request asks for.
void put_in_order(const pyf_request& request, const std::uint8_t* given, std::vector<std::uint8_t>& values) {
  const std::size_t row = static_cast<std::size_t>(request.dims[request.rank - 1]) * kWidths[request.dtype];
  std::vector<std::uint32_t> order(values.size() / row);
  require(pyf_particle_order(&request, given, values.size(), order.data()) == PYF_OK, "no order of our own frame");
  std::vector<bool> seen(order.size());
  for (std::size_t i = 0; i < order.size(); ++i) {
    require(order[i] < order.size() && !seen[order[i]], "an order that is none", static_cast<long long>(i));
    seen[order[i]] = true;
    std::memcpy(values.data() + i * row, given + order[i] * row, row);
  }
}

// What the table of a progressive frame says of its first segments, of three prefixes that end right behind them.
void judge_parts(const pyf_request& request, const pyf_info& whole, const std::uint8_t* given,
                 const std::vector<std::uint8_t>& frame) {
  static GuardedRoom frame_room(kMostValueBytes + kMostHeader), back_room(kMostValueBytes);
  pyf_progressive summary{};
  require(pyf_progressive_summary(frame.data(), frame.size(), &summary) == PYF_OK, "no summary of our own frame");
  std::vector<pyf_progressive_part> parts(summary.segments);
  require(pyf_progressive_parts(frame.data(), frame.size(), 0, parts.data(), summary.segments) == PYF_OK,
          "no segments of our own frame");
  pyf_info info = whole;
  for (std::size_t k = 1; k <= 3; ++k) {
    std::size_t count = parts.size() * k / 3;
    while (count != 0 && std::isinf(parts[count - 1].error)) --count;
    if (count == 0) continue;
    const pyf_progressive_part& last = parts[count - 1];
    const auto bytes = static_cast<std::size_t>(last.offset + last.size);
    std::uint8_t* const back = back_room.get(whole.value_bytes, 0x5A);
    require(pyf_progressive_decode(frame_room.put(frame.data(), bytes), bytes, static_cast<std::uint32_t>(count), 0,
                                   back, whole.value_bytes) == PYF_OK,
            "the first segments of our own frame are refused", static_cast<long long>(count));
    info.bound = last.error;
    judge(request, info, given, back, true);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static GuardedRoom given_room(kMostValueBytes), frame_room(kMostValueBytes + kMostHeader), back_room(kMostValueBytes);
  static std::vector<std::uint8_t> first;
  pyf_request request;
  std::vector<std::uint8_t> values;
  if (size < kHeadBytes || !read_request(data, size, request, values)) return 0;
  (void)levels();
  const std::size_t capacity = pyf_max_frame_bytes(&request);
  if (capacity == 0) {
    require(pyf_last_error()[0] != '\0', "a request is refused without a text");
    return 0;
  }
  require(capacity == kFixedHeader + 8 * static_cast<std::size_t>(request.rank) + values.size(), "max_frame_bytes");
  const std::uint8_t* const given = given_room.put(values.data(), values.size());
  for (std::size_t level = 0; level < levels().size(); ++level) {
    use_level(levels()[level]);
    std::uint8_t* const frame = frame_room.get(capacity, 0xA5);
    std::size_t frame_bytes = 0;
    const Meter meter;
    const int code = pyf_encode(&request, given, values.size(), frame, capacity, &frame_bytes);
    require(code == PYF_OK, "a good request is refused", code);
    // progressive has an integer for each value
    const std::size_t own = values.size() / 8 + (request.codec == kProgressive ? values.size() : 0) +
                            (request.dtype >= kFloat16 ? kHalfCopies * values.size() : 0) +
                            (request.codec == kAdaptive ? kAdaptiveBytes : kEncoderBytes);
    require(meter.peak() <= own, "the encoder took memory", static_cast<long long>(meter.peak()));
    require(frame_bytes <= capacity, "a frame longer than its raw form");
    require(std::equal(values.begin(), values.end(), given), "the encoder changed its input");
    if (level == 0)
      first.assign(frame, frame + frame_bytes);
    else
      require(std::equal(first.begin(), first.end(), frame, frame + frame_bytes), "levels write other bytes",
              static_cast<long long>(level));
  }
  require(check_decoders(first.data(), first.size(), true), "our own frame is refused");
  pyf_info info{};
  info.struct_bytes = sizeof info;
  require(pyf_frame_info(first.data(), first.size(), &info) == PYF_OK, "our own header is refused");
  std::uint8_t* const back = back_room.get(values.size(), 0x5A);
  require(pyf_decode(first.data(), first.size(), back, values.size()) == PYF_OK, "our own frame is refused");
  if (info.codec == kParticles && info.stored_raw == 0) put_in_order(request, given, values);
  judge(request, info, values.data(), back);
  if (info.codec == kProgressive && info.stored_raw == 0) judge_parts(request, info, values.data(), first);
  return 0;
}

// Head bytes to values that make sense; the rest as libFuzzer does it.
extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t most, unsigned seed) {
  static constexpr double kBounds[] = {1e-3, 1,     0x1p-1074, 1e-300, 1e300, 1e-38, 0x1p-149, 0.1, 2,      1e-6,
                                       64,   120.5, 1e30,      0.25,   3,     1e-15, 0x1p52,   0.9, 0x1p62, 1000};
  std::minstd_rand random(seed + 1);
  for (int i = 0; i < 8; ++i) random();
  if (size < kHeadBytes) {
    if (most < kHeadBytes + 8) return size;
    std::memset(data + size, 1, kHeadBytes + 8 - size);
    size = kHeadBytes + 8;
  }
  switch (random() % 8) {
    case 0:
      data[0] = static_cast<std::uint8_t>(1 + random() % std::size(pyfilter::registry::kCodecs));
      break;
    case 1:
      data[1] = static_cast<std::uint8_t>(random() % 4 == 0 ? kFloat16 + random() % 2
                                                            : 1 + random() % (random() % 2 != 0 ? 2 : 10));
      break;
    case 2:
      data[2] = static_cast<std::uint8_t>(random() % 5);
      data[3] = static_cast<std::uint8_t>(random() % 4);
      break;
    case 3:
      data[4 + random() % 3] = static_cast<std::uint8_t>(random() % 6);
      break;
    case 4:
      store(data + 8, kBounds[random() % std::size(kBounds)] * (random() % 4 == 0 ? 1.0 / 3 : 1));
      break;
    case 5:
      data[24 + random() % 4] = static_cast<std::uint8_t>(random() % (random() % 2 != 0 ? 5 : 90));
      break;
    case 6:
      if (size >= kHeadBytes + 8) std::memcpy(data + 16, data + kHeadBytes + random() % (size - kHeadBytes - 7), 8);
      break;
    default:
      break;
  }
  return kHeadBytes + mutate(data + kHeadBytes, size - kHeadBytes, most - kHeadBytes);
}
