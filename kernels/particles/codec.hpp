// SPDX-License-Identifier: BSD-3-Clause
// Particles (GPZ): positions of particles, arrays (N, 2) or (N, 3) -> codes of each coordinate -> segments and offsets
// in the extent of each tile of 4096 particles -> sorted keys of segments as gaps, or as runs and gaps; offsets as bit
// planes. Values and codes are those of cuszp2. Where the order of particles has to be kept and no sorting is seen in
// it, and where keys would not gain, the frame is one of lorenzo. See FORMAT.md.
#pragma once

#include "particles/decode.hpp"
#include "particles/encode.hpp"
#include "particles/order.hpp"
