// SPDX-License-Identifier: BSD-3-Clause
// The filter callback for datasets of records (compound types): one chunk to one frame and back.
#pragma once

#include <cstddef>

#include "core/status.hpp"
#include "filter/caller.hpp"
#include "filter/chunk.hpp"

namespace pyfilter::filter {

Status encode_records_chunk(const Hdf5& hdf5, const unsigned* words, std::size_t word_count, Chunk& chunk);
Status decode_records_chunk(const Hdf5& hdf5, const unsigned* words, std::size_t word_count, Chunk& chunk);

}  // namespace pyfilter::filter
