// SPDX-License-Identifier: BSD-3-Clause
// All 2^32 bit patterns of an f32 through one codec, each value judged in exact arithmetic (judge.hpp).
//   f32_sweep CODEC MODE BOUND [ORDER [FIRST COUNT [PARAMETERS]]]
// CODEC and MODE are numbers of registry.json; ORDER 0 takes patterns as they follow each other, 1 jumps through them
// (times an odd number, so that each comes once and neighbours differ); FIRST and COUNT pick chunks of 2^20 patterns (0
// 4096: all); PARAMETERS are those of the codec, as in cd_values. Particles have two coordinates and the order asked
// for.
//
// f64 holds every f32. judge.hpp compares |x - y| with the bound by one f64 difference and the sign of its rounding
// error, so no value needs wider arithmetic. In order, a chunk's 2^20 patterns share the sign and all but three bits of
// the exponent, like real data with a bound. Jumps mix all patterns: most values are verbatim, with special values in
// between.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "judge.hpp"
#include "registry_table.hpp"
#include "support.hpp"

using namespace pyfilter::fuzz;

namespace {

constexpr std::uint64_t kChunk = 1 << 20, kChunks = 1 << 12;

// Rows as particles lays them.
void put_in_order(const pyf_request& request, std::vector<std::uint32_t>& values) {
  static std::vector<std::uint32_t> order(kChunk / 2), given;
  require(pyf_particle_order(&request, values.data(), 4 * kChunk, order.data()) == PYF_OK, "order");
  given = values;
  for (std::size_t i = 0; i < order.size(); ++i)
    for (std::size_t d = 0; d < 2; ++d) values[2 * i + d] = given[2 * std::size_t{order[i]} + d];
}

}  // namespace

int main(int count, char** arguments) {
  if (count < 4) {
    std::fprintf(stderr, "usage: f32_sweep CODEC MODE BOUND [ORDER [FIRST COUNT [PARAMETERS]]]\n");
    return 2;
  }
  pyf_request request{};
  request.struct_bytes = sizeof request;
  request.codec = static_cast<std::uint8_t>(std::atoi(arguments[1]));
  request.dtype = 1;
  request.bound_mode = static_cast<std::uint8_t>(std::atoi(arguments[2]));
  request.bound = std::atof(arguments[3]);
  request.rank = 1;
  request.dims[0] = kChunk;
  const bool particles = request.codec == pyfilter::registry::kCodecParticles;
  if (particles) {
    request.rank = 2;
    request.dims[0] = kChunk / 2;
    request.dims[1] = 2;
  }
  if (count > 7) store(request.parameters, static_cast<std::uint32_t>(std::strtoul(arguments[7], nullptr, 0)));
  const bool jumps = count > 4 && std::atoi(arguments[4]) == 1;
  const std::uint64_t first = count > 5 ? std::strtoull(arguments[5], nullptr, 10) : 0;
  const std::uint64_t chunks = count > 6 ? std::strtoull(arguments[6], nullptr, 10) : kChunks - first;
  std::vector<std::uint32_t> values(kChunk), back(kChunk);
  const std::size_t capacity = pyf_max_frame_bytes(&request);
  require(capacity != 0, "the request is refused");
  std::vector<std::uint8_t> frame(capacity);
  const auto start = std::chrono::steady_clock::now();
  std::uint64_t frame_bytes_sum = 0, exact = 0, own = 0;
  for (std::uint64_t chunk = first; chunk < first + chunks; ++chunk) {
    for (std::uint64_t i = 0; i < kChunk; ++i) {
      const auto pattern = static_cast<std::uint32_t>(chunk * kChunk + i);
      values[i] = jumps ? pattern * 0x9E3779B1u : pattern;
    }
    std::size_t frame_bytes = 0;
    require(pyf_encode(&request, values.data(), 4 * kChunk, frame.data(), capacity, &frame_bytes) == PYF_OK, "encode",
            static_cast<long long>(chunk));
    require(pyf_decode(frame.data(), frame_bytes, back.data(), 4 * kChunk) == PYF_OK, "decode",
            static_cast<long long>(chunk));
    pyf_info info{};
    info.struct_bytes = sizeof info;
    require(pyf_frame_info(frame.data(), frame_bytes, &info) == PYF_OK, "frame_info", static_cast<long long>(chunk));
    own += info.codec == request.codec;
    if (particles && info.codec == request.codec && info.stored_raw == 0) put_in_order(request, values);
    judge(request, info, reinterpret_cast<const std::uint8_t*>(values.data()),
          reinterpret_cast<const std::uint8_t*>(back.data()));
    frame_bytes_sum += frame_bytes;
    exact += info.bound == 0;
  }
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  std::printf(
      "codec %d, mode %d, bound %g, %s: %llu values judged, %llu of %llu chunks bit-exact, %llu of the codec itself, "
      "ratio %.3f, %.0f s\n",
      request.codec, request.bound_mode, request.bound, jumps ? "jumps" : "in order",
      static_cast<unsigned long long>(chunks * kChunk), static_cast<unsigned long long>(exact),
      static_cast<unsigned long long>(chunks), static_cast<unsigned long long>(own),
      4.0 * static_cast<double>(chunks * kChunk) / static_cast<double>(frame_bytes_sum), seconds.count());
  return 0;
}
