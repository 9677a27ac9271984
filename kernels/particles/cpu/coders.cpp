// SPDX-License-Identifier: BSD-3-Clause
// Particles on the CPU; compiled once per level (core/target.hpp).
#include <algorithm>
#include <bit>
#include <limits>

#include "core/cpu_driver.hpp"
#include "core/error_text.hpp"
#include "particles/codec.hpp"
#include "particles/cpu/decode.hpp"
#include "particles/cpu/encode.hpp"
#include "particles/cpu/estimate.hpp"
#include "particles/cpu/order.hpp"

PYF_BEGIN_TARGET

template <class T, int D>
inline constexpr ParticleCoder kParticleCoder{{&encode_particles<T, D>, &decode_particles<T, D>},
                                              &order_chunk<T, D>,
                                              &order_tile<T, D>,
                                              &sort_entries,
                                              &is_ordered<T, D>,
                                              &estimate_lorenzo<T, D>};

static const ParticleCoder* find_coder(const ParticlePlan& plan) {
  const bool pairs = plan.grid.block_dims == 2;
  if (plan.dtype == Dtype::f32) return pairs ? &kParticleCoder<float, 2> : &kParticleCoder<float, 3>;
  if (plan.dtype == Dtype::f64) return pairs ? &kParticleCoder<double, 2> : &kParticleCoder<double, 3>;
  return nullptr;
}

const ParticleCoders kParticleCoders{&find_coder};

PYF_END_TARGET
