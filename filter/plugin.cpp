// SPDX-License-Identifier: BSD-3-Clause
// The filter as HDF5 sees it: its class, and the two functions that HDF5's plugin loader calls. pyf_register() of
// c_api.h registers it with a libhdf5 that is already loaded.
#include "filter/plugin.hpp"

#include "core/error_text.hpp"
#include "filter/c_api.h"
#include "filter/callbacks.hpp"
#include "filter/caller.hpp"
#include "registry_table.hpp"

namespace pyfilter::filter {
namespace {

constexpr FilterClass kFilterClass{
    .version = kFilterClassVersion,
    .id = static_cast<int>(registry::kFilterId),
    .encoder_present = 1,
    .decoder_present = 1,
    .name = registry::kFilterDescription,
    .can_apply = pyfilter_can_apply,
    .set_local = pyfilter_set_local,
    .filter = pyfilter_filter,
};

}  // namespace

Status register_with(const char* path) noexcept {
  const char* const where = path != nullptr ? path : "the main program";
  void* const symbol = loaded_symbol(path, "H5Zregister");
  if (symbol == nullptr)
    return fail(Code::invalid_argument, "%s is not loaded in this process or is no libhdf5 (it has no H5Zregister)",
                where);
  const auto h5z_register = reinterpret_cast<herr_t (*)(const void*)>(symbol);
  if (h5z_register(&kFilterClass) < 0) return fail(Code::internal, "H5Zregister of %s failed", where);
  return kOk;
}

}  // namespace pyfilter::filter

extern "C" {
PYF_API int H5PLget_plugin_type(void) { return pyfilter::filter::kPluginTypeFilter; }
PYF_API const void* H5PLget_plugin_info(void) { return &pyfilter::filter::kFilterClass; }
}
