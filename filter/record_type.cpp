// SPDX-License-Identifier: BSD-3-Clause
// Takes compound types apart (record_type.hpp).
#include "filter/record_type.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>

#include "core/error_text.hpp"
#include "core/records.hpp"

namespace pyfilter::filter {
namespace {

constexpr int kDeepest = 64;  // compounds in compounds

bool can_look_into(const Hdf5& hdf5) {
  return hdf5.H5Tget_nmembers != nullptr && hdf5.H5Tget_member_type != nullptr &&
         hdf5.H5Tget_member_offset != nullptr && hdf5.H5Tget_member_name != nullptr && hdf5.H5Tclose != nullptr &&
         hdf5.H5Tget_super != nullptr && hdf5.H5Tget_array_ndims != nullptr && hdf5.H5Tget_array_dims2 != nullptr &&
         hdf5.H5Tis_variable_str != nullptr;
}

std::string member_name(const Hdf5& hdf5, hid_t type, unsigned member) {
  char* const given = hdf5.H5Tget_member_name(type, member);
  if (given == nullptr) return {};
  std::string name(given);
  if (hdf5.H5free_memory != nullptr)
    hdf5.H5free_memory(given);
  else
    std::free(given);
  return name;
}

// h5py's and netCDF4's complex numbers.
ElementType named_complex(const Hdf5& hdf5, hid_t type) {
  const ElementType found = complex_pair(hdf5, type);
  const bool named =
      found.dtype != Dtype::none && member_name(hdf5, type, 0) == "r" && member_name(hdf5, type, 1) == "i";
  return named ? found : ElementType{};
}

Status unreadable() { return fail(Code::internal, "HDF5 did not describe the compound type"); }

Status refuse(const std::string& name, const char* what) {
  return fail(Code::unsupported,
              "field '%.80s' is %s, whose values are elsewhere in the file: such records cannot be compressed",
              name.c_str(), what);
}

class Walk {
 public:
  Walk(const Hdf5& hdf5, std::vector<Field>* fields) : hdf5_(hdf5), fields_(fields) {}

  // Adds the members of a compound type that begins `offset` bytes into the record.
  Status members(hid_t type, const std::string& prefix, std::uint64_t offset, int depth) {
    const int count = hdf5_.H5Tget_nmembers(type);
    if (count < 0 || depth > kDeepest) return unreadable();
    for (unsigned i = 0; i < static_cast<unsigned>(count); ++i) {
      const MadeType member(hdf5_, hdf5_.H5Tget_member_type(type, i));
      if (member.id() < 0) return unreadable();
      PYF_TRY(field(member.id(), prefix + member_name(hdf5_, type, i), offset + hdf5_.H5Tget_member_offset(type, i),
                    depth));
    }
    return kOk;
  }

 private:
  Status field(hid_t type, std::string name, std::uint64_t offset, int depth) {
    const int type_class = hdf5_.H5Tget_class(type);
    const std::size_t bytes = hdf5_.H5Tget_size(type);
    if (type_class == kClassCompound && named_complex(hdf5_, type).dtype == Dtype::none)
      return members(type, name + ".", offset, depth + 1);
    if (bytes == 0 || bytes > UINT32_MAX) return unreadable();
    Field found;
    PYF_TRY(check_plain(type, name, depth));
    PYF_TRY(element(type, &found, depth));
    if (found.element.dtype == Dtype::none) found.dims.clear();
    found.name = std::move(name);
    found.offset = offset;
    found.bytes = static_cast<std::uint32_t>(bytes);
    fields_->push_back(std::move(found));
    return kOk;
  }

  // The element type of a field, and its dims if it is an array, or an array of arrays.
  Status element(hid_t type, Field* found, int depth) {
    const int type_class = hdf5_.H5Tget_class(type);
    if (type_class == kClassCompound) {
      found->element = named_complex(hdf5_, type);
      return kOk;
    }
    if (type_class != kClassArray) {
      found->element = element_type(hdf5_, type);
      return kOk;
    }
    std::array<hsize_t, kMaxRank> dims{};
    const int rank = hdf5_.H5Tget_array_ndims(type);
    if (rank < 1 || rank > kMaxRank || depth > kDeepest || hdf5_.H5Tget_array_dims2(type, dims.data()) < 0)
      return unreadable();
    found->dims.insert(found->dims.end(), dims.begin(), dims.begin() + rank);
    const MadeType base(hdf5_, hdf5_.H5Tget_super(type));
    if (base.id() < 0) return unreadable();
    PYF_TRY(element(base.id(), found, depth + 1));
    if (found->dims.size() > static_cast<std::size_t>(kMaxRank)) found->element = {};
    return kOk;
  }

  // Refuses types with values that are not in the record.
  Status check_plain(hid_t type, const std::string& name, int depth) {
    const int type_class = hdf5_.H5Tget_class(type);
    if (depth > kDeepest) return unreadable();
    if (type_class == kClassVariable) return refuse(name, "of variable length");
    if (type_class == kClassReference) return refuse(name, "a reference");
    if (type_class == kClassString && hdf5_.H5Tis_variable_str(type) != 0)
      return refuse(name, "text of variable length");
    if (type_class == kClassArray) {
      const MadeType base(hdf5_, hdf5_.H5Tget_super(type));
      return base.id() < 0 ? unreadable() : check_plain(base.id(), name, depth + 1);
    }
    const int count = type_class == kClassCompound ? hdf5_.H5Tget_nmembers(type) : 0;
    for (unsigned i = 0; i < static_cast<unsigned>(std::max(count, 0)); ++i) {
      const MadeType member(hdf5_, hdf5_.H5Tget_member_type(type, i));
      if (member.id() < 0) return unreadable();
      PYF_TRY(check_plain(member.id(), name + "." + member_name(hdf5_, type, i), depth + 1));
    }
    return kOk;
  }

  const Hdf5& hdf5_;
  std::vector<Field>* fields_;
};

Field gap(std::uint64_t begin, std::uint64_t end) {
  Field field;
  field.offset = begin;
  field.bytes = static_cast<std::uint32_t>(end - begin);
  return field;
}

}  // namespace

Status read_fields(const Hdf5& hdf5, hid_t type, std::vector<Field>* fields) {
  fields->clear();
  const std::size_t record = hdf5.H5Tget_size(type);
  if (hdf5.H5Tget_class(type) != kClassCompound)
    return fail(Code::unsupported,
                "cd_values of records (pyfilter.Compound) are for compound types, the dataset's type is %s: give the "
                "codec itself",
                class_name(hdf5, type));
  if (!can_look_into(hdf5) || record > UINT32_MAX)
    return fail(Code::unsupported, "the HDF5 library does not describe compound types, or records have 4 GiB or more");
  if (named_complex(hdf5, type).dtype != Dtype::none)
    return fail(Code::unsupported, "complex numbers are no records: give the codec itself");
  std::vector<Field> found;
  PYF_TRY(Walk(hdf5, &found).members(type, "", 0, 0));
  std::stable_sort(found.begin(), found.end(), [](const Field& a, const Field& b) { return a.offset < b.offset; });
  std::uint64_t end = 0;
  for (Field& field : found) {
    if (field.offset < end || field.offset > record || record - field.offset < field.bytes) return unreadable();
    if (field.offset > end) fields->push_back(gap(end, field.offset));
    end = field.offset + field.bytes;
    fields->push_back(std::move(field));
  }
  if (end < record) fields->push_back(gap(end, record));
  if (fields->empty() || fields->size() > kMaxColumns)
    return fail(Code::unsupported, "records of %zu fields, allowed: 1 to %zu", fields->size(), kMaxColumns);
  return kOk;
}

}  // namespace pyfilter::filter
