// SPDX-License-Identifier: BSD-3-Clause
// What C asks for (c_api.h), checked and translated.
#pragma once

#include "core/request.hpp"
#include "filter/c_api.h"

namespace pyfilter::filter {

Status to_request(const pyf_request* from, Request* to);

}  // namespace pyfilter::filter
