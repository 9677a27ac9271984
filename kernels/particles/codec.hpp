// SPDX-License-Identifier: BSD-3-Clause
// Particles (GPZ): positions of particles, arrays (N, 2) or (N, 3) -> codes of each coordinate -> segments and offsets
// in the extent of each tile of 4096 particles -> sorted keys of segments as gaps, or as runs and gaps; offsets as bit
// planes. Codes are multiples of the step (stages/quantize.hpp). Where the order of particles has to be kept and no
// sorting is seen in it, and where keys would not gain, the frame is one of lorenzo. See FORMAT.md.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/level.hpp"
#include "core/status.hpp"
#include "core/types.hpp"
#include "particles/plan.hpp"

namespace pyfilter {

struct ParticleCoders {
  const ParticleCoder* (*coder)(const ParticlePlan& plan);
};
PYF_LEVEL_TABLE(ParticleCoders, kParticleCoders, particle_coders)

// Writes the indices of the particles in the order that the request's parameters ask for, as encode() would lay them.
Status particle_order(const Request& request, const void* values, std::size_t value_bytes,
                      std::uint32_t* particles) noexcept;

}  // namespace pyfilter
