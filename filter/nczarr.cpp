// SPDX-License-Identifier: BSD-3-Clause
// NCZarr, netCDF-C's Zarr: the plugin entry point NCZ_get_codec_info. With it netCDF-C 4.8 to 4.10 turn cd_values into
// a codec's JSON and back, and get the stored form of cd_values for a variable. netCDF-C then calls the filter callback
// itself, without HDF5. In .zarray the codec is {"id": "pyfilter", "cd_values": [...]}, the user form
// (docs/cd_values.md).
#include <array>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "core/api.hpp"
#include "core/error_text.hpp"
#include "core/updated_chunk.hpp"
#include "filter/c_api.h"
#include "filter/caller.hpp"
#include "filter/cd_values.hpp"
#include "filter/guard.hpp"
#include "registry_table.hpp"

#include <dlfcn.h>

namespace pyfilter::filter {
namespace {

// netCDF-C's binary interface, written out here as hdf5_abi.hpp does for HDF5 (netcdf.h, netcdf_filter_build.h).
constexpr int kNcOk = 0, kNcFilterError = -132, kNcNoMemory = -61, kNcBadArgument = -36;
constexpr int kCodecVersion = 1, kCodecSort = 1;  // NCZ_CODEC_CLASS_VER, NCZ_CODEC_HDF5
constexpr int kNcChunked = 0, kNcEndianBig = 2;
constexpr std::size_t kMaxFilters = 64;
constexpr const char* kFillAttribute = "_FillValue";

struct CodecClass {
  int version;
  int sort;
  const char* id;
  unsigned hdf5_id;
  void (*initialize)();
  void (*finalize)();
  int (*codec_to_hdf5)(const char* codec, std::size_t* word_count, unsigned** words);
  int (*hdf5_to_codec)(std::size_t word_count, const unsigned* words, char** codec);
  int (*modify_parameters)(int ncid, int varid, std::size_t* visible_count, unsigned** visible,
                           std::size_t* working_count, unsigned** working);
};

// The functions of the libnetcdf that holds `address`.
struct Netcdf {
  explicit Netcdf(const void* address) {
    Dl_info info{};
    if (dladdr(address, &info) == 0 || info.dli_fname == nullptr) return;
    find(info, "nc_inq_libvers", inq_libvers);
    find(info, "nc_inq_vartype", inq_vartype);
    find(info, "nc_inq_varndims", inq_varndims);
    find(info, "nc_inq_var_chunking", inq_var_chunking);
    find(info, "nc_inq_var_fill", inq_var_fill);
    find(info, "nc_inq_att", inq_att);
    find(info, "nc_get_att", get_att);
    find(info, "nc_inq_var_endian", inq_var_endian);
    find(info, "nc_inq_var_filter_ids", inq_var_filter_ids);
  }

  // Later releases may hand other arguments to the functions of CodecClass under the same version number.
  [[nodiscard]] bool known() const {
    int major = 0, minor = 0;
    if (inq_libvers == nullptr || std::sscanf(inq_libvers(), "%d.%d", &major, &minor) != 2) return false;
    return major == 4 && minor >= 8 && minor <= 10;
  }
  [[nodiscard]] bool complete() const {
    return inq_vartype && inq_varndims && inq_var_chunking && inq_var_fill && inq_att && get_att && inq_var_endian &&
           inq_var_filter_ids;
  }

  const char* (*inq_libvers)() = nullptr;
  int (*inq_vartype)(int, int, int*) = nullptr;
  int (*inq_varndims)(int, int, int*) = nullptr;
  int (*inq_var_chunking)(int, int, int*, std::size_t*) = nullptr;
  int (*inq_var_fill)(int, int, int*, void*) = nullptr;
  int (*inq_att)(int, int, const char*, int*, std::size_t*) = nullptr;
  int (*get_att)(int, int, const char*, void*) = nullptr;
  int (*inq_var_endian)(int, int, int*) = nullptr;
  int (*inq_var_filter_ids)(int, int, std::size_t*, unsigned*) = nullptr;

 private:
  template <class Function>
  static void find(const Dl_info& module, const char* name, Function& function) {
    function = reinterpret_cast<Function>(loaded_symbol(module.dli_fname, name));
  }
};

// nc_type, in order from NC_BYTE (1) to NC_UINT64 (11); NC_CHAR is not supported.
constexpr Dtype kTypes[] = {Dtype::i8, {},         Dtype::i16, Dtype::i32, Dtype::f32, Dtype::f64,
                            Dtype::u8, Dtype::u16, Dtype::u32, Dtype::i64, Dtype::u64};

bool is_of_type(int type, Dtype dtype) {
  return type >= 1 && static_cast<std::size_t>(type) <= std::size(kTypes) && kTypes[type - 1] == dtype;
}

Status read_type(const Netcdf& netcdf, int ncid, int varid, Request* request) {
  int type = 0, endian = 0;
  if (netcdf.inq_vartype(ncid, varid, &type) != kNcOk || netcdf.inq_var_endian(ncid, varid, &endian) != kNcOk)
    return fail(Code::internal, "netCDF did not report the variable's type");
  if (type < 1 || static_cast<std::size_t>(type) > std::size(kTypes) || kTypes[type - 1] == Dtype{})
    return fail(Code::unsupported, "cannot compress the variable's type: netCDF's number %d", type);
  request->dtype = kTypes[type - 1];
  request->source_big_endian = endian == kNcEndianBig && dtype_bytes(request->dtype) > 1;
  return kOk;
}

Status read_chunk_shape(const Netcdf& netcdf, int ncid, int varid, Shape* shape) {
  std::array<std::size_t, 1024> dims{};  // NC_MAX_VAR_DIMS
  int storage = 0;
  *shape = {};
  if (netcdf.inq_varndims(ncid, varid, &shape->rank) != kNcOk ||
      netcdf.inq_var_chunking(ncid, varid, &storage, dims.data()) != kNcOk)
    return fail(Code::internal, "netCDF did not report the chunk's shape");
  if (storage != kNcChunked || shape->rank < 1 || shape->rank > kMaxRank)
    return fail(Code::unsupported, "a chunked variable of 1 to %d dimensions is needed", kMaxRank);
  for (int i = 0; i < shape->rank; ++i) {
    const auto at = static_cast<std::size_t>(i);
    shape->dims[at] = dims[at];
  }
  return kOk;
}

Status read_fill(const Netcdf& netcdf, int ncid, int varid, Request* request) {
  std::array<unsigned char, 16> value{};
  int no_fill = 0;
  if (netcdf.inq_var_fill(ncid, varid, &no_fill, value.data()) != kNcOk)
    return fail(Code::internal, "netCDF did not report the fill value");
  request->has_fill = true;
  request->fill = 0;
  // in mode "no fill" a variable may have the attribute all the same, as what nccopy writes
  int type = 0;
  std::size_t length = 0;
  const bool known = no_fill == 0 || (netcdf.inq_att(ncid, varid, kFillAttribute, &type, &length) == kNcOk &&
                                      is_of_type(type, request->dtype) && length == 1 &&
                                      netcdf.get_att(ncid, varid, kFillAttribute, value.data()) == kNcOk);
  if (known) std::memcpy(&request->fill, value.data(), dtype_bytes(request->dtype));
  request->without_zeros = no_fill != 0 && request->fill != 0 && follows_range(request->bound_mode);
  return kOk;
}

Status check_first(const Netcdf& netcdf, int ncid, int varid) {
  std::array<unsigned, kMaxFilters> ids{};
  std::size_t count = 0;
  if (netcdf.inq_var_filter_ids(ncid, varid, &count, nullptr) != kNcOk || count > kMaxFilters ||
      netcdf.inq_var_filter_ids(ncid, varid, &count, ids.data()) != kNcOk)
    return fail(Code::internal, "netCDF did not report the variable's filters");
  if (count > 0 && ids[0] != registry::kFilterId)
    return fail(Code::invalid_argument, "filter %u stands before %s: %s must be the first filter", ids[0],
                registry::kFilterName, registry::kFilterName);
  return kOk;
}

Status resolve(const Netcdf& netcdf, int ncid, int varid, const unsigned* words, std::size_t count, Words* stored) {
  if (!netcdf.complete()) return fail(Code::unsupported, "cannot see the functions of the calling libnetcdf");
  Request request;
  PYF_TRY(check_first(netcdf, ncid, varid));
  PYF_TRY(parse_words(words, count, &request));
  PYF_TRY(read_type(netcdf, ncid, varid, &request));
  PYF_TRY(read_chunk_shape(netcdf, ncid, varid, &request.shape));
  PYF_TRY(read_fill(netcdf, ncid, varid, &request));
  PYF_TRY(check_request(request));
  if (max_frame_bytes(request) == 0) return fail(Code::unsupported, "the chunk is too large: use smaller chunks");
  *stored = stored_words(request);
  return kOk;
}

const char* skip(const char* at, char expected) {
  if (at == nullptr) return nullptr;
  while (*at == ' ' || *at == '\t' || *at == '\n' || *at == '\r') ++at;
  if (expected == '\0') return at;
  return *at == expected ? at + 1 : nullptr;
}

// {"id": "pyfilter", "cd_values": [1, 1, 1, 0, 0, 0]}: netCDF has checked that it is JSON and has this id.
Status parse_codec(const char* text, Words* words) {
  constexpr const char* kKey = "\"cd_values\"";
  const char* at = text != nullptr ? std::strstr(text, kKey) : nullptr;
  at = skip(skip(at != nullptr ? at + std::strlen(kKey) : nullptr, ':'), '[');
  while (at != nullptr && words->count < kMaxWords) {
    at = skip(at, '\0');
    unsigned word = 0;
    const auto found = std::from_chars(at, at + std::strlen(at), word);
    if (found.ec != std::errc{}) break;
    words->values[words->count++] = word;
    if (skip(found.ptr, ']') != nullptr) {
      Request request;
      return parse_words(words->values.data(), words->count, &request);
    }
    at = skip(found.ptr, ',');
  }
  return fail(Code::invalid_argument, "the codec %.200s needs a list of at most %zu cd_values, integers of 32 bits",
              text != nullptr ? text : "", kMaxWords);
}

Status write_codec(const unsigned* words, std::size_t count, char** out) {
  Request request;
  PYF_TRY(parse_words(words, count, &request));
  const Words user = user_words(request);
  std::array<char, 256> text{};
  const int size = std::snprintf(text.data(), text.size(), "{\"id\": \"%s\", \"cd_values\": [%u, %u, %u, %u, %u, %u]}",
                                 registry::kFilterName, user.values[0], user.values[1], user.values[2], user.values[3],
                                 user.values[4], user.values[5]);
  if (size < 0 || static_cast<std::size_t>(size) >= text.size())
    return fail(Code::internal, "the codec's JSON is longer than 255 bytes");
  *out = static_cast<char*>(std::malloc(text.size()));  // netCDF frees it, and the words too
  if (*out == nullptr) return fail(Code::no_memory, "no memory for a codec");
  std::memcpy(*out, text.data(), text.size());
  return kOk;
}

Status hand_over(const Words& words, std::size_t* count, unsigned** out) {
  auto* const memory = static_cast<unsigned*>(std::malloc(words.count * sizeof(unsigned)));
  if (memory == nullptr) return fail(Code::no_memory, "no memory for cd_values");
  std::memcpy(memory, words.values.data(), words.count * sizeof(unsigned));
  *out = memory;
  *count = words.count;
  return kOk;
}

int number_of(Status status) {
  if (status.ok()) return kNcOk;
  if (status.code == Code::no_memory) return kNcNoMemory;
  return status.code == Code::invalid_argument || status.code == Code::unsupported ? kNcBadArgument : kNcFilterError;
}

extern "C" {
int pyfilter_codec_to_hdf5(const char* codec, std::size_t* word_count, unsigned** words) {
  return number_of(guarded([&] {
    Words found;
    PYF_TRY(parse_codec(codec, &found));
    return hand_over(found, word_count, words);
  }));
}

int pyfilter_hdf5_to_codec(std::size_t word_count, const unsigned* words, char** codec) {
  return number_of(guarded([&] { return write_codec(words, word_count, codec); }));
}

[[gnu::noinline]] int pyfilter_modify_parameters(int ncid, int varid, std::size_t* visible_count, unsigned** visible,
                                                 std::size_t* working_count, unsigned** working) {
  const void* const caller = PYF_RETURN_ADDRESS();
  return number_of(guarded([&] {
    Words stored;
    PYF_TRY(resolve(Netcdf(caller), ncid, varid, *visible, *visible_count, &stored));
    return hand_over(stored, working_count, working);
  }));
}
}

constexpr CodecClass kCodecClass{
    .version = kCodecVersion,
    .sort = kCodecSort,
    .id = registry::kFilterName,
    .hdf5_id = registry::kFilterId,
    .initialize = nullptr,
    .finalize = nullptr,
    .codec_to_hdf5 = pyfilter_codec_to_hdf5,
    .hdf5_to_codec = pyfilter_hdf5_to_codec,
    .modify_parameters = pyfilter_modify_parameters,
};

}  // namespace

extern "C" {
// Returns NULL to a netCDF-C whose interface is not known; it then reports that it has no such codec.
[[gnu::noinline]] PYF_API const void* NCZ_get_codec_info(void) {
  return Netcdf(PYF_RETURN_ADDRESS()).known() ? &kCodecClass : nullptr;
}
}

}  // namespace pyfilter::filter
