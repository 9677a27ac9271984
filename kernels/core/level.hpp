// SPDX-License-Identifier: BSD-3-Clause
// Helper for the rooms' cpu.cpp: the TileCoder of one map and the choice of block dimensions.
#pragma once

#include "core/plan.hpp"
#include "core/target.hpp"
#include "stages/tile_decode.hpp"
#include "stages/tile_encode.hpp"

PYF_BEGIN_TARGET

template <class Map, int D>
inline constexpr TileCoder kTileCoder{&encode_tile<Map, D>, &decode_tile<Map, D>};

template <class Map>
inline const TileCoder* tile_coder(int block_dims) {
  switch (block_dims) {
    case 1:
      return &kTileCoder<Map, 1>;
    case 2:
      return &kTileCoder<Map, 2>;
    case 3:
      return &kTileCoder<Map, 3>;
    default:
      return nullptr;
  }
}

const TileCoder* cuszp2_coder(Dtype dtype, int block_dims);
const TileCoder* lossless_coder(Dtype dtype, int block_dims);
const TileCoder* hierarchical_delta_coder(const Plan& plan);
bool integer_range_of(const Request& request, const void* values, std::uint64_t count, std::uint64_t* low,
                      std::uint64_t* high);
const GroupCoder* lorenzo_coder(const Plan& plan);
const ParticleCoder* particle_coder(const Plan& plan);
void sample_predictors_of(const Request& request, const Plan& plan, const void* values, std::uint64_t count,
                          std::uint64_t k, void* scratch, PredictorCosts* costs);
extern const ProgressiveCoder kProgressiveCoder;
StepChoice choose_log_step_of(const Request& request, const void* values, std::uint64_t count);

PYF_END_TARGET
