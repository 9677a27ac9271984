// SPDX-License-Identifier: BSD-3-Clause
// The memory of decoded chunks (decoded_chunks.hpp).
//
// A chunk is `cached` from its decoding until HDF5 is known to have freed its values. HDF5 has freed them if they were
// encoded in place, or if other values have their address. HDF5 does not report when it drops a chunk that was not
// written to. Frames of dropped chunks are kept for a while. Programs that copy a file, or modify the values that they
// read, soon encode the same values.
#include "filter/decoded_chunks.hpp"

#include <pthread.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <iterator>
#include <list>
#include <map>
#include <mutex>
#include <new>
#include <unordered_map>
#include <vector>

#include "filter/cd_values.hpp"

namespace pyfilter::filter {
namespace {

// More than HDF5's chunk caches hold by default: 1 to 8 MiB for each dataset with h5py, 64 MiB with netCDF.
constexpr std::size_t kMostCachedBytes = std::size_t{256} << 20, kMostCached = 16384;
constexpr std::size_t kMostDroppedBytes = std::size_t{32} << 20, kMostDropped = 1024;
constexpr std::size_t kSamples = 16, kProbeBytes = 64, kProbesAtOnce = 256, kPieceBytes = std::size_t{64} << 10;

using Samples = std::array<std::uint64_t, kSamples>;

// Samples a chunk's values. Zeros and values that are sampled twice (fill values, constants) do not identify a chunk:
// they become 0.
Samples sample(const CachedChunk& chunk) {
  Samples samples{};
  const std::size_t count = chunk.bytes / chunk.value_bytes;
  const std::size_t parts = chunk.parts.size();
  for (std::size_t k = 0; k < std::min(count * parts, kSamples); ++k) {
    const std::size_t at = count <= kSamples ? k / parts : (2 * k + 1) * (count / (2 * kSamples));
    const SampledPart& part = chunk.parts[k % parts];
    std::memcpy(&samples[k], static_cast<const std::uint8_t*>(chunk.values) + at * chunk.value_bytes + part.offset,
                part.bytes);
  }
  Samples telling{};
  for (std::size_t k = 0; k < kSamples; ++k)
    if (std::count(samples.begin(), samples.end(), samples[k]) == 1) telling[k] = samples[k];
  return telling;
}

// FNV-1a of cd_values: chunks with equal keys have equal dtype, shape, codec and bound. A copy that nccopy makes has a
// flag that the copied dataset has not.
std::uint64_t key_of(const CachedChunk& chunk) {
  std::uint64_t hash = 0xCBF29CE484222325u ^ chunk.bytes;
  for (std::size_t i = 0; i < chunk.word_count; ++i)
    hash = (hash ^ (i == kTypeWord ? chunk.words[i] & ~kTypeWithoutZeros : chunk.words[i])) * 0x100000001B3u;
  return hash;
}

std::uintptr_t address_of(const void* values) { return reinterpret_cast<std::uintptr_t>(values); }

struct Entry {
  std::uint64_t key = 0;
  std::uintptr_t address = 0;
  std::size_t bytes = 0;
  Samples samples{};
  std::shared_ptr<const DecodedFrame> frame;
};
using Entries = std::list<Entry>;  // newest first

class Memory {
 public:
  std::mutex mutex;

  void add(const CachedChunk& chunk, std::shared_ptr<const DecodedFrame> frame) {
    drop_overlapping(address_of(chunk.values), chunk.bytes);
    Entries added;
    added.push_front({key_of(chunk), address_of(chunk.values), chunk.bytes, sample(chunk), std::move(frame)});
    const Entries::iterator entry = added.begin();
    by_address_[entry->address] = entry;
    try {
      by_key_[entry->key].push_back(entry);
    } catch (...) {  // no memory: an entry is in both maps and the list, or in none
      by_address_.erase(entry->address);
      throw;
    }
    cached_bytes_ += entry->frame->size;
    cached_.splice(cached_.begin(), added);
    while (cached_.size() > kMostCached || cached_bytes_ > kMostCachedBytes) drop(std::prev(cached_.end()));
  }

  Origins find(const CachedChunk& chunk) {
    Origins found;
    const std::uint64_t key = key_of(chunk);
    const std::uintptr_t address = address_of(chunk.values);
    if (const auto here = by_address_.find(address); here != by_address_.end() && here->second->key == key)
      found.cached[1] = here->second->frame;
    drop_overlapping(address, chunk.bytes);  // the caller frees this memory
    found.cached[0] = find_copied(key, chunk);
    if (found.cached[0] == found.cached[1]) found.cached[1] = nullptr;
    found.similar = find_similar(key, chunk);
    return found;
  }

 private:
  // Finds a chunk that is still cached and whose values equal `chunk`: HDF5 handed over a copy of them.
  std::shared_ptr<const DecodedFrame> find_copied(std::uint64_t key, const CachedChunk& chunk) {
    const auto same_key = by_key_.find(key);
    if (same_key == by_key_.end()) return nullptr;
    const std::vector<Entries::iterator> entries = same_key->second;  // a copy: drop() changes the map's vector
    const std::size_t probe_bytes = std::min(kProbeBytes, chunk.bytes), at = (chunk.bytes - probe_bytes) / 2;
    const auto* const values = static_cast<const std::uint8_t*>(chunk.values);
    std::array<std::uint8_t, kProbesAtOnce * kProbeBytes> probes;
    for (std::size_t first = 0; first < entries.size();) {
      const std::size_t count = std::min(kProbesAtOnce, entries.size() - first);
      std::array<iovec, kProbesAtOnce> from;
      for (std::size_t i = 0; i < count; ++i)
        from[i] = {reinterpret_cast<void*>(entries[first + i]->address + at), probe_bytes};
      const long got = read_memory(probes.data(), probe_bytes * count, from.data(), count);
      if (got < 0) return nullptr;  // the system forbids reading
      const std::size_t whole = static_cast<std::size_t>(got) / probe_bytes;
      for (std::size_t i = 0; i < whole; ++i)
        if (std::memcmp(probes.data() + i * probe_bytes, values + at, probe_bytes) == 0 &&
            is_equal(entries[first + i]->address, chunk))
          return entries[first + i]->frame;
      first += whole;
      if (whole < count) drop(entries[first++]);  // unmapped: HDF5 has freed it
    }
    return nullptr;
  }

  static bool is_equal(std::uintptr_t address, const CachedChunk& chunk) {
    std::array<std::uint8_t, kPieceBytes> piece;
    for (std::size_t at = 0; at < chunk.bytes; at += kPieceBytes) {
      const std::size_t bytes = std::min(kPieceBytes, chunk.bytes - at);
      iovec from{reinterpret_cast<void*>(address + at), bytes};
      if (read_memory(piece.data(), bytes, &from, 1) != static_cast<long>(bytes)) return false;
      if (std::memcmp(piece.data(), static_cast<const std::uint8_t*>(chunk.values) + at, bytes) != 0) return false;
    }
    return true;
  }

  // Reads memory that may have been freed, up to the first part that is unmapped; -1 if the system forbids it.
  static long read_memory(std::uint8_t* to, std::size_t bytes, const iovec* from, std::size_t parts) {
    iovec local{to, bytes};
    const long got = process_vm_readv(getpid(), &local, 1, from, parts, 0);
    return got >= 0 ? got : errno == EFAULT ? 0 : -1;
  }

  // Finds the chunk with the most samples equal to those of `chunk`. It must share half of the samples of one part that
  // are not 0.
  std::shared_ptr<const DecodedFrame> find_similar(std::uint64_t key, const CachedChunk& chunk) const {
    const Samples samples = sample(chunk);
    const auto nonzero = static_cast<std::size_t>(
        std::count_if(samples.begin(), samples.end(), [](std::uint64_t bits) { return bits != 0; }));
    std::size_t most = std::max<std::size_t>(nonzero / 2 / chunk.parts.size(), 1) - 1;
    std::shared_ptr<const DecodedFrame> best;
    const auto look = [&](const Entries& entries) {
      for (const Entry& entry : entries) {
        if (entry.key != key) continue;
        std::size_t same = 0;
        for (std::size_t k = 0; k < kSamples; ++k) same += samples[k] != 0 && samples[k] == entry.samples[k] ? 1 : 0;
        if (same <= most) continue;
        most = same;
        best = entry.frame;
      }
    };
    look(cached_);
    look(dropped_);
    return best;
  }

  void drop_overlapping(std::uintptr_t address, std::size_t bytes) {
    auto next = by_address_.lower_bound(address);
    if (next != by_address_.begin()) {
      const auto before = std::prev(next);
      if (before->second->address + before->second->bytes > address) next = before;
    }
    while (next != by_address_.end() && next->first < address + bytes) {
      const Entries::iterator entry = next->second;
      ++next;
      drop(entry);
    }
  }

  // Moves a chunk whose values HDF5 has freed to the dropped ones.
  void drop(Entries::iterator entry) {
    by_address_.erase(entry->address);
    const auto same_key = by_key_.find(entry->key);
    same_key->second.erase(std::find(same_key->second.begin(), same_key->second.end(), entry));
    if (same_key->second.empty()) by_key_.erase(same_key);
    cached_bytes_ -= entry->frame->size;
    dropped_bytes_ += entry->frame->size;
    dropped_.splice(dropped_.begin(), cached_, entry);
    while (dropped_.size() > kMostDropped || dropped_bytes_ > kMostDroppedBytes) {
      dropped_bytes_ -= dropped_.back().frame->size;
      dropped_.pop_back();
    }
  }

  Entries cached_, dropped_;
  std::size_t cached_bytes_ = 0, dropped_bytes_ = 0;
  std::map<std::uintptr_t, Entries::iterator> by_address_;
  std::unordered_map<std::uint64_t, std::vector<Entries::iterator>> by_key_;
};

// Never destroyed: HDF5 may close files while the process ends. A process that forks locks the mutex first, so that no
// other thread holds it in the child, which has copies of HDF5's caches.
Memory* memory() {
  static Memory* const made = [] {
    static Memory* only = new (std::nothrow) Memory;
    if (only == nullptr) return only;
    const int failed =
        pthread_atfork([] { only->mutex.lock(); }, [] { only->mutex.unlock(); }, [] { only->mutex.unlock(); });
    return failed == 0 ? only : nullptr;
  }();
  return made;
}

}  // namespace

void remember_decoded(const CachedChunk& chunk, const void* frame, std::size_t frame_bytes) noexcept {
  Memory* const all = memory();
  if (all == nullptr || chunk.bytes == 0) return;
  try {
    auto kept = std::make_shared<DecodedFrame>();
    kept->bytes.reset(new std::uint8_t[frame_bytes]);
    kept->size = frame_bytes;
    std::memcpy(kept->bytes.get(), frame, frame_bytes);
    const std::scoped_lock lock(all->mutex);
    all->add(chunk, std::move(kept));
  } catch (const std::exception&) {  // no memory
  }
}

Origins find_origins(const CachedChunk& chunk) noexcept {
  Memory* const all = memory();
  if (all == nullptr || chunk.bytes == 0) return {};
  try {
    const std::scoped_lock lock(all->mutex);
    return all->find(chunk);
  } catch (const std::exception&) {
    return {};
  }
}

}  // namespace pyfilter::filter
