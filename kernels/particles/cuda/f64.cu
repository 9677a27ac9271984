// SPDX-License-Identifier: BSD-3-Clause
// Particles on the GPU: the encoder of f64.
#include "particles/cuda/coder.cuh"

namespace pyfilter::cuda {

const ParticleEncoder* particle_encoder_f64(int coordinates) {
  return coordinates == 2 ? &kParticleEncoder<double, 2> : &kParticleEncoder<double, 3>;
}

}  // namespace pyfilter::cuda
