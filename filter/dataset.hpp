// SPDX-License-Identifier: BSD-3-Clause
// Reads a dataset's properties from HDF5, and refuses datasets that the filter cannot handle; for can_apply and
// set_local.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "core/status.hpp"
#include "core/types.hpp"
#include "filter/caller.hpp"
#include "filter/record_words.hpp"

namespace pyfilter::filter {

// Our filter in a dataset's pipeline.
struct PipelineEntry {
  int id = -1;
  unsigned flags = 0;
  std::size_t word_count = 0;  // may be more than there is room for
  std::array<unsigned, kMaxRecordWords> words{};
  std::array<char, 64> name{};
};

struct Dataset {
  Request request;       // codec, bound and parameters from cd_values, the rest from the dataset; fill by read_fill()
  bool stamped = false;  // cd_values are the stored form, of another dataset or of this one
  Dtype stamped_dtype = Dtype::none;  // dtype and fill value in them
  std::uint64_t stamped_fill = 0, stamped_fill_imaginary = 0;
};

// Finds our filter in the pipeline of a dataset, of which it must be the first.
Status open_pipeline(const Hdf5& hdf5, hid_t dcpl, hid_t type, PipelineEntry* ours) noexcept;

// Reads all but the fill value of a dataset that is being created, or is written for the first time since it was
// opened.
Status read_dataset(const Hdf5& hdf5, hid_t dcpl, hid_t type, const PipelineEntry& ours, Dataset* dataset) noexcept;

// Reads the fill value of a dataset that is being created, and what its relative bound must leave out of ranges. Not
// for the property list of an opened dataset, which can_apply may get: HDF5 2.2 crashes in H5Pget_fill_value there.
Status read_fill(const Hdf5& hdf5, hid_t dcpl, hid_t type, Dataset* dataset) noexcept;

// For datasets of records too (record_dataset.hpp).
Status read_chunk_shape(const Hdf5& hdf5, hid_t dcpl, Shape* shape) noexcept;
bool may_be_netcdf(const Hdf5& hdf5, hid_t dcpl) noexcept;
// The error for a bound that depends on the range, where netCDF hides the fill value.
Status hidden_fill() noexcept;
// The bit pattern of a value of `count` bytes.
std::uint64_t bits_of(const std::uint8_t* bytes, std::size_t count, bool big_endian) noexcept;

}  // namespace pyfilter::filter
