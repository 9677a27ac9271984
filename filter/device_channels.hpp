// SPDX-License-Identifier: BSD-3-Clause
// Threads of channels (device_chunks.cpp): the batches that they share, and the frames that they hand to the calling
// thread.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <deque>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include "core/api.hpp"
#include "core/cuda/channel.hpp"
#include "core/error_text.hpp"
#include "filter/c_api.h"
#include "filter/guard.hpp"

namespace pyfilter::filter {

// Whether an error ends the whole call, not only a batch.
inline bool is_fatal(Code code) { return code == Code::device || code == Code::internal; }

// The batches of a call, shared by all channels; stop() or an error ends them.
class Batches {
 public:
  explicit Batches(const pyf_cuda_chunks& chunks)
      : chunks_(chunks),
        end_(std::chrono::steady_clock::now() + std::chrono::duration_cast<std::chrono::steady_clock::duration>(
                                                    std::chrono::duration<double>(chunks.seconds))) {}

  [[nodiscard]] bool stopped() const { return stopped_.load(std::memory_order_relaxed); }
  void stop() { stopped_.store(true); }

  // Takes the next batch; false if none is left or time is up. The first batch is always begun.
  bool take(std::size_t* first, std::size_t* count) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (stopped() || next_ >= chunks_.count) return false;
    if (next_ > 0 && std::chrono::steady_clock::now() > end_) return false;
    *first = next_;
    *count = std::min(chunks_.batch, chunks_.count - next_);
    next_ += *count;
    return true;
  }

  // Ends all channels with an error; the first error counts.
  void fail_with(const Status& status) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (failed_.ok()) {
      failed_ = status;
      std::snprintf(text_, sizeof text_, "%s", last_error());  // copied: the text belongs to the failing thread
    }
    stop();
  }
  [[nodiscard]] Status failed() const { return failed_.ok() ? kOk : fail(failed_.code, "%s", text_); }

 private:
  const pyf_cuda_chunks& chunks_;
  const std::chrono::steady_clock::time_point end_;
  std::mutex mutex_;
  std::size_t next_ = 0;
  std::atomic<bool> stopped_{false};
  Status failed_ = kOk;
  char text_[512] = "";
};

inline void set_state(const pyf_cuda_chunks& chunks, std::size_t first, std::size_t count, pyf_chunk_state state) {
  std::memset(chunks.state + first, state, count);
}

// Runs work(waiter, first, count) for batches on one channel until no batch is left. A batch that fails is left to the
// caller. Its work on the stream is finished before the next batch begins or the call ends.
template <class Work>
void serve(const CudaChannel& channel, const pyf_cuda_chunks& chunks, Batches& batches, const Work& work) noexcept {
  const Status all = guarded([&] {
    CudaWaiter waiter;
    PYF_TRY(waiter.open(channel));
    for (std::size_t first = 0, count = 0; batches.take(&first, &count);) {
      const Status status = guarded([&] { return work(waiter, first, count); });
      if (status.ok()) continue;
      set_state(chunks, first, count, PYF_CHUNK_LEFT);
      if (is_fatal(status.code)) batches.fail_with(status);
      PYF_TRY(waiter.wait(channel, "what is on a stream"));
    }
    return kOk;
  });
  if (!all.ok()) batches.fail_with(all);
}

// The threads of all channels, for the length of a call.
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

// Frames in a channel's memory, to be written by the calling thread; the channel's thread waits until it has done so.
struct Portion {
  const CudaChannel* channel = nullptr;
  std::size_t first = 0;                      // number of the first chunk
  std::vector<std::uint64_t> offsets, sizes;  // of the frames in channel->host_frames
  bool written = false;
};

// Passes portions from the channels' threads to the calling thread.
class Outbox {
 public:
  // Hands frames over; returns when they have been written or refused.
  void send(Portion& portion) {
    std::unique_lock<std::mutex> lock(mutex_);
    portion.written = false;
    ready_.push_back(&portion);
    came_.notify_one();
    went_.wait(lock, [&] { return portion.written; });
  }
  void leave() {  // called by each channel's thread when it ends
    const std::lock_guard<std::mutex> lock(mutex_);
    ++left_;
    came_.notify_one();
  }
  // Waits for the next portion; NULL once all channels have ended.
  Portion* take(std::size_t channels) {
    std::unique_lock<std::mutex> lock(mutex_);
    came_.wait(lock, [&] { return !ready_.empty() || left_ == channels; });
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

}  // namespace pyfilter::filter
