// SPDX-License-Identifier: BSD-3-Clause
// What particles need besides tiles, on the CPU: the order of a chunk, and whether its tiles are worth their codec
// (kernels/particles/FORMAT.md).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "core/plan.hpp"
#include "core/status.hpp"

namespace pyfilter {

// How requests and frames name the order of particles: as given, sorted in each tile, sorted through the chunk.
inline constexpr std::uint8_t kOrderKept = 0, kOrderTile = 1, kOrderChunk = 2;

// Writes the indices of a chunk's particles in the order asked for. Rows at the end that are all zero, or the sentinel,
// stay where they are: HDF5 pads the last chunk of a dataset with them.
Status order_particles(const Plan& plan, const ParticleCoder& coder, std::uint8_t order, const void* values,
                       std::uint32_t* particles) noexcept;

// Copies particles in the order of `particles`.
void gather_particles(const Plan& plan, const void* values, const std::uint32_t* particles, void* out) noexcept;

// Whether most of a few tiles are in an order that their keys can be coded in.
Status is_ordered(const Plan& plan, const ParticleCoder& coder, const void* values, bool* ordered) noexcept;

}  // namespace pyfilter
