// SPDX-License-Identifier: BSD-3-Clause
// What the files of HierarchicalDelta on the CPU have for one another: each compiles some maps, coders.cpp chooses.
#pragma once

#include "core/target.hpp"
#include "stages/packed/plan.hpp"

PYF_BEGIN_TARGET

const TileCoder* packed_coder_f32(const PackedPlan& plan);
const TileCoder* packed_coder_f64(const PackedPlan& plan);
const TileCoder* pointwise_coder_f32(const PackedPlan& plan);
const TileCoder* pointwise_coder_f64(const PackedPlan& plan);
const TileCoder* integer_coder(const PackedPlan& plan);

PYF_END_TARGET
