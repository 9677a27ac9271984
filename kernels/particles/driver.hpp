// SPDX-License-Identifier: BSD-3-Clause
// Particles on the CPU besides tiles: the order of a chunk, and whether its tiles are worth the particles codec
// (kernels/particles/FORMAT.md).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "core/status.hpp"
#include "core/types.hpp"
#include "particles/plan.hpp"

namespace pyfilter {

// Orders of particles in requests and frames: as given, sorted in each tile, sorted through the chunk.
inline constexpr std::uint8_t kOrderKept = 0, kOrderTile = 1, kOrderChunk = 2;

// Checks a request for the order of `value_bytes` bytes of positions; sets the number of particles' values and of
// coordinates.
Status check_order_request(const Request& request, std::size_t value_bytes, std::uint64_t* count,
                           int* coordinates) noexcept;

// The lorenzo request that replaces one for particles.
Request lorenzo_request(const Request& request) noexcept;

// The lorenzo request that is compared with particles, for few particles (kernels/particles/estimate.hpp): with the
// bound of the particles' frame.
Request tried_request(const Request& request, double bound, std::uint64_t particles, int coordinates) noexcept;

// Sets the plan's members that sort a chunk into the requested order; `entries` then holds the order. Rows of zeros or
// of the sentinel at the end stay there: HDF5 pads the last chunk of a dataset with them. With `scratch` of 8 bytes a
// particle, such as the memory of the frame, sorting is faster. Large chunks do not use it: their memory matters more.
// nullptr: none.
Status plan_order(const ParticleCoder& coder, std::uint8_t order, const void* values, ParticlePlan& plan,
                  std::unique_ptr<std::uint64_t[]>& entries, void* extra, std::size_t extra_bytes) noexcept;

// Writes the indices of a chunk's particles in that order.
Status order_particles(const ParticlePlan& plan, const ParticleCoder& coder, std::uint8_t order, const void* values,
                       std::uint32_t* particles) noexcept;

// Estimates lorenzo's bytes for a chunk of many particles.
Status estimate_lorenzo(const ParticlePlan& plan, const ParticleCoder& coder, const void* values,
                        std::uint64_t* bytes) noexcept;

// Whether at least half of a few sampled tiles are in an order that keys can encode.
Status is_ordered(const ParticlePlan& plan, const ParticleCoder& coder, const void* values, bool* ordered) noexcept;

}  // namespace pyfilter
