// SPDX-License-Identifier: BSD-3-Clause
// Adaptive on the GPU: the host's side of encoding. Every chunk is encoded twice, as the CPU does: as Lorenzo's frame
// in the caller's memory, and here. The shorter frame is kept, so a call waits for sizes.
#include <algorithm>
#include <iterator>
#include <vector>

#include "adaptive/cuda/batch_axes.cuh"
#include "adaptive/cuda/driver.cuh"
#include "adaptive/cuda/encode_params.cuh"
#include "core/api.hpp"
#include "core/cuda/derived.cuh"
#include "core/cuda/memory.cuh"
#include "core/cuda/raw_chunks.cuh"
#include "core/error_text.hpp"
#include "core/header.hpp"
#include "core/request.hpp"
#include "stages/cuda/batch.cuh"
#include "stages/cuda/train_tables.cuh"

namespace pyfilter::cuda {

extern const AdaptiveEncoders kAdaptiveEncoders32, kAdaptiveEncoders64;

namespace {

// Copies the chosen frames over others.
__global__ void __launch_bounds__(kCopyThreads)
    copy_frames_kernel(CudaEncodeBatch to, const std::uint8_t* frames, std::size_t stride, const std::uint64_t* sizes,
                       const std::uint8_t* chosen) {
  const std::uint32_t chunk = blockIdx.y;
  if (chosen[chunk] == 0) return;
  copy_bytes(static_cast<std::uint8_t*>(to.frames) + chunk * to.frame_stride, frames + chunk * stride, sizes[chunk]);
  if (blockIdx.x == 0 && threadIdx.x == 0) to.frame_bytes[chunk] = sizes[chunk];
}

// Parts of the device's memory, at most: for blocks that train, warps that code, and chunks encoded together.
constexpr std::uint64_t kTrainingPart = 8, kCodingPart = 16, kChunkPart = 6;
constexpr std::uint32_t kMostTogether = usual_size(16384, 3);

class AdaptiveBatch {
 public:
  AdaptiveBatch(const Request& request, const CudaEncodeBatch& batch, std::uint64_t count,
                const AdaptiveEncoders& encoders)
      : request_(request),
        batch_(batch),
        count_(count),
        encoders_(encoders),
        stream_(static_cast<cudaStream_t>(batch.stream)),
        slot_(Arrays::padded(max_frame_bytes(request))) {
    for (const TileKind kind : {TileKind::line, TileKind::plane, TileKind::volume})
      job_.taps[tile_kind_index(kind)] = adaptive_taps(kind);
    job_.choice = {request.parameters[0], request.parameters[1] != 0};
    job_.values = count;
  }

  // Encodes as many chunks at a time as have memory.
  Status run() {
    std::uint64_t memory = 0;
    PYF_TRY(device_memory(&memory));
    PYF_TRY(axes_.find(request_.shape, count_, batch_, encoders_));
    axes_.set_orders(dtype_bytes(request_.dtype), job_);
    PYF_TRY(check(encoders_.resident(job_, &resident_training_, &resident_coding_), "occupancy of the encoder"));
    Arrays of_chunk;
    lay_out_chunks(of_chunk, 1);
    std::size_t together = std::clamp<std::uint64_t>(memory / kChunkPart / of_chunk.bytes(), 1,
                                                     std::min<std::size_t>(batch_.count, kMostTogether));
    for (std::size_t first = 0; first < batch_.count;) {
      const std::size_t here = std::min(together, batch_.count - first);
      const Status done = encode(first, slice(batch_, first, here), memory);
      if (done.code == Code::no_memory && here > 1) {
        together = (here + 1) / 2;
        continue;
      }
      PYF_TRY(done);
      first += here;
    }
    return kOk;
  }

 private:
  void lay_out_chunks(Arrays& arrays, std::size_t chunks) {
    arrays.add(slots_, chunks * slot_);
    arrays.add(sizes_, chunks);
    arrays.add(facts_, chunks);
    arrays.add(chosen_, chunks);
    const std::size_t parts = chunks * job_.parts, tiles = parts * job_.most_tiles;
    arrays.add(grids_, kOrders * parts);
    arrays.add(job_.offsets, parts);
    arrays.add(job_.rated, job_.orders * parts);
    arrays.add(job_.chosen, parts);
    arrays.add(job_.activity, tiles);
    arrays.add(job_.trained, parts);
    arrays.add(job_.heads, tiles);
    arrays.add(job_.record_memory, parts * job_.record_bytes);
    for (std::uint32_t i = 0; i < job_.orders; ++i) arrays.add(job_.order[i].next_tile, std::size(kPlaces));
    arrays.add(job_.sizes, parts);
    arrays.add(job_.units, tiles);
    arrays.add(job_.unit_bits, tiles * kMostUnitBitWords);
    arrays.add(job_.words, parts * job_.part_words);
  }
  // Memory of blocks that train, and of warps that code tiles.
  void lay_out_threads(Arrays& arrays, std::size_t training, std::size_t coding) {
    arrays.add(job_.logs, kTabledLogs);
    arrays.add(job_.spaces, training);
    arrays.add(job_.solving, training * job_.solving_sizes.bytes());
    arrays.add(job_.samples, training * job_.sample_sizes.bytes());
    arrays.add(job_.scratch, std::max(training * kTrainWarps, coding) * job_.scratch_bytes);
    std::size_t plane_floats = 0;
    for (std::uint32_t i = 0; i < job_.orders; ++i) plane_floats = std::max(plane_floats, job_.order[i].plane_floats);
    arrays.add(job_.planes, coding * plane_floats);
  }

  Status encode(std::size_t first, const CudaEncodeBatch& part, std::uint64_t memory) {
    Workspace chunks(stream_), threads(stream_);
    PYF_TRY(allocate_arrays(chunks, [&](Arrays& arrays) { lay_out_chunks(arrays, part.count); }));
    const std::size_t of_block =
        sizeof(TrainSpace) + job_.solving_sizes.bytes() + job_.sample_sizes.bytes() + kTrainWarps * job_.scratch_bytes;
    auto training = static_cast<std::uint32_t>(std::clamp<std::uint64_t>(
        memory / kTrainingPart / of_block, 1, std::min<std::size_t>(resident_training_, part.count * job_.parts)));
    auto coding = static_cast<std::uint32_t>(std::clamp<std::uint64_t>(
        memory / kCodingPart / job_.scratch_bytes, 1,
        std::min<std::uint64_t>(resident_coding_, part.count * job_.parts * job_.most_tiles)));
    for (;;) {  // less memory may be free
      const Status got = allocate_arrays(threads, [&](Arrays& arrays) { lay_out_threads(arrays, training, coding); });
      if (got.ok()) break;
      if (got.code != Code::no_memory || training + coding == 2) return got;
      training = (training + 1) / 2;
      coding = (coding + 1) / 2;
    }
    CudaEncodeBatch own = part;
    own.frames = slots_;
    own.frame_stride = slot_;
    own.frame_bytes = sizes_;
    const FrameInfo header = frame_template(request_, request_.codec, count_);
    TileBatch batch(request_, own, count_, {header, header}, {}, 0);
    PYF_TRY(batch.start(request_, true));
    job_.base = batch.job;
    job_.plans = batch.plans();
    PYF_TRY(axes_.upload(first, part.count, grids_, job_, stream_));
    PYF_TRY(check(fill_logs(job_.logs, stream_), "launch of the kernel for logarithms"));
    PYF_TRY(check(encoders_.settle(job_, request_, facts_, stream_), "launch of the kernel for offsets"));
    PYF_TRY(check(encoders_.encode(job_, training, coding, stream_), "launch of the encoder"));
    PYF_TRY(batch.finish(false));
    return choose(part);
  }

  // Encodes by another codec, as encode_as() of codec.cpp.
  Status encode_as(std::uint8_t codec, const CudaEncodeBatch& part) const {
    Request other = request_;
    other.codec = codec;
    other.parameters = {};
    return device_codec_of(codec)->encode(other, part, count_);
  }
  // Encodes the chunks that `wanted` names by another codec, neighbours together.
  Status encode_some(std::uint8_t codec, const CudaEncodeBatch& part, const std::vector<std::uint8_t>& wanted) const {
    for (std::size_t i = 0; i < part.count;) {
      std::size_t end = i;
      while (end < part.count && wanted[end] != 0) ++end;
      if (end != i) PYF_TRY(encode_as(codec, slice(part, i, end - i)));
      i = std::max(end, i + 1);
    }
    return kOk;
  }
  Status copy_chosen(const CudaEncodeBatch& part, const std::vector<std::uint8_t>& chosen) const {
    PYF_TRY(check(cudaMemcpyAsync(chosen_, chosen.data(), chosen.size(), cudaMemcpyHostToDevice, stream_),
                  "copy of the choice of frames"));
    const auto blocks = static_cast<unsigned>(std::clamp<std::uint64_t>(slot_ / (64 * kCopyThreads), 1, 256));
    copy_frames_kernel<<<dim3(blocks, static_cast<unsigned>(part.count)), kCopyThreads, 0, stream_>>>(
        part, slots_, slot_, sizes_, chosen_);
    return check(cudaGetLastError(), "launch of the kernel that copies frames");
  }

  // Keeps the shorter frame of each chunk, of those in slots and those of Lorenzo. Small ones compete with the frames
  // of a codec without tables. With a predictor that the caller names, chunks without a step are Lorenzo's, no others.
  Status choose(const CudaEncodeBatch& part) {
    const bool compares = request_.parameters[0] == 0;
    std::vector<ChunkPlan> plans;
    PYF_TRY(fetch(job_.plans, part.count, plans, stream_));
    std::vector<std::uint8_t> chosen(part.count), others(part.count);
    for (std::size_t i = 0; i < part.count; ++i) others[i] = compares || plans[i].quantise == 0 ? 1 : 0;
    PYF_TRY(encode_some(registry::kCodecLorenzo, part, others));
    std::vector<std::uint64_t> own, best;
    PYF_TRY(fetch(sizes_, part.count, own, stream_));
    PYF_TRY(fetch(part.frame_bytes, part.count, best, stream_));
    bool any = false;
    for (std::size_t i = 0; i < part.count; ++i) {
      const bool settled = plans[i].quantise != 0;
      chosen[i] = settled && (!compares || own[i] <= best[i]) ? 1 : 0;
      if (chosen[i] != 0) best[i] = own[i];
      others[i] = compares && settled && best[i] - 4 * job_.base.header_words <= kMostSmallBytes ? 1 : 0;
      any = any || others[i] != 0;
    }
    PYF_TRY(copy_chosen(part, chosen));
    if (!any) return kOk;
    CudaEncodeBatch small = part;
    small.frames = slots_;
    small.frame_stride = slot_;
    small.frame_bytes = sizes_;
    PYF_TRY(encode_some(registry::kCodecHierarchicalDelta, small, others));
    PYF_TRY(fetch(sizes_, part.count, own, stream_));
    for (std::size_t i = 0; i < part.count; ++i) chosen[i] = others[i] != 0 && own[i] < best[i] ? 1 : 0;
    return copy_chosen(part, chosen);
  }

  const Request& request_;
  const CudaEncodeBatch& batch_;
  std::uint64_t count_;
  const AdaptiveEncoders& encoders_;
  cudaStream_t stream_;
  std::size_t slot_;
  AdaptiveEncode job_ = {};
  BatchAxes axes_;
  std::uint32_t resident_training_ = 0, resident_coding_ = 0;

  std::uint8_t *slots_ = nullptr, *chosen_ = nullptr;
  std::uint64_t* sizes_ = nullptr;
  ChunkFacts* facts_ = nullptr;
  AdaptiveGrid* grids_ = nullptr;
};

}  // namespace

Status encode_adaptive(const Request& request, const CudaEncodeBatch& batch, std::uint64_t count) {
  Request other = request;
  other.parameters = {};
  other.codec = is_float(request.dtype) ? registry::kCodecLorenzo : registry::kCodecHierarchicalDelta;
  if (!is_float(request.dtype) || request.bound_mode == Bound::pointwise_relative || count == 0)
    return device_codec_of(other.codec)->encode(other, batch, count);
  const AdaptiveEncoders& encoders = request.dtype == Dtype::f32 ? kAdaptiveEncoders32 : kAdaptiveEncoders64;
  const std::uint64_t tiles = make_adaptive_grid(request.shape, count, false).tiles();
  if (tiles >> 31 != 0)
    return fail(Code::unsupported, "the chunk has %llu tiles, a device encodes fewer than 2^31: encode it on the CPU",
                static_cast<unsigned long long>(tiles));
  try {
    return AdaptiveBatch(request, batch, count, encoders).run();
  } catch (const std::bad_alloc&) {
    return fail(Code::no_memory, "no memory for a batch of %zu chunks", batch.count);
  }
}

}  // namespace pyfilter::cuda
