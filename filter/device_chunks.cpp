// SPDX-License-Identifier: BSD-3-Clause
// Moves many chunks between host memory and a file through several devices (c_api.h). A thread for each channel takes
// batches from one counter; the calling thread calls HDF5. Python's threads would wait for the GIL at every call.
#include <algorithm>
#include <cstring>
#include <vector>

#include "core/api.hpp"
#include "core/bound.hpp"
#include "core/cuda/channel.hpp"
#include "core/error_text.hpp"
#include "core/past_cache.hpp"
#include "core/request.hpp"
#include "filter/c_api.h"
#include "filter/c_request.hpp"
#include "filter/chunk_grid.hpp"
#include "filter/device_channels.hpp"
#include "filter/guard.hpp"
#include "filter/stored_chunks.hpp"

namespace pyfilter::filter {
namespace {

static_assert(sizeof(pyf_cuda_channel) == sizeof(CudaChannel) &&
              offsetof(pyf_cuda_channel, host_frame_bytes) == offsetof(CudaChannel, host_frame_bytes));

constexpr std::uint64_t kAlignment = 16;  // of frames in a channel's buffer

std::uint64_t aligned(std::uint64_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

// The values of a batch: contiguous, or chunks of an array.
class BatchValues {
 public:
  BatchValues(const pyf_cuda_chunks& chunks, std::size_t first, bool to_array)
      : chunks_(chunks), number_(chunks.grid_first + first) {
    if (chunks.grid == nullptr) {
      values_.first = static_cast<std::uint8_t*>(chunks.values) + first * chunks.chunk_bytes;
    } else {
      values_.move = to_array ? move<true> : move<false>;
      values_.context = this;
    }
  }
  BatchValues(const BatchValues&) = delete;
  BatchValues& operator=(const BatchValues&) = delete;
  [[nodiscard]] const CudaChannelValues& get() const { return values_; }

 private:
  template <bool kToArray>
  static void move(void* context, std::size_t chunk, std::size_t count, std::uint8_t* buffer) {
    const BatchValues& batch = *static_cast<BatchValues*>(context);
    const ChunkGrid grid(*batch.chunks_.grid);
    for (std::size_t i = 0; i < count; ++i, buffer += batch.chunks_.chunk_bytes) {
      const ChunkGrid::Part part = grid.part(batch.number_ + chunk + i);
      if constexpr (!kToArray)
        grid.gather(part, batch.chunks_.padding, buffer);
      else if (grid.in_place(part))
        copy_past_cache(part.first, buffer, batch.chunks_.chunk_bytes);
      else
        grid.scatter(part, buffer);
    }
  }

  const pyf_cuda_chunks& chunks_;
  std::size_t number_;
  CudaChannelValues values_;
};

struct Writing {
  const Request& request;
  const pyf_cuda_chunks& chunks;
  std::size_t stride;
  Batches& batches;
  Outbox& outbox;
};

// Encodes one batch on a channel and hands its frames to the calling thread.
Status encode_batch(const Writing& all, const CudaChannel& channel, const CudaWaiter& waiter, Portion& portion,
                    std::size_t first, std::size_t count) {
  const std::size_t chunk_bytes = all.chunks.chunk_bytes;
  const BatchValues values(all.chunks, first, false);
  PYF_TRY(cuda_channel_encode(channel, waiter, all.request, values.get(), count, chunk_bytes, all.stride));
  std::vector<std::uint64_t> sizes(count);
  std::memcpy(sizes.data(), channel.host_notes, count * sizeof(std::uint64_t));
  for (const std::uint64_t size : sizes) {
    if (size > all.stride)
      return fail(Code::internal, "the device reports a frame of %llu bytes in a slot of %zu",
                  static_cast<unsigned long long>(size), all.stride);
    if (size == chunk_bytes)
      return fail(Code::unsupported, "the frame is as large as its values: HDF5 may take it for plain values");
  }
  for (std::size_t at = 0; at < count && !all.batches.stopped(); at += portion.sizes.size()) {
    portion.channel = &channel;
    portion.first = first + at;
    portion.offsets.clear();
    portion.sizes.clear();
    std::uint64_t end = 0;
    for (std::size_t i = at; i < count && end + sizes[i] <= channel.host_frame_bytes; ++i) {
      portion.offsets.push_back(end);
      portion.sizes.push_back(sizes[i]);
      end += aligned(sizes[i]);
    }
    if (portion.sizes.empty()) return fail(Code::invalid_argument, "host_frame_bytes is smaller than a frame");
    PYF_TRY(cuda_channel_fetch(channel, waiter, at, portion.sizes.size(), all.stride, portion.offsets.data()));
    all.outbox.send(portion);
  }
  return kOk;
}

// Writes the portions of all channels; false if HDF5 refused a chunk.
bool write_all(const pyf_cuda_chunks& chunks, const pyf_chunk_writer& writer, Batches& batches, Outbox& outbox,
               std::size_t channels) {
  bool good = true;
  while (Portion* const portion = outbox.take(channels)) {
    for (std::size_t i = 0; good && i < portion->sizes.size(); ++i) {
      const std::size_t chunk = portion->first + i;
      good = writer.write(writer.dataset, 0, 0, writer.origins + chunk * writer.rank, portion->sizes[i],
                          portion->channel->host_frames + portion->offsets[i]) >= 0;
      if (good) chunks.state[chunk] = PYF_CHUNK_DONE;
    }
    if (!good) batches.stop();
    outbox.give_back(*portion);
  }
  return good;
}

// Leaves all chunks that were not begun to the caller.
void leave_rest(const pyf_cuda_chunks& chunks) {
  for (std::size_t i = 0; i < chunks.count; ++i)
    if (chunks.state[i] == PYF_CHUNK_WAITING) chunks.state[i] = PYF_CHUNK_LEFT;
}

Status write_chunks(const Request& request, const pyf_cuda_chunks& chunks, const CudaChannel* channels,
                    std::size_t channel_count, std::size_t stride, const pyf_chunk_writer& writer) {
  set_state(chunks, 0, chunks.count, PYF_CHUNK_WAITING);
  Batches batches(chunks);
  Outbox outbox;
  const Writing all{request, chunks, stride, batches, outbox};
  Threads threads(channel_count, batches, [&all, channels](std::size_t number) {
    Portion portion;
    serve(channels[number], all.chunks, all.batches,
          [&](const CudaWaiter& waiter, std::size_t first, std::size_t count) {
            return encode_batch(all, channels[number], waiter, portion, first, count);
          });
    all.outbox.leave();
  });
  const bool good = write_all(chunks, writer, batches, outbox, threads.count());
  threads.join();
  if (!good) leave_rest(chunks);
  return batches.failed();
}

struct Reading {
  const pyf_cuda_chunks& chunks;
  Dtype dtype;
  int file;
  pyf_range* ranges;
  const std::uint32_t* segments;
  std::uint32_t level;
};

// Reads a frame's bytes into the channel's memory `to`, and keeps a copy at range.to unless that is NULL. False if the
// file ends before them.
bool fetch(int file, pyf_range& range, std::uint8_t* to) noexcept {
  pyf_range here = range;
  if (here.to == nullptr) here.to = to;
  read_range(file, here);
  range.done = here.done;
  if (here.done != here.bytes) return false;
  if (here.to != to) std::memcpy(to, here.to, here.bytes);
  return true;
}

// Reads and decodes one batch on a channel.
Status decode_batch(const Reading& all, const CudaChannel& channel, const CudaWaiter& waiter, std::size_t first,
                    std::size_t count) {
  std::vector<std::uint64_t> offsets(count), sizes(count);
  std::uint64_t end = 0;
  for (std::size_t i = 0; i < count; ++i) {
    offsets[i] = end;
    sizes[i] = all.ranges[first + i].bytes;
    end += aligned(sizes[i]);
  }
  if (end > channel.host_frame_bytes)
    return fail(Code::invalid_argument, "host_frame_bytes is smaller than the frames of a batch");
  bool here = true;
  for (std::size_t i = 0; i < count; ++i)
    here = fetch(all.file, all.ranges[first + i], channel.host_frames + offsets[i]) && here;
  if (!here) return fail(Code::truncated, "the file ends within a chunk");
  const CudaChannelFrames frames{all.dtype,
                                 count,
                                 static_cast<std::size_t>(end),
                                 all.chunks.chunk_bytes,
                                 offsets.data(),
                                 sizes.data(),
                                 all.segments == nullptr ? nullptr : all.segments + first,
                                 all.level};
  const BatchValues values(all.chunks, first, true);
  PYF_TRY(cuda_channel_decode(channel, waiter, frames, values.get()));
  set_state(all.chunks, first, count, PYF_CHUNK_DONE);
  return kOk;
}

Status read_chunks(const Reading& all, const CudaChannel* channels, std::size_t channel_count) {
  set_state(all.chunks, 0, all.chunks.count, PYF_CHUNK_WAITING);
  Batches batches(all.chunks);
  Threads threads(channel_count, batches, [&all, &batches, channels](std::size_t number) {
    serve(channels[number], all.chunks, batches, [&](const CudaWaiter& waiter, std::size_t first, std::size_t count) {
      return decode_batch(all, channels[number], waiter, first, count);
    });
  });
  threads.join();
  return batches.failed();
}

Status check(const pyf_cuda_chunks* chunks, const pyf_cuda_channel* channels, std::size_t channel_count) {
  if (chunks == nullptr || chunks->state == nullptr || (chunks->values == nullptr && chunks->grid == nullptr))
    return fail(Code::invalid_argument, "chunks is NULL, or has no values or states");
  if (chunks->batch == 0 || chunks->chunk_bytes == 0)
    return fail(Code::invalid_argument, "chunk_bytes and batch must be at least 1");
  if (channels == nullptr || channel_count == 0)
    return fail(Code::invalid_argument, "channels is NULL or channel_count is 0");
  const pyf_grid* const grid = chunks->grid;
  if (grid != nullptr) {
    PYF_TRY(check_grid(grid));
    const ChunkGrid all(*grid);
    if (all.bytes() != chunks->chunk_bytes || chunks->grid_first > all.count() ||
        chunks->count > all.count() - chunks->grid_first || chunks->padding == nullptr)
      return fail(Code::invalid_argument,
                  "the grid does not have these chunks (chunk_bytes, grid_first, count), or padding is NULL");
  }
  for (std::size_t i = 0; i < channel_count; ++i) {
    const pyf_cuda_channel& channel = channels[i];
    if (channel.host_values == nullptr && grid == nullptr) continue;
    if (channel.host_values == nullptr || channel.host_value_bytes == 0 || channel.host_value_bytes % 128 != 0 ||
        (grid != nullptr && channel.host_value_bytes / 2 < chunks->chunk_bytes))
      return fail(Code::invalid_argument,
                  "host_value_bytes is %zu, must be a multiple of 128 and, with a grid, at least two chunks",
                  channel.host_value_bytes);
  }
  return kOk;
}

const CudaChannel* as_channels(const pyf_cuda_channel* channels) {
  return reinterpret_cast<const CudaChannel*>(channels);
}

}  // namespace
}  // namespace pyfilter::filter

using namespace pyfilter;
using namespace pyfilter::filter;

int pyf_cuda_write_chunks(const pyf_request* request, const pyf_cuda_chunks* chunks, const pyf_cuda_channel* channels,
                          size_t channel_count, size_t frame_stride, const pyf_chunk_writer* writer) {
  return static_cast<int>(
      guarded([&] {
        Request checked;
        PYF_TRY(to_request(request, &checked));
        PYF_TRY(check_request(checked));
        PYF_TRY(filter::check(chunks, channels, channel_count));
        if (writer == nullptr || writer->write == nullptr) return fail(Code::invalid_argument, "writer is NULL");
        if (frame_stride % 8 != 0 || frame_stride < max_frame_bytes(checked))
          return fail(Code::invalid_argument,
                      "frame_stride is %zu, must be a multiple of 8 and at least pyf_max_frame_bytes()", frame_stride);
        return write_chunks(without_psnr(checked), *chunks, as_channels(channels), channel_count, frame_stride,
                            *writer);
      }).code);
}

int pyf_cuda_read_chunks(uint8_t dtype, const pyf_cuda_chunks* chunks, const pyf_cuda_channel* channels,
                         size_t channel_count, int file, pyf_range* ranges, const uint32_t* segments, uint32_t level) {
  return static_cast<int>(
      guarded([&] {
        PYF_TRY(filter::check(chunks, channels, channel_count));
        if (ranges == nullptr) return fail(Code::invalid_argument, "ranges is NULL");
        const auto type = static_cast<Dtype>(dtype);
        if (dtype_bytes(type) == 0)
          return fail(Code::invalid_argument, "dtype code %d is unknown, allowed: those of registry.json", dtype);
        return read_chunks({*chunks, type, file, ranges, segments, level}, as_channels(channels), channel_count);
      }).code);
}
