// SPDX-License-Identifier: BSD-3-Clause
// Parses and writes cd_values (cd_values.hpp, docs/cd_values.md). Every error names the word, its value and the
// allowed values.
#include "filter/cd_values.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdio>

#include "core/api.hpp"
#include "core/error_text.hpp"
#include "core/request.hpp"
#include "registry_table.hpp"

namespace pyfilter::filter {
namespace {

constexpr unsigned kLayoutVersion = 1;
constexpr unsigned kStampLetters = 0x465950;  // "PYF" in the low three bytes; the fourth is the version, a digit
constexpr unsigned kStampMask = 0xFFFFFF;
constexpr unsigned kStamp = kStampLetters | unsigned{'1'} << 24;
constexpr std::size_t kUserMinWords = 3, kUserMaxWords = 6;
constexpr std::size_t kStoredFixedWords = 10;
constexpr unsigned kTypeBigEndian = 1u << 8, kTypeHasFill = 1u << 9;
constexpr unsigned kTypeKnownBits = 0xFFu | kTypeBigEndian | kTypeHasFill | kTypeWithoutZeros;

std::uint64_t join(unsigned low, unsigned high) { return std::uint64_t{high} << 32 | low; }
unsigned low_word(std::uint64_t value) { return static_cast<unsigned>(value); }
unsigned high_word(std::uint64_t value) { return static_cast<unsigned>(value >> 32); }

// "1 (cuszp2), 2 (lossless), ..."
void list_codecs(char* out, std::size_t size) {
  std::size_t used = 0;
  out[0] = '\0';
  for (const auto& codec : registry::kCodecs) {
    if (used >= size) return;
    const int n = std::snprintf(out + used, size - used, "%s%d (%s)", used == 0 ? "" : ", ", codec.id, codec.name);
    if (n > 0) used += static_cast<std::size_t>(n);
  }
}

// Words 1 and 2, before they are narrowed.
Status check_codec_and_mode(const unsigned* words) {
  if (words[1] > 0xFF || find_codec(static_cast<std::uint8_t>(words[1])) == nullptr) {
    char known[256];
    list_codecs(known, sizeof known);
    return fail(Code::invalid_argument, "cd_values[1] is %u: unknown codec, this pyfilter (%s) knows %s", words[1],
                registry::kVersion, known);
  }
  for (const auto& bound : registry::kBounds)
    if (words[2] == bound.mode) return kOk;
  char known[256];
  list_bounds(~0u, known, sizeof known);
  return fail(Code::invalid_argument, "cd_values[2] is %u: unknown bound mode, allowed: %s", words[2], known);
}

// Words 1 to 5, which both forms share; trailing words may be missing.
void read_settings(const unsigned* words, std::size_t count, Request* request) {
  request->codec = static_cast<std::uint8_t>(words[1]);
  request->bound_mode = static_cast<Bound>(words[2]);
  request->bound = count >= 5 ? std::bit_cast<double>(join(words[3], words[4])) : 0.0;
  if (count >= 6) set_parameters(words[5], request->parameters);
}

bool takes_integers(const Request& request) {
  const registry::CodecRow* const codec = find_codec(request.codec);
  return request.bound_mode == Bound::absolute && (codec->dtype_mask >> static_cast<unsigned>(Dtype::i32) & 1) != 0;
}

// The most common mistake is a bound written without its type: nccopy and ncgen then pass its integer part.
Status check_bound(const Request& request) {
  // an absolute bound of 0 is allowed for integers: check_request() decides once the dtype is known
  const bool positive = request.bound > 0 || (request.bound == 0 && takes_integers(request));
  if (request.bound_mode == Bound::none || (std::isfinite(request.bound) && positive)) return kOk;
  return fail(Code::invalid_argument,
              "the bound in cd_values[3] and [4] is %g, must be finite and > 0. It is a double as two words, low word "
              "first. nccopy and ncgen need it written with a d, as 0.001d",
              request.bound);
}

// Checks the codec's rules for bound mode and parameters. Dtype and rank are not known yet: the check uses a dtype that
// the codec takes and a rank that allows all parameters.
Status check_codec_rules(const Request& request) {
  const registry::CodecRow* const codec = find_codec(request.codec);
  Request probe = request;
  probe.dtype = request.bound_mode == Bound::absolute && request.bound == 0
                    ? Dtype::i32
                    : static_cast<Dtype>(std::countr_zero(codec->dtype_mask));
  probe.has_fill = false;
  probe.shape = {};
  probe.shape.rank = 3;
  probe.shape.dims = {1, 1, 2};
  return check_request(probe);
}

Status parse_user(const unsigned* words, std::size_t count, Request* request) {
  *request = {};
  if (count < kUserMinWords)
    return fail(Code::invalid_argument,
                "cd_values: %zu words given, at least %zu needed (layout version, codec, bound mode)", count,
                kUserMinWords);
  if (words[0] != kLayoutVersion)
    return fail(Code::invalid_argument,
                "cd_values[0] is %u: unknown layout version, this pyfilter (%s) knows %u, and 2 for records", words[0],
                registry::kVersion, kLayoutVersion);
  if (count > kUserMaxWords)
    return fail(
        Code::invalid_argument,
        "cd_values: %zu words given, at most %zu allowed (layout version, codec, bound mode, bound in two, parameters)",
        count, kUserMaxWords);
  PYF_TRY(check_codec_and_mode(words));
  read_settings(words, count, request);
  if (count == 4 || (count == 3 && request->bound_mode != Bound::none))
    return fail(Code::invalid_argument, "cd_values: %zu words given, but the bound is a double in words 3 and 4",
                count);
  return kOk;
}

Status read_dims(const unsigned* words, int rank, Request* request) {
  std::uint64_t bytes = dtype_bytes(request->dtype);
  request->shape.rank = rank;
  for (int i = 0; i < rank; ++i) {
    const std::size_t at = kStoredFixedWords + 2 * static_cast<std::size_t>(i);
    const std::uint64_t dim = join(words[at], words[at + 1]);
    if (dim == 0 || __builtin_mul_overflow(bytes, dim, &bytes))
      return fail(Code::corrupt,
                  "stored cd_values: chunk dimension %d is %llu, allowed: 1 or more, in a chunk below 2^64 bytes", i,
                  static_cast<unsigned long long>(dim));
    request->shape.dims[static_cast<std::size_t>(i)] = dim;
  }
  return kOk;
}

Status read_type(const unsigned* words, std::size_t count, Request* request) {
  const unsigned word = words[6];
  request->dtype = static_cast<Dtype>(word & 0xFF);
  if (dtype_bytes(request->dtype) == 0 || (word & ~kTypeKnownBits) != 0)
    return fail(Code::corrupt, "stored cd_values: word 6 is %#x, not a dtype and flags that pyfilter %s knows", word,
                registry::kVersion);
  request->source_big_endian = (word & kTypeBigEndian) != 0;
  request->without_zeros = (word & kTypeWithoutZeros) != 0;
  request->has_fill = true;  // 0 if the words have none: HDF5 then pads edge chunks with zeros
  request->fill = join(words[7], words[8]);
  if (is_complex(request->dtype)) request->fill_imaginary = join(words[count - 2], words[count - 1]);
  const auto bits = 8 * dtype_bytes(base_dtype(request->dtype));
  const std::uint64_t fill = request->fill | request->fill_imaginary;
  const bool fits = bits == 64 || fill >> bits == 0;
  if (!fits || ((word & kTypeHasFill) == 0 && fill != 0))
    return fail(Code::corrupt, "stored cd_values: fill value %#llx does not fit the dtype",
                static_cast<unsigned long long>(fill));
  return kOk;
}

}  // namespace

bool is_stamped(const unsigned* words, std::size_t count) noexcept {
  return count > 0 && words != nullptr && (words[0] & kStampMask) == kStampLetters;
}

Status parse_stored(const unsigned* words, std::size_t count, Request* request) noexcept {
  *request = {};
  if (!is_stamped(words, count))
    return fail(Code::corrupt, "stored cd_values: word 0 does not begin with the stamp \"PYF\"");
  if (words[0] == kStamp + (1u << 24))
    return fail(Code::unsupported, "stored cd_values are of records (a compound type), which this call does not take");
  if (words[0] != kStamp)
    return fail(Code::too_new,
                "stored cd_values have layout version '%c', pyfilter %s knows '1' and '2': a newer pyfilter is needed",
                static_cast<char>(words[0] >> 24 & 0x7F), registry::kVersion);
  const unsigned rank = count >= kStoredFixedWords ? words[9] : 0;
  const auto dtype = count >= kStoredFixedWords ? static_cast<Dtype>(words[kTypeWord] & 0xFF) : Dtype::none;
  const unsigned most = static_cast<unsigned>(max_stored_rank(dtype)), more = is_complex(dtype) ? 2 : 0;
  if (rank > most || count != kStoredFixedWords + 2 * rank + more)
    return fail(Code::corrupt,
                "stored cd_values: %zu words for a chunk of rank %u, must be %zu + 2 * rank and rank at most %u", count,
                rank, kStoredFixedWords + more, most);
  if (words[1] > 0xFF || words[2] > 0xFF)
    return fail(Code::corrupt, "stored cd_values: codec %u and bound mode %u, allowed: 0 to 255", words[1], words[2]);
  read_settings(words, kUserMaxWords, request);
  PYF_TRY(read_type(words, count, request));
  return read_dims(words, static_cast<int>(rank), request);
}

Status parse_words(const unsigned* words, std::size_t count, Request* request) noexcept {
  if (words == nullptr) count = 0;
  if (is_stamped(words, count)) {
    PYF_TRY(parse_stored(words, count, request));
    PYF_TRY(check_codec_and_mode(words));
  } else {
    PYF_TRY(parse_user(words, count, request));
  }
  PYF_TRY(check_bound(*request));
  return check_codec_rules(*request);
}

Words user_words(const Request& request) noexcept {
  const std::uint64_t bound = std::bit_cast<std::uint64_t>(request.bound_mode == Bound::none ? 0.0 : request.bound);
  Words out;
  out.count = kUserMaxWords;
  out.values[0] = kLayoutVersion;
  out.values[1] = request.codec;
  out.values[2] = static_cast<unsigned>(request.bound_mode);
  out.values[3] = low_word(bound);
  out.values[4] = high_word(bound);
  out.values[5] = parameter_word(request.parameters);
  return out;
}

Words stored_words(const Request& request) noexcept {
  Words out = user_words(request);
  out.values[0] = kStamp;
  const std::uint64_t fill = request.has_fill ? request.fill : 0,
                      imaginary = request.has_fill ? request.fill_imaginary : 0;
  const unsigned flags = (request.source_big_endian ? kTypeBigEndian : 0) |
                         ((fill | imaginary) != 0 ? kTypeHasFill : 0) | (request.without_zeros ? kTypeWithoutZeros : 0);
  auto put = [&out](unsigned word) { out.values[out.count++] = word; };
  put(static_cast<unsigned>(request.dtype) | flags);
  put(low_word(fill));
  put(high_word(fill));
  const int rank = std::min(request.shape.rank, max_stored_rank(request.dtype));
  put(static_cast<unsigned>(rank));
  const int extra = request.shape.rank - rank;
  for (int i = 0; i < rank; ++i) {
    std::uint64_t dim = request.shape.dims[static_cast<std::size_t>(i + extra)];
    for (int k = 0; i == 0 && k < extra; ++k) dim *= request.shape.dims[static_cast<std::size_t>(k)];
    put(low_word(dim));
    put(high_word(dim));
  }
  if (is_complex(request.dtype)) {
    put(low_word(imaginary));
    put(high_word(imaginary));
  }
  return out;
}

}  // namespace pyfilter::filter
