// SPDX-License-Identifier: BSD-3-Clause
// Where a lane's value is in the array, while a warp walks over a tile.
#pragma once

#include <cstdint>

#include "adaptive/tile.hpp"

namespace pyfilter::cuda {

struct ValueCursor {
  std::uint64_t index, along, back;  // of the lane's value; to the next one; from the end of a row to the next plane

  PYF_LANES ValueCursor begin(const AdaptiveTile& tile, const Lattice& lattice, const Layout& l, const Place& place) {
    ValueCursor c;
    c.along = tile.value_stride << lattice.shift_x;
    c.back = (tile.plane_stride << lattice.shift_z) - l.period() * c.along;
    c.index = tile.row(0, this_lane() << lattice.shift_y) +
              static_cast<std::uint64_t>(static_cast<std::int64_t>(place.x.v)) * c.along;
    return c;
  }
  // Advances by a step to `place`; `z`: the lane's plane before.
  template <class PlaceOfLanes>
  __device__ __forceinline__ void next(const PlaceOfLanes& place, std::int32_t z) {
    index += along;
    if (place.z.v != z) index += back;
  }
};

}  // namespace pyfilter::cuda
