// SPDX-License-Identifier: BSD-3-Clause
// What particles need besides tiles, on the CPU: the order of a chunk, and whether its tiles are worth their codec
// (kernels/particles/FORMAT.md).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "core/status.hpp"
#include "core/types.hpp"
#include "particles/plan.hpp"

namespace pyfilter {

// How requests and frames name the order of particles: as given, sorted in each tile, sorted through the chunk.
inline constexpr std::uint8_t kOrderKept = 0, kOrderTile = 1, kOrderChunk = 2;

// Whether a request can be one for an order of `value_bytes` bytes of positions; how many coordinates there are.
Status check_order_request(const Request& request, std::size_t value_bytes, std::uint64_t* count,
                           int* coordinates) noexcept;

// What lorenzo is asked where particles are not worth it.
Request lorenzo_request(const Request& request) noexcept;

// And what it is asked to compare it with particles, where there are few of them (kernels/particles/estimate.hpp): to
// encode them with the bound of their frame.
Request tried_request(const Request& request, double bound, std::uint64_t particles, int coordinates) noexcept;

// Sets what encoding needs to lay a chunk in the order asked for; `entries` holds it then. Rows at the end that are all
// zero, or the sentinel, stay where they are: HDF5 pads the last chunk of a dataset with them. With `room` for 8 bytes
// a particle, such as the frame that is written next, sorting is faster; it is left alone in large chunks, whose memory
// matters more. nullptr for none.
Status plan_order(const ParticleCoder& coder, std::uint8_t order, const void* values, ParticlePlan& plan,
                  std::unique_ptr<std::uint64_t[]>& entries, void* room, std::size_t room_bytes) noexcept;

// Writes the indices of a chunk's particles in that order.
Status order_particles(const ParticlePlan& plan, const ParticleCoder& coder, std::uint8_t order, const void* values,
                       std::uint32_t* particles) noexcept;

// About the bytes that lorenzo needs for a chunk of more particles.
Status estimate_lorenzo(const ParticlePlan& plan, const ParticleCoder& coder, const void* values,
                        std::uint64_t* bytes) noexcept;

// Whether most of a few tiles are in an order that their keys can be coded in.
Status is_ordered(const ParticlePlan& plan, const ParticleCoder& coder, const void* values, bool* ordered) noexcept;

}  // namespace pyfilter
