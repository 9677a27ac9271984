// SPDX-License-Identifier: BSD-3-Clause
// Decodes frames of derived types on the GPU (derived.cuh): the base array, then a conversion.
#include <algorithm>

#include "core/api.hpp"
#include "core/base_values.hpp"
#include "core/cuda/derived.cuh"
#include "core/cuda/frames.cuh"
#include "core/error_text.hpp"
#include "core/half_values.hpp"
#include "core/request.hpp"

namespace pyfilter::cuda {
namespace {

// Decodes the base array's values of some frames, of complex values the parts [start, stop) of both planes. `to`: with
// staged values as destinations.
Status decode_base(std::vector<CudaFrame>& to, const FrameInfo& first, std::uint64_t start, std::uint64_t stop,
                   std::uint32_t* faults, cudaStream_t stream) {
  const auto decode = [&](std::uint64_t from, std::uint64_t until) {
    return decode_frames(to.data(), to.size(), first, {from, until, true}, 0, faults, stream);
  };
  if (!is_complex(first.dtype)) return decode(start, stop);
  if (stop - start == first.value_count) return decode(0, 2 * first.value_count);
  PYF_TRY(decode(start, stop));
  for (CudaFrame& frame : to)
    frame.values = static_cast<std::uint8_t*>(frame.values) + (stop - start) * dtype_bytes(base_dtype(first.dtype));
  return decode(first.value_count + start, first.value_count + stop);
}

}  // namespace

Status decode_derived(const CudaFrame* frames, std::size_t count, const FrameInfo& first, std::uint64_t start,
                      std::uint64_t stop, std::size_t value_bytes, std::uint32_t* faults, cudaStream_t stream) {
  PYF_TRY(check_decode(first, frames[0].frame_bytes, start, stop, value_bytes));
  const std::size_t aligned = dtype_bytes(base_dtype(first.dtype)),
                    most_base = is_half(first.dtype) ? sizeof(float) : 1,
                    stride = Arrays::padded(std::max<std::size_t>(value_bytes, (stop - start) * most_base));
  std::size_t together = 1;
  PYF_TRY(chunks_together(count, stride, &together));
  const bool converts = first.dtype != Dtype::b8;
  for (std::size_t done = 0; done < count; done += together) {
    const std::size_t here = std::min(together, count - done);
    std::uint8_t* staged = nullptr;
    ArrayConversion* conversions = nullptr;
    Workspace workspace(stream);
    PYF_TRY(allocate_arrays(workspace, [&](Arrays& arrays) {
      arrays.add(staged, converts ? here * stride : 0);
      arrays.add(conversions, here);
    }));
    std::vector<CudaFrame> to(frames + done, frames + done + here);
    std::vector<ArrayConversion> list;
    for (std::size_t i = 0; i < here && converts; ++i) {
      FrameInfo info;  // says whether a 16-bit float is decoded as f32
      if (is_half(first.dtype)) PYF_TRY(frame_info(to[i].header, to[i].header_bytes, &info));
      if (reinterpret_cast<std::uintptr_t>(to[i].values) % aligned != 0)
        return fail(Code::invalid_argument, "device values must be at a multiple of %zu bytes", aligned);
      list.push_back({staged + i * stride, static_cast<std::uint8_t*>(to[i].values),
                      conversion_from_base(first.dtype, has_half_bound(info))});
      to[i].values = staged + i * stride;
    }
    PYF_TRY(decode_base(to, first, start, stop, faults + done, stream));
    if (converts && start != stop) PYF_TRY(convert_arrays(list, stop - start, conversions, stream));
  }
  return kOk;
}

}  // namespace pyfilter::cuda
