// SPDX-License-Identifier: BSD-3-Clause
// Stored chunks (c_api.h): HDF5's walk over the chunks lists their offsets in the file, and several threads read their
// bytes. Python would need some microseconds a chunk for either.
#include "filter/stored_chunks.hpp"

#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "core/error_text.hpp"
#include "core/threads.hpp"
#include "filter/guard.hpp"

namespace pyfilter::filter {
namespace {

struct Ranges {
  int file;
  pyf_range* first;
  std::size_t count;
};

void read_one(void* context, std::uint64_t index) noexcept {
  const Ranges& all = *static_cast<Ranges*>(context);
  read_range(all.file, all.first[index]);
}

Status read_all(Ranges ranges, int threads) {
  if (ranges.first == nullptr && ranges.count > 0) return fail(Code::invalid_argument, "ranges is NULL");
  parallel_for(threads, ranges.count, read_one, &ranges);
  return kOk;
}

}  // namespace

void read_range(int file, pyf_range& range) noexcept {
  range.done = 0;
  while (range.done < range.bytes) {
    const ssize_t got = pread(file, static_cast<char*>(range.to) + range.done, range.bytes - range.done,
                              static_cast<off_t>(range.offset + range.done));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return;
    range.done += static_cast<std::uint64_t>(got);
  }
}

}  // namespace pyfilter::filter

int pyf_list_chunk(const uint64_t* origin, unsigned mask, uint64_t offset, uint64_t size, void* list) {
  auto& chunks = *static_cast<pyf_chunk_list*>(list);
  if (chunks.count == chunks.capacity) return 1;
  const std::uint64_t at = chunks.count++;
  std::copy_n(origin, chunks.rank, chunks.origins + at * chunks.rank);
  chunks.offsets[at] = offset;
  chunks.sizes[at] = size;
  chunks.masks[at] = mask;
  return 0;
}

int pyf_read_ranges(int file, pyf_range* ranges, size_t count, int threads) {
  using namespace pyfilter::filter;
  return static_cast<int>(guarded([&] { return read_all({file, ranges, count}, threads); }).code);
}
