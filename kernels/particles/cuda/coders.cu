// SPDX-License-Identifier: BSD-3-Clause
// Particles on the GPU: the decoder, and the table of encoders (f32.cu, f64.cu, sort.cu).
#include "particles/cuda/decode.cuh"
#include "particles/cuda/driver.cuh"
#include "particles/cuda/params.cuh"
#include "stages/cuda/decode_frames.cuh"

namespace pyfilter::cuda {

template <class T, int D>
cudaError_t launch_particle_decode(const DecodeParams& job, std::uint32_t frames, cudaStream_t stream) {
  particle_decode_kernel<T, D><<<job.tile_count * frames, kThreads, 0, stream>>>(job);
  return cudaGetLastError();
}

template <class T, int D>
inline constexpr Coder kParticleCoder{nullptr, &launch_particle_decode<T, D>};

static const Coder* find_coder(Dtype dtype, int coordinates) {
  const bool pairs = coordinates == 2;
  if (dtype == Dtype::f32) return pairs ? &kParticleCoder<float, 2> : &kParticleCoder<float, 3>;
  if (dtype == Dtype::f64) return pairs ? &kParticleCoder<double, 2> : &kParticleCoder<double, 3>;
  return nullptr;
}

const ParticleEncoder* particle_encoder_f32(int coordinates);
const ParticleEncoder* particle_encoder_f64(int coordinates);

const ParticleEncoder* particle_encoder(Dtype dtype, int coordinates) {
  return dtype == Dtype::f32 ? particle_encoder_f32(coordinates) : particle_encoder_f64(coordinates);
}

namespace {

std::uint32_t group(const FrameInfo& info) {
  return static_cast<std::uint32_t>(coordinates_of(info.shape.rank, info.shape.dims));
}
std::uint32_t mode(const FrameInfo& info) { return info.parameters[0]; }

Status decode(const FrameGroup& frames, std::uint64_t start, std::uint64_t stop, cudaStream_t stream) {
  const FrameInfo& info = frames.info;
  const int coordinates = coordinates_of(info.shape.rank, info.shape.dims);
  return decode_tile_frames(frames, particle_grid(info.value_count, coordinates), find_coder(info.dtype, coordinates),
                            start, stop, stream);
}

}  // namespace

extern const DeviceCodec kParticlesDevice;
const DeviceCodec kParticlesDevice{encode_particles, group, mode, decode, nullptr, nullptr};

}  // namespace pyfilter::cuda
