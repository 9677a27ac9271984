// SPDX-License-Identifier: BSD-3-Clause
// Frame headers written on the device (docs/format.md, section 2): the host fills a template; one warp adds the
// device's choices and the checksum.
#pragma once

#include <cstdint>
#include <cstring>

#include "stages/cuda/params.cuh"
#include "stages/cuda/residuals.cuh"

namespace pyfilter::cuda {

// Product of two polynomials over GF(2) modulo the polynomial of CRC-32, bits reflected: bit 31 is x^0.
__host__ __device__ constexpr std::uint32_t crc_product(std::uint32_t a, std::uint32_t b) {
  std::uint32_t product = 0;
  for (int i = 31; i >= 0; --i) {
    product ^= b & (0u - (a >> i & 1u));
    b = (b >> 1) ^ (0xEDB88320u & (0u - (b & 1u)));
  }
  return product;
}

// Power k is x^(32 k): the factor that k following words put on a word's share of the checksum.
struct CrcPowers {
  std::uint32_t of_words[kMaxHeaderWords + 1];
  constexpr CrcPowers() : of_words{0x80000000u} {
    std::uint32_t word = 0x80000000u;
    for (int i = 0; i < 32; ++i) word = (word >> 1) ^ (0xEDB88320u & (0u - (word & 1u)));
    for (int k = 1; k <= kMaxHeaderWords; ++k) of_words[k] = crc_product(of_words[k - 1], word);
  }
};
inline void fill_crc_powers(std::uint32_t (&powers)[kMaxHeaderWords + 1]) {
  static constexpr CrcPowers kPowers;
  std::memcpy(powers, kPowers.of_words, sizeof powers);
}

// Called by one warp.
static __device__ __noinline__ void write_header(const EncodeParams& job, std::uint32_t chunk, bool raw,
                                                 std::uint64_t payload_bytes) {
  constexpr std::uint32_t kFlagsWord = 2, kFlagRaw = 1u << 16, kFlagSentinel = 4u << 16, kFlagPointwise = 8u << 16,
                          kParametersWord = 12;
  const ChunkPlan plan = job.plans[chunk];
  const bool exact = plan.quantise == 0, keeps = !exact && !raw;
  const std::uint64_t frame_bytes = 4 * job.header_words + payload_bytes;
  const auto bound = std::bit_cast<std::uint64_t>(plan.bound), step = std::bit_cast<std::uint64_t>(plan.step);
  const std::uint64_t sentinel = plan.has_sentinel != 0 ? plan.sentinel : 0;
  auto* const out = reinterpret_cast<std::uint32_t*>(job.frames + chunk * job.frame_stride);
  std::uint32_t crc = 0;
  for (std::uint32_t i = threadIdx.x; i < job.header_words; i += 32) {
    std::uint32_t word = job.headers[exact ? 1 : 0].words[i];
    const std::uint32_t high = i % 2;  // 64-bit fields start at even words
    const auto half = [&](std::uint64_t field) { return static_cast<std::uint32_t>(field >> (32 * high)); };
    if (i == kFlagsWord)
      word |= (raw ? kFlagRaw : 0) | (keeps && plan.has_sentinel != 0 ? kFlagSentinel : 0) |
              (keeps && job.pointwise ? kFlagPointwise : 0);
    else if (i == 1 && plan.version > (word & 0xFF))
      word = (word & ~0xFFu) | plan.version;
    else if (i == kParametersWord && plan.predictor != 0)
      word = (word & 0xFF00) | plan.predictor;
    else if (i / 2 == 2)
      word = half(frame_bytes);
    else if (i / 2 == 3)
      word = keeps ? half(bound) : 0;
    else if (i / 2 == 4)
      word = keeps ? half(step) : 0;
    else if (i / 2 == 5)
      word = keeps ? half(sentinel) : 0;
    if (i != 3) out[i] = word;
    crc ^= crc_product(i == 0 ? ~word : word, job.crc_powers[job.header_words - i]);
  }
#pragma unroll
  for (int d = 16; d > 0; d /= 2) crc ^= __shfl_xor_sync(kAllLanes, crc, d);
  if (threadIdx.x != 0) return;
  out[3] = ~crc;
  job.frame_bytes[chunk] = frame_bytes;
}

}  // namespace pyfilter::cuda
