// SPDX-License-Identifier: BSD-3-Clause
// Particles on the GPU: the encoder of f32.
#include "particles/cuda/coder.cuh"

namespace pyfilter::cuda {

const ParticleEncoder* particle_encoder_f32(int coordinates) {
  return coordinates == 2 ? &kParticleEncoder<float, 2> : &kParticleEncoder<float, 3>;
}

}  // namespace pyfilter::cuda
