// SPDX-License-Identifier: BSD-3-Clause
// Every entry point of the library runs in guarded(): it sets the floating-point environment for the codecs and turns
// exceptions into a Status.
#pragma once

#include <exception>
#include <new>

#include "core/api.hpp"
#include "core/error_text.hpp"
#include "core/fp_environment.hpp"
#include "filter/error_report.hpp"

namespace pyfilter::filter {

// Runs `body`, which returns a Status.
template <class Body>
Status guarded(Body&& body) noexcept {
  const FpEnvironment environment;
  try {
    return body();
  } catch (const std::bad_alloc&) {
    return fail(Code::no_memory, "out of memory");
  } catch (const std::exception& error) {
    return fail(Code::internal, "internal error: %s", error.what());
  } catch (...) {
    return fail(Code::internal, "internal error");
  }
}

// The same for a callback of HDF5: on failure it pushes the error's text onto HDF5's error stack. True on success.
template <class Body>
bool guarded_callback(const Hdf5& hdf5, const char* where, Body&& body) noexcept {
  const Status status = guarded(static_cast<Body&&>(body));
  if (!status.ok()) push_error(hdf5, where, status.code);
  return status.ok();
}

}  // namespace pyfilter::filter
