// SPDX-License-Identifier: BSD-3-Clause
// Writes many chunks in one call (c_api.h): the library's threads encode them, and the calling thread hands their
// frames to HDF5 in order. Memory holds the frames of some chunks for each thread.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

#include "core/api.hpp"
#include "core/error_text.hpp"
#include "core/request.hpp"
#include "core/threads.hpp"
#include "filter/c_api.h"
#include "filter/c_request.hpp"
#include "filter/chunk_grid.hpp"
#include "filter/grid_encoding.hpp"
#include "filter/guard.hpp"

namespace pyfilter::filter {
namespace {

using Clock = std::chrono::steady_clock;

// Pieces of a grid are encoded in any order and written in theirs. A piece has some chunks; its frames have a slot
// until they are written. So piece i + slots is begun after piece i was written.
class GridWriter {
 public:
  GridWriter(const Encoding& encoding, const pyf_chunk_writer& writer, std::uint64_t first, std::uint64_t count,
             Clock::time_point end)
      : encoding_(encoding),
        writer_(writer),
        first_(first),
        count_(count),
        each_(chunks_of_piece(encoding.chunks.bytes())),
        pieces_((count + each_ - 1) / each_),
        stride_((max_frame_bytes(encoding.request) + kAlignment - 1) / kAlignment * kAlignment),
        end_(end) {}

  // Encodes with so many threads, this one among them. Returns the number of chunks that were written.
  Status run(int threads, std::uint64_t* written) {
    if (!are_side_by_side(count_, encoding_.chunks.bytes(), threads)) threads = 1;
    threads = static_cast<int>(std::clamp<std::uint64_t>(pieces_, 1, static_cast<std::uint64_t>(std::max(threads, 1))));
    make_slots(threads == 1 ? 1 : 2 * static_cast<std::uint64_t>(threads) + 2);
    if (!frames_) make_slots(1);  // one thread works at a time
    if (!frames_) return fail(Code::no_memory, "no memory for a frame of up to %zu bytes", stride_);
    const auto work = [](void* context, std::uint64_t) noexcept {
      auto& writer = *static_cast<GridWriter*>(context);
      if (std::this_thread::get_id() == writer.caller_)
        writer.encode_and_write();
      else
        writer.encode_pieces();
    };
    // As many turns as threads. A thread ends its turn when no piece is left, so this one gets a turn while any is.
    parallel_for(threads, static_cast<std::uint64_t>(threads), work, this);
    encode_and_write();
    *written = done_;
    return kOk;
  }

 private:
  static constexpr std::size_t kAlignment = 64;
  struct Slot {
    std::vector<std::size_t> sizes;  // of the frames; 0: left to the caller
    std::atomic<bool> ready{false};
  };

  void make_slots(std::uint64_t count) {
    slots_ = std::vector<Slot>(count);
    for (Slot& slot : slots_) slot.sizes.resize(each_);
    frames_ = allocate(count * each_ * stride_);
  }
  Slot& slot_of(std::uint64_t piece) { return slots_[piece % slots_.size()]; }
  std::uint8_t* frame_of(std::uint64_t piece, std::uint64_t i) {
    return frames_.get() + (piece % slots_.size() * each_ + i) * stride_;
  }
  std::uint64_t chunks_of(std::uint64_t piece) const { return std::min(each_, count_ - piece * each_); }

  bool has_slot() const { return next_ >= pieces_ || next_ - written_ < slots_.size(); }

  // Takes the next piece to encode; false if none is left or, unless it waits, no slot is free.
  bool take(std::uint64_t* piece, bool waits) {
    std::unique_lock<std::mutex> lock(mutex_);
    if (waits && !has_slot()) {
      ++waiting_;
      slot_free_.wait(lock, [this] { return has_slot(); });
      --waiting_;
    }
    if (next_ > 0 && next_ < pieces_ && Clock::now() > end_) pieces_ = next_;
    const bool takes = next_ < pieces_ && has_slot();
    if (takes) *piece = next_++;
    if (next_ >= pieces_ && waiting_ != 0) slot_free_.notify_all();  // nothing is left to wait for
    return takes;
  }

  void encode_piece(std::uint64_t piece, Memory& block) {
    Slot& slot = slot_of(piece);
    for (std::uint64_t i = 0; i < chunks_of(piece); ++i)
      slot.sizes[i] = encoding_.encode_chunk(first_ + piece * each_ + i, block, frame_of(piece, i), stride_);
    const std::lock_guard<std::mutex> lock(mutex_);
    slot.ready = true;
    if (piece == written_) piece_ready_.notify_one();
  }

  void encode_pieces() {
    Memory block;
    for (std::uint64_t piece = 0; take(&piece, true);) encode_piece(piece, block);
  }

  // The calling thread: writes what is ready, encodes if nothing is.
  void encode_and_write() {
    Memory block;
    for (;;) {
      while (slot_of(written_).ready) write_next();
      std::uint64_t piece = 0;
      if (take(&piece, false)) {
        encode_piece(piece, block);
        continue;
      }
      std::unique_lock<std::mutex> lock(mutex_);
      if (written_ >= pieces_) return;
      lock.unlock();
      spin_while([this] { return !slot_of(written_).ready; });
      lock.lock();
      piece_ready_.wait(lock, [this] { return slot_of(written_).ready.load(); });
    }
  }

  // Writes the frames of the next piece. If one cannot be written, no further one is.
  void write_next() {
    Slot& slot = slot_of(written_);
    for (std::uint64_t i = 0; good_ && i < chunks_of(written_); ++i) {
      const std::size_t size = slot.sizes[i];
      // HDF5 may take a frame as large as the values for these
      good_ = size != 0 && size != encoding_.chunks.bytes() &&
              writer_.write(writer_.dataset, 0, 0, writer_.origins + (first_ + done_) * writer_.rank, size,
                            frame_of(written_, i)) >= 0;
      if (good_) ++done_;
    }
    const std::lock_guard<std::mutex> lock(mutex_);
    slot.ready = false;
    ++written_;
    if (!good_) pieces_ = std::min(pieces_, next_);
    if (waiting_ != 0) slot_free_.notify_one();
  }

  const Encoding& encoding_;
  const pyf_chunk_writer& writer_;
  const std::thread::id caller_ = std::this_thread::get_id();
  const std::uint64_t first_, count_, each_;
  std::uint64_t pieces_;  // fewer, if time is up or a chunk was not written
  const std::size_t stride_;
  const Clock::time_point end_;
  std::mutex mutex_;
  std::condition_variable slot_free_, piece_ready_;
  std::vector<Slot> slots_;
  Memory frames_;
  std::uint64_t next_ = 0, written_ = 0;  // pieces; `written_` is changed by the calling thread only
  std::uint64_t done_ = 0;                // chunks
  int waiting_ = 0;                       // threads, for a slot
  bool good_ = true;
};

}  // namespace
}  // namespace pyfilter::filter

using namespace pyfilter;
using namespace pyfilter::filter;

int pyf_write_grid(const pyf_request* request, const pyf_grid* grid, const void* padding,
                   const pyf_chunk_writer* writer, size_t first, size_t count, int threads, double seconds,
                   uint64_t* written) {
  return static_cast<int>(
      guarded([&] {
        if (written == nullptr || padding == nullptr) return fail(Code::invalid_argument, "padding or written is NULL");
        *written = 0;
        Request checked;
        PYF_TRY(to_request(request, &checked));
        PYF_TRY(check_request(checked));
        PYF_TRY(check_grid(grid));
        if (writer == nullptr || writer->write == nullptr) return fail(Code::invalid_argument, "writer is NULL");
        const ChunkGrid chunks(*grid);
        if (first > chunks.count() || count > chunks.count() - first)
          return fail(Code::invalid_argument, "the grid has %llu chunks, but first + count is %zu + %zu",
                      static_cast<unsigned long long>(chunks.count()), first, count);
        const Encoding encoding{chunks, checked, padding};
        const auto end = Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                            std::chrono::duration<double>(std::clamp(seconds, 0.0, 1e6)));
        return GridWriter(encoding, *writer, first, count, end).run(threads, written);
      }).code);
}
