// SPDX-License-Identifier: BSD-3-Clause
// FpEnvironment: the codecs' arithmetic is IEEE 754 with round-to-nearest and subnormals. Programs built with
// -ffast-math, and some BLAS, set flush-to-zero or another rounding mode for their thread. FpEnvironment sets the
// default for its lifetime, then restores the caller's state with its sticky exception flags.
#pragma once

#if defined(__x86_64__)
#include <xmmintrin.h>
#elif defined(__aarch64__)
#include <cstdint>
#endif

namespace pyfilter {

class FpEnvironment {
 public:
#if defined(__x86_64__)
  FpEnvironment() : saved_(_mm_getcsr()) { _mm_setcsr(0x1F80u); }  // all exceptions masked, nearest, no FTZ, no DAZ
  ~FpEnvironment() { _mm_setcsr(saved_); }

 private:
  unsigned saved_;
#elif defined(__aarch64__)
  FpEnvironment() {
    asm volatile("mrs %0, fpcr" : "=r"(saved_));
    asm volatile("msr fpcr, %0" : : "r"(std::uint64_t{0}));
  }
  ~FpEnvironment() { asm volatile("msr fpcr, %0" : : "r"(saved_)); }

 private:
  std::uint64_t saved_;
#else
#error "FpEnvironment: add this processor's floating-point control register"
#endif

 public:
  FpEnvironment(const FpEnvironment&) = delete;
  FpEnvironment& operator=(const FpEnvironment&) = delete;
};

}  // namespace pyfilter
