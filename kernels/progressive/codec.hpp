// SPDX-License-Identifier: BSD-3-Clause
// Progressive (HP-MDR, PMGARD): integers of a power-of-two step -> coefficients of a hierarchical basis, pass by pass
// (transform.hpp, points.hpp) -> bit planes of tiles of 4096 (tile.hpp) -> segments. New ones of a plane are coded as
// runs by the class of their neighbours. Segments are ordered by the error that their bytes remove (order.hpp), and
// have bounds of the remaining error (layout.hpp). Special values come first (specials.hpp). See FORMAT.md.
#pragma once

#include "core/level.hpp"
#include "progressive/coder.hpp"

namespace pyfilter {

PYF_LEVEL_TABLE(ProgressiveCoder, kProgressiveCoder, progressive_coder)

}  // namespace pyfilter
