// SPDX-License-Identifier: BSD-3-Clause
// Asynchronous copies to shared memory: they complete when their thread waits, no earlier.
#pragma once

#include "cuda_runtime.h"

inline void __pipeline_memcpy_async(void* to, const void* from, std::size_t bytes) {
  simt::copy_later(to, from, bytes);
}
inline void __pipeline_commit() { simt::end_copy_group(); }
inline void __pipeline_wait_prior(std::size_t groups) { simt::copy_groups_now(groups); }
