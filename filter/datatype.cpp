// SPDX-License-Identifier: BSD-3-Clause
// Recognises datatypes (datatype.hpp) by comparing them with HDF5's own, whatever the byte order.
#include "filter/datatype.hpp"

#include <iterator>

#include "core/error_text.hpp"
#include "core/request.hpp"

namespace pyfilter::filter {
namespace {

struct TypeName {
  Dtype dtype;
  const char* little;
  const char* big;
};

constexpr TypeName kTypes[] = {
    {Dtype::f32, "H5T_IEEE_F32LE_g", "H5T_IEEE_F32BE_g"}, {Dtype::f64, "H5T_IEEE_F64LE_g", "H5T_IEEE_F64BE_g"},
    {Dtype::i8, "H5T_STD_I8LE_g", "H5T_STD_I8BE_g"},      {Dtype::u8, "H5T_STD_U8LE_g", "H5T_STD_U8BE_g"},
    {Dtype::i16, "H5T_STD_I16LE_g", "H5T_STD_I16BE_g"},   {Dtype::u16, "H5T_STD_U16LE_g", "H5T_STD_U16BE_g"},
    {Dtype::i32, "H5T_STD_I32LE_g", "H5T_STD_I32BE_g"},   {Dtype::u32, "H5T_STD_U32LE_g", "H5T_STD_U32BE_g"},
    {Dtype::i64, "H5T_STD_I64LE_g", "H5T_STD_I64BE_g"},   {Dtype::u64, "H5T_STD_U64LE_g", "H5T_STD_U64BE_g"},
};

ElementType plain(const Hdf5& hdf5, hid_t type) {
  for (const TypeName& known : kTypes) {
    if (hdf5.H5Tequal(type, hdf5.global(known.little)) > 0) return {known.dtype, false};
    if (hdf5.H5Tequal(type, hdf5.global(known.big)) > 0) return {known.dtype, dtype_bytes(known.dtype) > 1};
  }
  return {};
}

// IEEE 754 binary16 and bfloat16, which older releases of HDF5 have no names for.
ElementType half(const Hdf5& hdf5, hid_t type) {
  if (hdf5.H5Tget_fields == nullptr || hdf5.H5Tget_ebias == nullptr || hdf5.H5Tget_norm == nullptr ||
      hdf5.H5Tget_order == nullptr || hdf5.H5Tget_size(type) != 2)
    return {};
  std::size_t sign = 0, exponent = 0, exponent_bits = 0, mantissa = 0, mantissa_bits = 0;
  const int order = hdf5.H5Tget_order(type);
  if (hdf5.H5Tget_fields(type, &sign, &exponent, &exponent_bits, &mantissa, &mantissa_bits) < 0 || sign != 15 ||
      mantissa != 0 || exponent != mantissa_bits || hdf5.H5Tget_norm(type) != kNormImplied ||
      (order != kOrderLittle && order != kOrderBig))
    return {};
  const std::size_t bias = hdf5.H5Tget_ebias(type);
  if (exponent_bits == 5 && mantissa_bits == 10 && bias == 15) return {Dtype::f16, order == kOrderBig};
  if (exponent_bits == 8 && mantissa_bits == 7 && bias == 127) return {Dtype::bf16, order == kOrderBig};
  return {};
}

ElementType complex_of(ElementType part) {
  if (part.dtype == Dtype::f32) return {Dtype::c64, part.big_endian};
  if (part.dtype == Dtype::f64) return {Dtype::c128, part.big_endian};
  return {};
}

// The type that an enumeration or HDF5 2's class of complex numbers is made of.
ElementType base_of(const Hdf5& hdf5, hid_t type) {
  if (hdf5.H5Tget_super == nullptr || hdf5.H5Tclose == nullptr) return {};
  const MadeType base(hdf5, hdf5.H5Tget_super(type));
  return base.id() >= 0 ? plain(hdf5, base.id()) : ElementType{};
}

ElementType member_of(const Hdf5& hdf5, hid_t type, unsigned member) {
  const MadeType made(hdf5, hdf5.H5Tget_member_type(type, member));
  return made.id() >= 0 ? plain(hdf5, made.id()) : ElementType{};
}

bool is_exact(const Request& request) {
  return request.bound_mode == Bound::none || (request.bound_mode == Bound::absolute && request.bound == 0);
}

Status refuse(const Hdf5& hdf5, hid_t type, std::uint8_t codec) {
  char allowed[160];
  list_dtypes(find_codec(codec)->dtype_mask, allowed, sizeof allowed);
  return fail(Code::unsupported,
              "cannot compress the dataset's type (%s, %zu bytes a value), allowed: %s. These are IEEE 754 floats, "
              "two's complement integers, and compounds of two equal floats of 32 or 64 bits without gaps, in either "
              "byte order%s",
              class_name(hdf5, type), hdf5.H5Tget_size(type), allowed,
              hdf5.H5Tget_class(type) == kClassCompound
                  ? ". Fields of other compounds take a codec each (pyfilter.Compound; docs/cd_values.md)"
                  : "");
}

}  // namespace

ElementType element_type(const Hdf5& hdf5, hid_t type) {
  const int type_class = hdf5.H5Tget_class(type);
  ElementType found = plain(hdf5, type);
  if (type_class == kClassFloat && found.dtype == Dtype::none) found = half(hdf5, type);
  if (type_class == kClassComplex) found = complex_of(base_of(hdf5, type));
  if (type_class == kClassEnum) {
    found = base_of(hdf5, type);
    found.is_enum = true;
  }
  return found;
}

ElementType complex_pair(const Hdf5& hdf5, hid_t type) {
  if (hdf5.H5Tget_nmembers == nullptr || hdf5.H5Tget_member_type == nullptr || hdf5.H5Tget_member_offset == nullptr ||
      hdf5.H5Tclose == nullptr || hdf5.H5Tget_nmembers(type) != 2)
    return {};
  const ElementType first = member_of(hdf5, type, 0), second = member_of(hdf5, type, 1);
  const std::size_t width = dtype_bytes(first.dtype);
  const bool packed = hdf5.H5Tget_member_offset(type, 0) == 0 && hdf5.H5Tget_member_offset(type, 1) == width &&
                      hdf5.H5Tget_size(type) == 2 * width;
  return first == second && packed ? complex_of(first) : ElementType{};
}

const char* class_name(const Hdf5& hdf5, hid_t type) {
  const int type_class = hdf5.H5Tget_class(type);
  const bool known = type_class >= 0 && static_cast<std::size_t>(type_class) < std::size(kTypeClassNames);
  return known ? kTypeClassNames[type_class] : "unknown class";
}

Status check_enum(const ElementType& type, const Request& request, const char* subject) noexcept {
  if (!type.is_enum || is_exact(request)) return kOk;
  return fail(Code::unsupported,
              "%s an enumeration (such as h5py's bool), whose values must not change. A bound of %g is given, allowed: "
              "codec lossless, or an absolute bound of 0",
              subject, request.bound);
}

Status read_datatype(const Hdf5& hdf5, hid_t type, Request* request) noexcept {
  const ElementType found =
      hdf5.H5Tget_class(type) == kClassCompound ? complex_pair(hdf5, type) : element_type(hdf5, type);
  if (found.dtype == Dtype::none) return refuse(hdf5, type, request->codec);
  PYF_TRY(check_enum(found, *request, "the dataset is of"));
  request->dtype = found.dtype;
  request->source_big_endian = found.big_endian;
  return kOk;
}

}  // namespace pyfilter::filter
