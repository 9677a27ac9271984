// SPDX-License-Identifier: BSD-3-Clause
// The C ABI (c_api.h): checks arguments, translates structures, and calls core/api.hpp. Settings are in config.cpp.
#include "filter/c_api.h"

#include <algorithm>
#include <cstring>

#include "core/api.hpp"
#include "core/bound.hpp"
#include "core/cuda/driver.hpp"
#include "core/error_text.hpp"
#include "core/request.hpp"
#include "core/updated_chunk.hpp"
#include "filter/c_request.hpp"
#include "filter/cd_values.hpp"
#include "filter/guard.hpp"
#include "filter/plugin.hpp"
#include "particles/codec.hpp"
#include "particles/device.hpp"
#include "progressive/device.hpp"
#include "progressive/driver.hpp"
#include "registry_table.hpp"

namespace pyfilter::filter {
namespace {

static_assert(sizeof(pyf_request) == 304 && sizeof(pyf_info) == 344, "the ABI that ctypes mirrors");
static_assert(PYF_TRUNCATED == static_cast<int>(Code::truncated) && PYF_INTERNAL == static_cast<int>(Code::internal));

// Runs `body` and returns its code.
template <class Body>
int call(Body&& body) noexcept {
  return static_cast<int>(guarded(static_cast<Body&&>(body)).code);
}

Status need(const void* pointer, const char* name) {
  if (pointer != nullptr) return kOk;
  return fail(Code::invalid_argument, "%s is NULL", name);
}

// Checks that memory of `bytes` bytes is not NULL. NULL is allowed for 0 bytes (an empty vector) and replaced by an
// address, since memcpy must not get NULL.
template <class Byte>
Status need_memory(Byte** memory, std::size_t bytes, const char* name) {
  static std::uint64_t nothing = 0;
  if (*memory == nullptr && bytes == 0) *memory = reinterpret_cast<Byte*>(&nothing);
  return need(*memory, name);
}

Status check_size(std::uint32_t given, std::size_t expected, const char* name) {
  if (given == expected) return kOk;
  return fail(Code::invalid_argument, "%s.struct_bytes is %u, this library's is %zu: header and library do not match",
              name, given, expected);
}

Status check_flag(std::uint8_t value, const char* name) {
  if (value <= 1) return kOk;
  return fail(Code::invalid_argument, "request.%s is %d, allowed: 0, 1", name, value);
}

Status check_fill(const pyf_request& from) {
  const auto dtype = static_cast<Dtype>(from.dtype);
  const std::size_t bits = 8 * dtype_bytes(base_dtype(dtype));
  if (from.fill_imaginary != 0 && !is_complex(dtype))
    return fail(Code::invalid_argument, "request.fill_imaginary must be zero: the values are not complex");
  const std::uint64_t fill = from.fill | from.fill_imaginary;
  if (from.has_fill == 0 || bits == 0 || bits == 64 || fill >> bits == 0) return kOk;
  return fail(Code::invalid_argument, "request.fill is %#llx, wider than a value of %zu bits",
              static_cast<unsigned long long>(fill), bits);
}

void to_c(const Request& from, pyf_request* to) {
  *to = {};
  to->struct_bytes = sizeof *to;
  to->codec = from.codec;
  to->dtype = static_cast<std::uint8_t>(from.dtype);
  to->bound_mode = static_cast<std::uint8_t>(from.bound_mode);
  to->bound = from.bound;
  std::copy(from.parameters.begin(), from.parameters.end(), to->parameters);
  to->has_fill = from.has_fill ? 1 : 0;
  to->fill = from.fill;
  to->fill_imaginary = from.fill_imaginary;
  to->source_big_endian = from.source_big_endian ? 1 : 0;
  to->without_zeros = from.without_zeros ? 1 : 0;
  to->rank = from.shape.rank;
  std::copy_n(from.shape.dims.begin(), from.shape.rank, to->dims);
}

void to_c(const FrameInfo& from, pyf_info* to) {
  *to = {};
  to->struct_bytes = sizeof *to;
  to->format_version = from.format_version;
  to->codec = from.codec;
  to->dtype = static_cast<std::uint8_t>(from.dtype);
  to->stored_raw = from.stored_raw ? 1 : 0;
  to->source_big_endian = from.source_big_endian ? 1 : 0;
  to->has_sentinel = from.has_sentinel ? 1 : 0;
  to->pointwise = from.pointwise ? 1 : 0;
  to->rank = from.shape.rank;
  to->bound = from.bound;
  to->step = from.step;
  to->sentinel = from.sentinel;
  std::copy(from.parameters.begin(), from.parameters.end(), to->parameters);
  to->header_bytes = from.header_bytes;
  to->frame_bytes = from.frame_bytes;
  to->value_count = from.value_count;
  to->value_bytes = from.value_bytes;
  std::copy_n(from.shape.dims.begin(), from.shape.rank, to->dims);
  to->carried_bound = from.carried_bound;
}

}  // namespace

Status to_request(const pyf_request* from, Request* to) {
  PYF_TRY(need(from, "request"));
  PYF_TRY(check_size(from->struct_bytes, sizeof *from, "request"));
  PYF_TRY(check_flag(from->has_fill, "has_fill"));
  PYF_TRY(check_flag(from->source_big_endian, "source_big_endian"));
  PYF_TRY(check_flag(from->without_zeros, "without_zeros"));
  PYF_TRY(check_fill(*from));
  if (from->reserved[0] != 0 || from->reserved[1] != 0)
    return fail(Code::invalid_argument, "request.reserved must be zero");
  if (from->rank < 0 || from->rank > kMaxRank)
    return fail(Code::invalid_argument, "request.rank is %d, allowed: 0 to %d", from->rank, kMaxRank);
  *to = {};
  to->codec = from->codec;
  to->dtype = static_cast<Dtype>(from->dtype);
  to->bound_mode = static_cast<Bound>(from->bound_mode);
  to->bound = from->bound;
  std::copy(std::begin(from->parameters), std::end(from->parameters), to->parameters.begin());
  to->has_fill = from->has_fill != 0;
  to->fill = from->fill;
  to->fill_imaginary = from->fill_imaginary;
  to->source_big_endian = from->source_big_endian != 0;
  to->without_zeros = from->without_zeros != 0;
  to->shape.rank = from->rank;
  std::copy_n(from->dims, from->rank, to->shape.dims.begin());
  return kOk;
}

}  // namespace pyfilter::filter

using namespace pyfilter;
using namespace pyfilter::filter;

extern "C" {

uint32_t pyf_abi_version(void) { return PYF_ABI_VERSION; }
const char* pyf_version(void) { return registry::kVersion; }
const char* pyf_last_error(void) { return last_error(); }

int pyf_check_request(const pyf_request* request) {
  return call([&] {
    Request checked;
    PYF_TRY(to_request(request, &checked));
    return check_request(checked);
  });
}

size_t pyf_max_frame_bytes(const pyf_request* request) {
  size_t bytes = 0;
  const int code = call([&] {
    Request checked;
    PYF_TRY(to_request(request, &checked));
    PYF_TRY(check_request(checked));
    bytes = max_frame_bytes(checked);
    return bytes != 0
               ? kOk
               : fail(Code::unsupported, "a frame of this shape may be too large for memory: use smaller chunks");
  });
  return code == PYF_OK ? bytes : 0;
}

int pyf_encode(const pyf_request* request, const void* values, size_t value_bytes, void* frame, size_t frame_capacity,
               size_t* frame_bytes) {
  return call([&] {
    Request checked;
    PYF_TRY(to_request(request, &checked));
    PYF_TRY(need_memory(&values, value_bytes, "values"));
    PYF_TRY(need(frame, "frame"));
    PYF_TRY(need(frame_bytes, "frame_bytes"));
    return encode(checked, values, value_bytes, frame, frame_capacity, frame_bytes);
  });
}

int pyf_encode_updated(const pyf_request* request, const void* values, size_t value_bytes, const void* old,
                       size_t old_bytes, void* frame, size_t frame_capacity, size_t* frame_bytes) {
  return call([&] {
    Request checked;
    PYF_TRY(to_request(request, &checked));
    PYF_TRY(need_memory(&values, value_bytes, "values"));
    PYF_TRY(need_memory(&old, old_bytes, "old"));
    PYF_TRY(need(frame, "frame"));
    PYF_TRY(need(frame_bytes, "frame_bytes"));
    bool kept = false;
    const FrameBytes origin{old, old_bytes};
    PYF_TRY(encode_updated(checked, values, value_bytes, &origin, 1, frame, frame_capacity, frame_bytes, &kept));
    return kept ? kOk : encode(checked, values, value_bytes, frame, frame_capacity, frame_bytes);
  });
}

int pyf_frame_info(const void* frame, size_t available, pyf_info* info) {
  return call([&] {
    PYF_TRY(need_memory(&frame, available, "frame"));
    PYF_TRY(need(info, "info"));
    PYF_TRY(check_size(info->struct_bytes, sizeof *info, "info"));
    FrameInfo read;
    PYF_TRY(frame_info(frame, available, &read));
    to_c(read, info);
    return kOk;
  });
}

int pyf_decode(const void* frame, size_t frame_bytes, void* values, size_t value_bytes) {
  return call([&] {
    PYF_TRY(need_memory(&frame, frame_bytes, "frame"));
    PYF_TRY(need_memory(&values, value_bytes, "values"));
    return decode(frame, frame_bytes, values, value_bytes);
  });
}

int pyf_decode_range(const void* frame, size_t frame_bytes, uint64_t start, uint64_t stop, void* values,
                     size_t value_bytes) {
  return call([&] {
    PYF_TRY(need_memory(&frame, frame_bytes, "frame"));
    PYF_TRY(need_memory(&values, value_bytes, "values"));
    return decode_range(frame, frame_bytes, start, stop, values, value_bytes);
  });
}

int pyf_progressive_summary(const void* frame, size_t available, pyf_progressive* summary) {
  return call([&] {
    PYF_TRY(need_memory(&frame, available, "frame"));
    PYF_TRY(need(summary, "summary"));
    ProgressiveSummary read;
    PYF_TRY(progressive_summary(frame, available, &read));
    *summary = {read.prefix_bytes, read.segments, read.levels};
    return kOk;
  });
}

int pyf_progressive_parts(const void* frame, size_t available, uint32_t level, pyf_progressive_part* parts,
                          uint32_t count) {
  return call([&] {
    PYF_TRY(need_memory(&frame, available, "frame"));
    PYF_TRY(need_memory(&parts, count * sizeof *parts, "parts"));
    // the same structure under the C ABI's name
    static_assert(sizeof(pyf_progressive_part) == sizeof(ProgressivePart));
    static_assert(offsetof(pyf_progressive_part, unit) == offsetof(ProgressivePart, unit));
    return progressive_parts(frame, available, level, reinterpret_cast<ProgressivePart*>(parts), count);
  });
}

int pyf_progressive_decode(const void* frame, size_t available, uint32_t segments, uint32_t level, void* values,
                           size_t value_bytes) {
  return call([&] {
    PYF_TRY(need_memory(&frame, available, "frame"));
    PYF_TRY(need_memory(&values, value_bytes, "values"));
    return decode_progressive_part(frame, available, segments, level, values, value_bytes);
  });
}

int pyf_value_range(const pyf_request* request, const void* values, size_t value_bytes, double* low, double* high,
                    int* found) {
  return call([&] {
    Request checked;
    PYF_TRY(to_request(request, &checked));
    PYF_TRY(need_memory(&values, value_bytes, "values"));
    PYF_TRY(need(low, "low"));
    PYF_TRY(need(high, "high"));
    PYF_TRY(need(found, "found"));
    bool any = false;
    PYF_TRY(value_range(checked, values, value_bytes, low, high, &any));
    *found = any ? 1 : 0;
    return kOk;
  });
}

int pyf_particle_order(const pyf_request* request, const void* values, size_t value_bytes, uint32_t* particles) {
  return call([&] {
    Request checked;
    PYF_TRY(to_request(request, &checked));
    PYF_TRY(need_memory(&values, value_bytes, "values"));
    PYF_TRY(need(particles, "particles"));
    return particle_order(checked, values, value_bytes, particles);
  });
}

int pyf_register(const char* path) {
  return call([&] { return register_with(path); });
}

int pyf_cuda_encode(const pyf_request* request, size_t count, const void* values, size_t value_stride, void* frames,
                    size_t frame_stride, uint64_t* frame_bytes, void* stream) {
  return call([&] {
    Request checked;
    PYF_TRY(to_request(request, &checked));
    PYF_TRY(need(frames, "frames"));
    PYF_TRY(need(frame_bytes, "frame_bytes"));
    PYF_TRY(check_request(checked));
    return cuda_encode(without_psnr(checked), {values, value_stride, frames, frame_stride, frame_bytes, count, stream});
  });
}

int pyf_cuda_pack(const void* slots, size_t slot_bytes, const uint64_t* sizes, const uint64_t* ends, size_t count,
                  void* packed, void* stream) {
  return call([&] {
    PYF_TRY(need(slots, "slots"));
    PYF_TRY(need(sizes, "sizes"));
    PYF_TRY(need(ends, "ends"));
    PYF_TRY(need(packed, "packed"));
    return cuda_pack_frames(slots, slot_bytes, sizes, ends, count, packed, stream);
  });
}

int pyf_cuda_decode(const pyf_cuda_frame* frames, size_t count, uint64_t start, uint64_t stop, size_t value_bytes,
                    uint32_t* faults, void* stream) {
  return call([&] {
    PYF_TRY(need_memory(&frames, count, "frames"));
    PYF_TRY(need(faults, "faults"));
    // the same structure under the C ABI's name
    static_assert(sizeof(pyf_cuda_frame) == sizeof(CudaFrame));
    static_assert(offsetof(pyf_cuda_frame, values) == offsetof(CudaFrame, values));
    return cuda_decode(reinterpret_cast<const CudaFrame*>(frames), count, start, stop, value_bytes, faults, stream);
  });
}

int pyf_cuda_particle_order(const pyf_request* request, const void* values, size_t value_bytes, uint32_t* particles,
                            void* stream) {
  return call([&] {
    Request checked;
    PYF_TRY(to_request(request, &checked));
    PYF_TRY(need_memory(&values, value_bytes, "values"));
    PYF_TRY(need(particles, "particles"));
    return cuda_particle_order(without_psnr(checked), values, value_bytes, particles, stream);
  });
}

int pyf_cuda_fault(uint32_t fault) {
  return call([&] { return cuda_fault(fault); });
}

int pyf_cuda_progressive_decode(const void* frame, size_t available, uint32_t segments, uint32_t level, void* values,
                                size_t value_bytes, void* stream) {
  return call([&] {
    PYF_TRY(need_memory(&frame, available, "frame"));
    PYF_TRY(need_memory(&values, value_bytes, "values"));
    return cuda_decode_progressive_part(frame, available, segments, level, values, value_bytes, stream);
  });
}

int pyf_parse_cd_values(const unsigned* cd_values, size_t count, pyf_request* request) {
  return call([&] {
    PYF_TRY(need_memory(&cd_values, count, "cd_values"));
    PYF_TRY(need(request, "request"));
    PYF_TRY(check_size(request->struct_bytes, sizeof *request, "request"));
    Request parsed;
    PYF_TRY(parse_words(cd_values, count, &parsed));
    to_c(parsed, request);
    return kOk;
  });
}
}
