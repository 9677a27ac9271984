// SPDX-License-Identifier: BSD-3-Clause
// Translates a pyf_request (c_api.h) into a Request and checks its form.
#pragma once

#include "core/request.hpp"
#include "filter/c_api.h"

namespace pyfilter::filter {

Status to_request(const pyf_request* from, Request* to);

}  // namespace pyfilter::filter
