// SPDX-License-Identifier: BSD-3-Clause
// Steps of packed tiles for all tile shapes and widths of codes. Compiled once per level (core/target.hpp).
#define PYF_MAKES_TILE_INSTANCES 1
#include "stages/packed/tile_instances.hpp"

PYF_BEGIN_TARGET

PYF_TILE_INSTANCES(template)

PYF_END_TARGET
