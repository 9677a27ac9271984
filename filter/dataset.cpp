// SPDX-License-Identifier: BSD-3-Clause
// Property list and datatype of a dataset -> Request (dataset.hpp).
#include "filter/dataset.hpp"

#include <array>

#include "core/api.hpp"
#include "core/error_text.hpp"
#include "core/request.hpp"
#include "core/updated_chunk.hpp"
#include "filter/cd_values.hpp"
#include "filter/datatype.hpp"
#include "filter/fill_value.hpp"
#include "registry_table.hpp"

namespace pyfilter::filter {
namespace {

constexpr int kFilterId = static_cast<int>(registry::kFilterId);

bool read_entry(const Hdf5& hdf5, hid_t dcpl, unsigned index, PipelineEntry* entry) {
  unsigned config = 0;
  *entry = {};
  entry->word_count = entry->words.size();  // becomes the number of words
  entry->id = hdf5.H5Pget_filter2(dcpl, index, &entry->flags, &entry->word_count, entry->words.data(),
                                  entry->name.size() - 1, entry->name.data(), &config);
  return entry->id >= 0;
}

// Checks that this filter is the first. Shuffled, scaled or compressed bytes are no values, and a checksum before this
// filter (netCDF puts its fletcher32 there) would not match the decoded values.
Status read_pipeline(const Hdf5& hdf5, hid_t dcpl, PipelineEntry* ours) {
  const int count = hdf5.H5Pget_nfilters(dcpl);
  if (count < 1 || !read_entry(hdf5, dcpl, 0, ours))
    return fail(Code::internal, "HDF5 did not report the dataset's filters");
  if (ours->id != kFilterId)
    return fail(Code::invalid_argument,
                "filter '%s' (id %d) stands before %s: %s must be the first filter, put it before '%s'",
                ours->name[0] != '\0' ? ours->name.data() : "unnamed", ours->id, registry::kFilterName,
                registry::kFilterName, ours->name[0] != '\0' ? ours->name.data() : "that one");
  for (int i = 1; i < count; ++i) {
    PipelineEntry other;
    if (read_entry(hdf5, dcpl, static_cast<unsigned>(i), &other) && other.id == kFilterId)
      return fail(Code::invalid_argument, "%s is in the filter pipeline twice (positions 0 and %d), allowed: once",
                  registry::kFilterName, i);
  }
  return kOk;
}

Status read_settings(const PipelineEntry& ours, Request* request) {
  if (ours.word_count > kMaxWords)
    return fail(Code::invalid_argument, "cd_values: %zu words given, at most 6 allowed (%zu in the stored form)",
                ours.word_count, kMaxWords);
  return parse_words(ours.words.data(), ours.word_count, request);
}

Status read_declared_fill(const Hdf5& hdf5, hid_t dcpl, hid_t type, Request* request, bool* declared) {
  int status = 0;
  *declared = false;
  if (hdf5.H5Pfill_value_defined(dcpl, &status) < 0) return fail(Code::internal, "HDF5 did not report the fill value");
  if (status != kFillUserDefined) return kOk;
  *declared = true;
  std::array<std::uint8_t, 16> value{};  // at most a complex number
  if (hdf5.H5Pget_fill_value(dcpl, type, value.data()) < 0)
    return fail(Code::invalid_argument, "HDF5 cannot convert the fill value to the dataset's type");
  const std::size_t width = dtype_bytes(base_dtype(request->dtype));
  request->fill = bits_of(value.data(), width, request->source_big_endian);
  if (is_complex(request->dtype))
    request->fill_imaginary = bits_of(value.data() + width, width, request->source_big_endian);
  return kOk;
}

}  // namespace

Status read_chunk_shape(const Hdf5& hdf5, hid_t dcpl, Shape* shape) noexcept {
  shape->dims = {};
  shape->rank = hdf5.H5Pget_chunk(dcpl, kMaxRank, shape->dims.data());
  if (shape->rank < 1 || shape->rank > kMaxRank) return fail(Code::internal, "HDF5 did not report the chunk's shape");
  return kOk;
}

// Byte i of a little-endian type, or the i-th from the end of a big-endian one, has weight 256^i, whatever the host.
std::uint64_t bits_of(const std::uint8_t* bytes, std::size_t count, bool big_endian) noexcept {
  std::uint64_t bits = 0;
  for (std::size_t i = 0; i < count; ++i) bits |= std::uint64_t{bytes[big_endian ? count - 1 - i : i]} << 8 * i;
  return bits;
}

// netCDF-C tracks the order of attributes of all its datasets; h5py does so only where it is asked to.
bool may_be_netcdf(const Hdf5& hdf5, hid_t dcpl) noexcept {
  unsigned order = 0;
  return hdf5.H5Pget_attr_creation_order(dcpl, &order) >= 0 && (order & kOrderTracked) != 0;
}

Status hidden_fill() noexcept {
  return fail(Code::unsupported,
              "a relative bound needs the fill value, which nccopy, CDO, NCO and netCDF's mode 'no fill' hide from "
              "HDF5. Use an absolute bound, or pyfilter compress");
}

Status open_pipeline(const Hdf5& hdf5, hid_t dcpl, hid_t type, PipelineEntry* ours) noexcept {
  if (!hdf5.open())
    return fail(Code::unsupported,
                "%s cannot see the functions of the HDF5 library (1.10 or newer) that called it. A program "
                "with a static HDF5 must export them (-rdynamic) to write with %s",
                registry::kFilterName, registry::kFilterName);
  if (dcpl < 0 || type < 0) return fail(Code::unsupported, "groups cannot be compressed, only datasets");
  return read_pipeline(hdf5, dcpl, ours);
}

Status read_dataset(const Hdf5& hdf5, hid_t dcpl, hid_t type, const PipelineEntry& ours, Dataset* dataset) noexcept {
  Request& request = dataset->request;
  PYF_TRY(read_settings(ours, &request));
  dataset->stamped = is_stamped(ours.words.data(), ours.word_count);
  dataset->stamped_dtype = request.dtype;
  dataset->stamped_fill = request.fill;
  dataset->stamped_fill_imaginary = request.fill_imaginary;
  PYF_TRY(read_datatype(hdf5, type, &request));
  PYF_TRY(read_chunk_shape(hdf5, dcpl, &request.shape));
  PYF_TRY(check_request(request));
  if (max_frame_bytes(request) == 0) return fail(Code::unsupported, "the chunk is too large: use smaller chunks");
  return kOk;
}

// HDF5 pads edge chunks with the fill value, or with zeros if there is none or it is never written. This padding must
// not widen the range. Programs on netCDF's fill mode "no fill" (nccopy, CDO, NCO, WRF) hide a variable's _FillValue
// from HDF5. nccopy passes the stored words of the file that it copies: their fill value holds. In words of a user
// there is none, so a bound that depends on the range is refused.
Status read_fill(const Hdf5& hdf5, hid_t dcpl, hid_t type, Dataset* dataset) noexcept {
  Request& request = dataset->request;
  bool declared = false;
  request.has_fill = true;
  request.fill = request.fill_imaginary = 0;
  request.without_zeros = false;
  PYF_TRY(read_declared_fill(hdf5, dcpl, type, &request, &declared));
  int fill_time = 0;
  if (hdf5.H5Pget_fill_time(dcpl, &fill_time) < 0) return fail(Code::internal, "HDF5 did not report the fill time");
  const bool of_range = follows_range(request.bound_mode), hidden = !declared && fill_time == kFillTimeNever;
  if (hidden && dataset->stamped) {
    request.fill = convert_fill(dataset->stamped_fill, dataset->stamped_dtype, request.dtype);
    if (dataset->stamped_dtype == request.dtype) request.fill_imaginary = dataset->stamped_fill_imaginary;
  }
  if (hidden && !dataset->stamped && of_range && may_be_netcdf(hdf5, dcpl)) return hidden_fill();
  request.without_zeros = fill_time == kFillTimeNever && (request.fill | request.fill_imaginary) != 0 && of_range;
  return kOk;
}

}  // namespace pyfilter::filter
