// SPDX-License-Identifier: BSD-3-Clause
// Particles' entry in core's table of codecs (core/codec.hpp): its own frame, or one of lorenzo if that is shorter.
#include "particles/codec.hpp"

#include <algorithm>
#include <memory>
#include <new>

#include "core/api.hpp"
#include "core/bound.hpp"
#include "core/codec.hpp"
#include "core/cpu_driver.hpp"
#include "core/error_text.hpp"
#include "core/fp_environment.hpp"
#include "core/frame_encoder.hpp"
#include "core/header.hpp"
#include "core/request.hpp"
#include "particles/driver.hpp"
#include "particles/estimate.hpp"
#include "particles/key.hpp"

namespace pyfilter {
namespace {

ParticlePlan plan_of(const FrameInfo& info) {
  ParticlePlan plan;
  read_plan(info, plan);
  plan.grid = particle_grid(info.value_count, coordinates_of(info.shape.rank, info.shape.dims));
  plan.unit_bytes = 4 + plan.grid.tile_values * dtype_bytes(plan.dtype);
  plan.scratch_bytes = kParticleScratchBytes;
  return plan;
}

// Estimates the bytes of a lorenzo frame of these particles; exact for few particles.
Status lorenzo_bytes(const Request& request, const FrameInfo& info, const ParticlePlan& plan,
                     const ParticleCoder& coder, const void* values, std::uint64_t* bytes) {
  const auto coordinates = static_cast<std::uint64_t>(plan.grid.block_dims), particles = info.value_count / coordinates;
  if (particles > kTriedParticles) return estimate_lorenzo(plan, coder, values, bytes);
  const Request part = tried_request(request, info.bound, particles, static_cast<int>(coordinates));
  const std::unique_ptr<std::uint8_t[]> frame(new (std::nothrow) std::uint8_t[max_frame_bytes(part)]);
  if (!frame) return fail(Code::no_memory, "no memory for a frame");
  std::size_t frame_bytes = 0;
  PYF_TRY(encode_frame(part, values, info.value_count, frame.get(), &frame_bytes));
  *bytes = frame_bytes;
  return kOk;
}

// *bytes is 0 if lorenzo's frame is not longer, or nothing is gained.
Status encode_own(const Request& request, const Request& other, const void* values, const FrameInfo& info,
                  std::uint8_t* out, std::size_t limit, std::size_t* bytes) {
  ParticlePlan plan = plan_of(info);
  const ParticleCoder* const coder = particle_coders().coder(plan);
  if (coder == nullptr) return no_kernel(info);
  const std::uint8_t order = request.parameters[0];
  if (order == kOrderKept) {
    bool ordered = false;
    PYF_TRY(is_ordered(plan, *coder, values, &ordered));
    if (!ordered) return kOk;
  }
  std::unique_ptr<std::uint64_t[]> entries;
  PYF_TRY(plan_order(*coder, order, values, plan, entries, out, limit));
  std::uint64_t most = 0;  // encoding stops once the frame exceeds lorenzo's bytes
  PYF_TRY(lorenzo_bytes(other, info, plan, *coder, values, &most));
  if (most <= info.header_bytes) return kOk;
  return encode_tiles(plan, coder->tiles, values, out,
                      static_cast<std::size_t>(std::min<std::uint64_t>(limit, most - info.header_bytes + 1)), bytes);
}

Status encode(const Request& request, const void* values, FrameInfo& info, std::uint8_t* out, std::size_t limit,
              std::size_t* bytes) {
  *bytes = 0;
  const Request other = lorenzo_request(request);
  if (info.value_count != 0 && coordinates_of(request.shape.rank, request.shape.dims) != 0 &&
      settle_step(request, values, info))
    PYF_TRY(encode_own(request, other, values, info, out, limit, bytes));
  if (*bytes != 0) return kOk;
  return encode_payload(other, values, info.value_count, info, out, limit, bytes);
}

Status decode(const FrameInfo& info, const std::uint8_t* payload, std::size_t payload_bytes, std::uint64_t start,
              std::uint64_t stop, void* values) {
  const ParticlePlan plan = plan_of(info);
  const ParticleCoder* const coder = particle_coders().coder(plan);
  return coder == nullptr ? no_kernel(info)
                          : decode_tiles(plan, coder->tiles, payload, payload_bytes, start, stop, values);
}

// Checks the order of particles, and arrays in another layout (docs/format.md, section 12.1).
Status check_parameters(const registry::CodecRow& row, const Parameters& parameters, const Shape& shape,
                        bool in_frame) {
  const Code code = parameter_code(in_frame);
  PYF_TRY(check_zero_parameters(row, parameters, 1, in_frame));
  if (parameters[0] > kOrderChunk)
    return fail(code, "%s: order %d, allowed: 0 (kept), 1 (tile), 2 (chunk)", row.name, parameters[0]);
  if (coordinates_of(shape.rank, shape.dims) != 0) return kOk;
  if (in_frame || parameters[0] != kOrderKept)
    return fail(
        code, "%s: %s needs positions, arrays (N, 2) or (N, 3); the last dimension is %llu, the rank %d", row.name,
        in_frame ? "a frame" : "any order but 0 (kept)",
        static_cast<unsigned long long>(shape.rank > 0 ? shape.dims[static_cast<std::size_t>(shape.rank - 1)] : 0),
        shape.rank);
  return kOk;
}

void frame_parameters(Parameters& /*parameters*/) {}

Status check_size(const FrameInfo& info, std::uint64_t payload_bytes) {
  return check_directory_size(particle_grid(info.value_count, coordinates_of(info.shape.rank, info.shape.dims)).tiles,
                              payload_bytes);
}

}  // namespace

Status check_order_request(const Request& request, std::size_t value_bytes, std::uint64_t* count,
                           int* coordinates) noexcept {
  PYF_TRY(check_request(request));
  *coordinates = coordinates_of(request.shape.rank, request.shape.dims);
  if (request.codec != registry::kCodecParticles || *coordinates == 0 || !value_count(request.shape, count) ||
      *count * dtype_bytes(request.dtype) != value_bytes)
    return fail(Code::invalid_argument, "an order needs positions, arrays (N, 2) or (N, 3), and codec particles");
  return kOk;
}

Status particle_order(const Request& asked, const void* values, std::size_t value_bytes,
                      std::uint32_t* particles) noexcept {
  const FpEnvironment environment;
  const Request request = without_psnr(asked);
  std::uint64_t count = 0;
  int coordinates = 0;
  PYF_TRY(check_order_request(request, value_bytes, &count, &coordinates));
  FrameInfo info = frame_template(request, request.codec, count);
  // bit-exact chunks have no keys and keep their order
  const bool sorted = count != 0 && settle_step(request, values, info);
  const ParticlePlan plan = plan_of(info);
  const ParticleCoder* const coder = particle_coders().coder(plan);
  if (coder == nullptr) return no_kernel(info);
  return order_particles(plan, *coder, sorted ? request.parameters[0] : kOrderKept, values, particles);
}

extern const Codec kParticlesCodec;
const Codec kParticlesCodec{
    .check_parameters = check_parameters,
    .frame_parameters = frame_parameters,
    .check_size = check_size,
    .encode = encode,
    .decode = decode,
};

}  // namespace pyfilter
