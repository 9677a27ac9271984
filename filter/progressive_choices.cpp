// SPDX-License-Identifier: BSD-3-Clause
// Chooses the segments of many progressive frames that a tolerance needs (c_api.h). The library's threads read the
// heads and their tables; Python would take some 100 microseconds for each frame.
#include <algorithm>
#include <limits>
#include <vector>

#include "core/api.hpp"
#include "core/error_text.hpp"
#include "core/threads.hpp"
#include "filter/c_api.h"
#include "filter/c_request.hpp"
#include "filter/guard.hpp"
#include "filter/stored_chunks.hpp"
#include "progressive/driver.hpp"

namespace pyfilter::filter {
namespace {

struct Choosing {
  int file;
  pyf_range* ranges;
  std::size_t head_bytes;
  const Request& like;
  double tolerance;
  pyf_progressive_choice* choices;
};

Status choose(const Choosing& all, std::size_t number) {
  pyf_range& range = all.ranges[number];
  const std::uint64_t whole = range.bytes;
  pyf_range head = range;
  head.bytes = std::min<std::uint64_t>(whole, all.head_bytes);
  read_range(all.file, head);
  range.done = head.done;
  if (head.done != head.bytes) return fail(Code::truncated, "the file ends within a chunk");

  FrameInfo info;
  ProgressiveSummary summary;
  PYF_TRY(frame_info(range.to, head.bytes, &info));
  const Shape& shape = all.like.shape;
  if (info.frame_bytes != whole || info.dtype != all.like.dtype || info.shape.rank != shape.rank ||
      !std::equal(shape.dims.begin(), shape.dims.begin() + shape.rank, info.shape.dims.begin()))
    return fail(Code::corrupt, "the frame's shape or dtype is not the chunk's");
  PYF_TRY(progressive_summary(range.to, head.bytes, &summary));
  std::vector<ProgressivePart> parts(summary.segments);
  PYF_TRY(progressive_parts(range.to, head.bytes, 0, parts.data(), summary.segments));

  pyf_progressive_choice choice = {summary.prefix_bytes, info.error_bound(), 0, summary.segments, summary.levels, 1};
  const auto good = std::find_if(parts.begin(), parts.end(),
                                 [&](const ProgressivePart& part) { return part.error <= all.tolerance; });
  choice.chosen = static_cast<std::uint32_t>(
      std::min<std::ptrdiff_t>(good - parts.begin() + 1, static_cast<std::ptrdiff_t>(parts.size())));
  for (std::uint32_t i = 0; i < choice.chosen; ++i) {
    if (parts[i].offset != choice.end) return fail(Code::unsupported, "the segments of a tolerance are not contiguous");
    choice.end += parts[i].size;
  }
  if (choice.chosen > 0) choice.error = parts[choice.chosen - 1].error;
  all.choices[number] = choice;
  return kOk;
}

void choose_one(void* context, std::uint64_t number) noexcept {
  const auto& all = *static_cast<Choosing*>(context);
  all.choices[number] = {};
  (void)guarded([&] { return choose(all, static_cast<std::size_t>(number)); });
}

}  // namespace
}  // namespace pyfilter::filter

int pyf_progressive_choose(int file, pyf_range* ranges, size_t count, size_t head_bytes, const pyf_request* like,
                           double tolerance, pyf_progressive_choice* choices, int threads) {
  using namespace pyfilter;
  using namespace pyfilter::filter;
  return static_cast<int>(guarded([&] {
                            Request checked;
                            PYF_TRY(to_request(like, &checked));
                            if (count > 0 && (ranges == nullptr || choices == nullptr))
                              return fail(Code::invalid_argument, "ranges or choices is NULL");
                            Choosing all{file, ranges, head_bytes, checked, tolerance, choices};
                            parallel_for(threads, count, choose_one, &all);
                            return kOk;
                          }).code);
}
