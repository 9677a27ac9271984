// SPDX-License-Identifier: BSD-3-Clause
// Many chunks between host memory and a file through several devices (c_api.h): a thread for each lane, which takes
// batches from one counter, and the calling thread for HDF5. Python's threads would wait for each other at every call.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <exception>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "core/api.hpp"
#include "core/bound.hpp"
#include "core/cuda_lane.hpp"
#include "core/error_text.hpp"
#include "core/past_cache.hpp"
#include "core/request.hpp"
#include "filter/c_api.h"
#include "filter/c_request.hpp"
#include "filter/chunk_grid.hpp"
#include "filter/guard.hpp"
#include "filter/stored_chunks.hpp"

namespace pyfilter::filter {
namespace {

static_assert(sizeof(pyf_cuda_lane) == sizeof(CudaLane) &&
              offsetof(pyf_cuda_lane, host_frame_bytes) == offsetof(CudaLane, host_frame_bytes));

constexpr std::uint64_t kAlignment = 16;  // of frames in a buffer of many

std::uint64_t aligned(std::uint64_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

// Errors that are a device's end, not a batch's.
bool is_fatal(Code code) { return code == Code::device || code == Code::internal; }

// What all lanes share: batches, and what ends them.
class Batches {
 public:
  explicit Batches(const pyf_cuda_chunks& chunks)
      : chunks_(chunks),
        end_(std::chrono::steady_clock::now() + std::chrono::duration_cast<std::chrono::steady_clock::duration>(
                                                    std::chrono::duration<double>(chunks.seconds))) {}

  [[nodiscard]] bool stopped() const { return stopped_.load(std::memory_order_relaxed); }
  void stop() { stopped_.store(true); }

  // The next batch; false where none is to be begun. The first one is, however late it is.
  bool take(std::size_t* first, std::size_t* count) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (stopped() || next_ >= chunks_.count) return false;
    if (next_ > 0 && std::chrono::steady_clock::now() > end_) return false;
    *first = next_;
    *count = std::min(chunks_.batch, chunks_.count - next_);
    next_ += *count;
    return true;
  }

  // Ends all with an error; the first one counts.
  void fail_with(const Status& status) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (failed_.ok()) {
      failed_ = status;
      text_ = last_error();  // each thread has its own
    }
    stop();
  }
  [[nodiscard]] Status failed() const { return failed_.ok() ? kOk : fail(failed_.code, "%s", text_.c_str()); }

 private:
  const pyf_cuda_chunks& chunks_;
  const std::chrono::steady_clock::time_point end_;
  std::mutex mutex_;
  std::size_t next_ = 0;
  std::atomic<bool> stopped_{false};
  Status failed_ = kOk;
  std::string text_;
};

void set(const pyf_cuda_chunks& chunks, std::size_t first, std::size_t count, pyf_chunk_state state) {
  std::memset(chunks.state + first, state, count);
}

// Where the values of a batch are: in line, or anywhere in an array.
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
  [[nodiscard]] const CudaLaneValues& get() const { return values_; }

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
  CudaLaneValues values_;
};

// Batches by one lane until there are none: work(waiter, first, count) does one. One that fails is left to the caller;
// what it has put on the stream is done before the next begins, or the call ends.
template <class Work>
void serve(const CudaLane& lane, const pyf_cuda_chunks& chunks, Batches& batches, const Work& work) noexcept {
  const Status all = guarded([&] {
    CudaWaiter waiter;
    PYF_TRY(waiter.open(lane));
    for (std::size_t first = 0, count = 0; batches.take(&first, &count);) {
      const Status status = guarded([&] { return work(waiter, first, count); });
      if (status.ok()) continue;
      set(chunks, first, count, PYF_CHUNK_LEFT);
      if (is_fatal(status.code)) batches.fail_with(status);
      PYF_TRY(waiter.wait(lane, "what is on a stream"));
    }
    return kOk;
  });
  if (!all.ok()) batches.fail_with(all);
}

// The threads of all lanes, for the length of a call.
class Threads {
 public:
  template <class Start>
  Threads(std::size_t count, Batches& batches, const Start& start) {
    threads_.reserve(count);
    try {
      for (std::size_t i = 0; i < count; ++i) threads_.emplace_back([start, i] { start(i); });
    } catch (const std::exception&) {
      if (threads_.empty()) batches.fail_with(fail(Code::no_memory, "no thread can be started"));
    }
  }
  ~Threads() { join(); }
  Threads(const Threads&) = delete;
  Threads& operator=(const Threads&) = delete;
  void join() {
    for (std::thread& thread : threads_) thread.join();
    threads_.clear();
  }
  [[nodiscard]] std::size_t count() const { return threads_.size(); }

 private:
  std::vector<std::thread> threads_;
};

// Frames of a lane that wait to be written; the lane waits until they are.
struct Portion {
  const CudaLane* lane = nullptr;
  std::size_t first = 0;                     // of the chunks
  std::vector<std::uint64_t> places, sizes;  // in the lane's memory
  bool written = false;
};

// From the lanes to the calling thread.
class Outbox {
 public:
  // Hands frames over; returns when they have been written, or never will be.
  void send(Portion& portion) {
    std::unique_lock<std::mutex> lock(mutex_);
    portion.written = false;
    ready_.push_back(&portion);
    came_.notify_one();
    went_.wait(lock, [&] { return portion.written; });
  }
  void leave() {  // a lane has ended
    const std::lock_guard<std::mutex> lock(mutex_);
    ++left_;
    came_.notify_one();
  }
  // The next portion, NULL once all lanes have ended.
  Portion* take(std::size_t lanes) {
    std::unique_lock<std::mutex> lock(mutex_);
    came_.wait(lock, [&] { return !ready_.empty() || left_ == lanes; });
    if (ready_.empty()) return nullptr;
    Portion* const portion = ready_.front();
    ready_.pop_front();
    return portion;
  }
  void give_back(Portion& portion) {
    const std::lock_guard<std::mutex> lock(mutex_);
    portion.written = true;
    went_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable came_, went_;
  std::deque<Portion*> ready_;
  std::size_t left_ = 0;
};

struct Writing {
  const Request& request;
  const pyf_cuda_chunks& chunks;
  std::size_t stride;
  Batches& batches;
  Outbox& outbox;
};

// One batch of a lane, from its values to its frames in the file.
Status encode_batch(const Writing& all, const CudaLane& lane, const CudaWaiter& waiter, Portion& portion,
                    std::size_t first, std::size_t count) {
  const std::size_t chunk_bytes = all.chunks.chunk_bytes;
  const BatchValues values(all.chunks, first, false);
  PYF_TRY(cuda_lane_encode(lane, waiter, all.request, values.get(), count, chunk_bytes, all.stride));
  std::vector<std::uint64_t> sizes(count);
  std::memcpy(sizes.data(), lane.host_notes, count * sizeof(std::uint64_t));
  for (const std::uint64_t size : sizes) {
    if (size > all.stride)
      return fail(Code::internal, "the device reports a frame of %llu bytes in a slot of %zu",
                  static_cast<unsigned long long>(size), all.stride);
    if (size == chunk_bytes) return fail(Code::unsupported, "a frame that HDF5 may take for plain values");
  }
  for (std::size_t at = 0; at < count && !all.batches.stopped(); at += portion.sizes.size()) {
    portion.lane = &lane;
    portion.first = first + at;
    portion.places.clear();
    portion.sizes.clear();
    std::uint64_t end = 0;
    for (std::size_t i = at; i < count && end + sizes[i] <= lane.host_frame_bytes; ++i) {
      portion.places.push_back(end);
      portion.sizes.push_back(sizes[i]);
      end += aligned(sizes[i]);
    }
    if (portion.sizes.empty()) return fail(Code::invalid_argument, "host_frame_bytes is less than a frame has");
    PYF_TRY(cuda_lane_fetch(lane, waiter, at, portion.sizes.size(), all.stride, portion.places.data()));
    all.outbox.send(portion);
  }
  return kOk;
}

// Writes what comes; true unless HDF5 refused a chunk.
bool write_all(const pyf_cuda_chunks& chunks, const pyf_chunk_writer& writer, Batches& batches, Outbox& outbox,
               std::size_t lanes) {
  bool good = true;
  while (Portion* const portion = outbox.take(lanes)) {
    for (std::size_t i = 0; good && i < portion->sizes.size(); ++i) {
      const std::size_t chunk = portion->first + i;
      good = writer.write(writer.dataset, 0, 0, writer.origins + chunk * writer.rank, portion->sizes[i],
                          portion->lane->host_frames + portion->places[i]) >= 0;
      if (good) chunks.state[chunk] = PYF_CHUNK_DONE;
    }
    if (!good) batches.stop();
    outbox.give_back(*portion);
  }
  return good;
}

// Chunks that nobody begins any more.
void leave_rest(const pyf_cuda_chunks& chunks) {
  for (std::size_t i = 0; i < chunks.count; ++i)
    if (chunks.state[i] == PYF_CHUNK_WAITING) chunks.state[i] = PYF_CHUNK_LEFT;
}

Status write_chunks(const Request& request, const pyf_cuda_chunks& chunks, const CudaLane* lanes,
                    std::size_t lane_count, std::size_t stride, const pyf_chunk_writer& writer) {
  set(chunks, 0, chunks.count, PYF_CHUNK_WAITING);
  Batches batches(chunks);
  Outbox outbox;
  const Writing all{request, chunks, stride, batches, outbox};
  Threads threads(lane_count, batches, [&all, lanes](std::size_t number) {
    Portion portion;
    serve(lanes[number], all.chunks, all.batches, [&](const CudaWaiter& waiter, std::size_t first, std::size_t count) {
      return encode_batch(all, lanes[number], waiter, portion, first, count);
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

// Brings a frame's bytes to memory of the lane, by way of where they are kept; false where the file does not have them.
bool fetch(int file, pyf_range& range, std::uint8_t* to) noexcept {
  pyf_range here = range;
  if (here.to == nullptr) here.to = to;
  read_range(file, here);
  range.done = here.done;
  if (here.done != here.bytes) return false;
  if (here.to != to) std::memcpy(to, here.to, here.bytes);
  return true;
}

// One batch of a lane, from its frames in the file to its values.
Status decode_batch(const Reading& all, const CudaLane& lane, const CudaWaiter& waiter, std::size_t first,
                    std::size_t count) {
  std::vector<std::uint64_t> places(count), sizes(count);
  std::uint64_t end = 0;
  for (std::size_t i = 0; i < count; ++i) {
    places[i] = end;
    sizes[i] = all.ranges[first + i].bytes;
    end += aligned(sizes[i]);
  }
  if (end > lane.host_frame_bytes) return fail(Code::invalid_argument, "host_frame_bytes is less than frames have");
  bool here = true;
  for (std::size_t i = 0; i < count; ++i)
    here = fetch(all.file, all.ranges[first + i], lane.host_frames + places[i]) && here;
  if (!here) return fail(Code::truncated, "the file ends within a chunk");
  const CudaLaneFrames frames{all.dtype,
                              count,
                              static_cast<std::size_t>(end),
                              all.chunks.chunk_bytes,
                              places.data(),
                              sizes.data(),
                              all.segments == nullptr ? nullptr : all.segments + first,
                              all.level};
  const BatchValues values(all.chunks, first, true);
  PYF_TRY(cuda_lane_decode(lane, waiter, frames, values.get()));
  set(all.chunks, first, count, PYF_CHUNK_DONE);
  return kOk;
}

Status read_chunks(const Reading& all, const CudaLane* lanes, std::size_t lane_count) {
  set(all.chunks, 0, all.chunks.count, PYF_CHUNK_WAITING);
  Batches batches(all.chunks);
  Threads threads(lane_count, batches, [&all, &batches, lanes](std::size_t number) {
    serve(lanes[number], all.chunks, batches, [&](const CudaWaiter& waiter, std::size_t first, std::size_t count) {
      return decode_batch(all, lanes[number], waiter, first, count);
    });
  });
  threads.join();
  return batches.failed();
}

Status check(const pyf_cuda_chunks* chunks, const pyf_cuda_lane* lanes, std::size_t lane_count) {
  if (chunks == nullptr || chunks->state == nullptr || (chunks->values == nullptr && chunks->grid == nullptr))
    return fail(Code::invalid_argument, "chunks is NULL, or has no values or states");
  if (chunks->batch == 0 || chunks->chunk_bytes == 0)
    return fail(Code::invalid_argument, "chunks and batches must not be empty");
  if (lanes == nullptr || lane_count == 0) return fail(Code::invalid_argument, "there are no lanes");
  const pyf_grid* const grid = chunks->grid;
  if (grid != nullptr) {
    PYF_TRY(check_grid(grid));
    const ChunkGrid all(*grid);
    if (all.bytes() != chunks->chunk_bytes || chunks->grid_first > all.count() ||
        chunks->count > all.count() - chunks->grid_first || chunks->padding == nullptr)
      return fail(Code::invalid_argument, "the grid has other chunks, or no padding");
  }
  for (std::size_t i = 0; i < lane_count; ++i) {
    const pyf_cuda_lane& lane = lanes[i];
    if (lane.host_values == nullptr && grid == nullptr) continue;
    if (lane.host_values == nullptr || lane.host_value_bytes == 0 || lane.host_value_bytes % 128 != 0 ||
        (grid != nullptr && lane.host_value_bytes / 2 < chunks->chunk_bytes))
      return fail(Code::invalid_argument, "host_value_bytes is %zu: not a multiple of 128, or less than two chunks",
                  lane.host_value_bytes);
  }
  return kOk;
}

const CudaLane* as_lanes(const pyf_cuda_lane* lanes) { return reinterpret_cast<const CudaLane*>(lanes); }

}  // namespace
}  // namespace pyfilter::filter

using namespace pyfilter;
using namespace pyfilter::filter;

int pyf_cuda_write_chunks(const pyf_request* request, const pyf_cuda_chunks* chunks, const pyf_cuda_lane* lanes,
                          size_t lane_count, size_t frame_stride, const pyf_chunk_writer* writer) {
  return static_cast<int>(
      guarded([&] {
        Request checked;
        PYF_TRY(to_request(request, &checked));
        PYF_TRY(check_request(checked));
        PYF_TRY(filter::check(chunks, lanes, lane_count));
        if (writer == nullptr || writer->write == nullptr) return fail(Code::invalid_argument, "writer is NULL");
        if (frame_stride % 8 != 0 || frame_stride < max_frame_bytes(checked))
          return fail(Code::invalid_argument, "frame_stride is %zu: less than a frame may have, or not a multiple of 8",
                      frame_stride);
        return write_chunks(without_psnr(checked), *chunks, as_lanes(lanes), lane_count, frame_stride, *writer);
      }).code);
}

int pyf_cuda_read_chunks(uint8_t dtype, const pyf_cuda_chunks* chunks, const pyf_cuda_lane* lanes, size_t lane_count,
                         int file, pyf_range* ranges, const uint32_t* segments, uint32_t level) {
  return static_cast<int>(guarded([&] {
                            PYF_TRY(filter::check(chunks, lanes, lane_count));
                            if (ranges == nullptr) return fail(Code::invalid_argument, "ranges is NULL");
                            const auto type = static_cast<Dtype>(dtype);
                            if (dtype_bytes(type) == 0) return fail(Code::invalid_argument, "dtype is %d", dtype);
                            return read_chunks({*chunks, type, file, ranges, segments, level}, as_lanes(lanes),
                                               lane_count);
                          }).code);
}
