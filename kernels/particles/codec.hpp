// SPDX-License-Identifier: BSD-3-Clause
// Particles (GPZ): positions of particles, arrays (N, 2) or (N, 3) -> codes of each coordinate -> segments and offsets
// in the extent of each tile of 4096 particles -> sorted keys of segments as gaps, or as runs and gaps; offsets as bit
// planes. Codes are multiples of the step (stages/quantize.hpp). The frame is one of lorenzo if the order must be kept
// and is not sorted already, or if keys gain nothing. See FORMAT.md.
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

// Writes the indices of the particles in the order that encode() would store them in, as the request's parameters ask.
Status particle_order(const Request& request, const void* values, std::size_t value_bytes,
                      std::uint32_t* particles) noexcept;

}  // namespace pyfilter
