// SPDX-License-Identifier: BSD-3-Clause
// Particles on the GPU: the decoder, and where the encoders are (cuda_f32.cu, cuda_f64.cu, particles/cuda/sort.cu).
#include "particles/codec.hpp"

#include "particles/cuda/decode.cuh"
#include "particles/cuda/params.cuh"

namespace pyfilter::cuda {

template <class T, int D>
cudaError_t launch_particle_decode(const DecodeParams& job, std::uint32_t frames, cudaStream_t stream) {
  particle_decode_kernel<T, D><<<job.tile_count * frames, kThreads, 0, stream>>>(job);
  return cudaGetLastError();
}

template <class T, int D>
inline constexpr Coder kParticleCoder{nullptr, &launch_particle_decode<T, D>};

const Coder* particles_coder(Dtype dtype, int coordinates) {
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

}  // namespace pyfilter::cuda
