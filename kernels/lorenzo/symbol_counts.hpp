// SPDX-License-Identifier: BSD-3-Clause
// The tables of a chunk of streams (docs/format.md, section 8), on the CPU: chosen and written before groups are
// encoded, read before they are decoded.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/status.hpp"
#include "core/types.hpp"
#include "lorenzo/plan.hpp"
#include "lorenzo/round_tables.hpp"

namespace pyfilter {

// Counts the symbols of a sample of the chunk's tiles and makes a model of the counts. plan.unit_tiles must be 1.
Status make_entropy_model(const StreamPlan& plan, const GroupCoder& coder, const void* values,
                          EntropyModel* model) noexcept;

}  // namespace pyfilter
