// SPDX-License-Identifier: BSD-3-Clause
// Compilation targets. Codec sources (in stages/ and the codecs' folders) are compiled once per CPU level. Every such
// translation unit defines PYF_LEVEL (baseline, avx2, avx512) and one of PYF_LEVEL_*. Code between PYF_BEGIN_TARGET and
// PYF_END_TARGET is in the namespace pyfilter::<level> and uses that level's instructions. Headers included before
// PYF_BEGIN_TARGET (the standard library, core/) stay portable. So no inline function of the standard library is ever
// emitted with instructions that the machine may lack.
#pragma once

#if defined(__CUDACC__)
#define KFN __host__ __device__ __forceinline__
#elif defined(__GNUC__) && !defined(PYF_COVERAGE)  // tests/branches counts a function once, not once a call
#define KFN __attribute__((always_inline)) inline
#else
#define KFN inline
#endif

// Large functions, for CPU and GPU, that one thread calls: readers of models. They are not inlined.
#if defined(__CUDACC__)
#define PYF_MODEL __host__ __device__
#else
#define PYF_MODEL
#endif

// CUDA sources take the portable level under a name of their own.
#if defined(__CUDACC__) && !defined(PYF_LEVEL)
#define PYF_LEVEL cuda
#endif
#ifndef PYF_LEVEL
#define PYF_LEVEL baseline
#define PYF_LEVEL_BASELINE 1
#endif

// Every aarch64 has NEON: the baseline there uses it.
#if defined(PYF_LEVEL_BASELINE) && defined(__aarch64__) && !defined(__CUDACC__)
#define PYF_LEVEL_NEON 1
#endif

#if defined(PYF_LEVEL_AVX512)
#define PYF_TARGET_ISA                                                                                                 \
  "avx2,bmi,bmi2,lzcnt,popcnt,fma,avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx512vbmi,avx512vbmi2,avx512vpopcntdq," \
  "gfni"
#elif defined(PYF_LEVEL_AVX2)
#define PYF_TARGET_ISA "avx2,bmi,bmi2,lzcnt,popcnt,fma"
#endif

#define PYF_PRAGMA(text) _Pragma(#text)
#if !defined(PYF_TARGET_ISA)
#define PYF_PUSH_TARGET
#define PYF_POP_TARGET
#elif defined(__clang__)
#define PYF_PUSH_TARGET_(isa) PYF_PRAGMA(clang attribute push(__attribute__((target(isa))), apply_to = function))
#define PYF_PUSH_TARGET PYF_PUSH_TARGET_(PYF_TARGET_ISA)
#define PYF_POP_TARGET _Pragma("clang attribute pop")
#elif defined(PYF_LEVEL_AVX512)
#define PYF_PUSH_TARGET_(isa) PYF_PRAGMA(GCC target(isa ",prefer-vector-width=512"))
#define PYF_PUSH_TARGET _Pragma("GCC push_options") PYF_PUSH_TARGET_(PYF_TARGET_ISA)
#define PYF_POP_TARGET _Pragma("GCC pop_options")
#else
#define PYF_PUSH_TARGET_(isa) PYF_PRAGMA(GCC target(isa))
#define PYF_PUSH_TARGET _Pragma("GCC push_options") PYF_PUSH_TARGET_(PYF_TARGET_ISA)
#define PYF_POP_TARGET _Pragma("GCC pop_options")
#endif

#define PYF_BEGIN_TARGET PYF_PUSH_TARGET namespace pyfilter::PYF_LEVEL {
#define PYF_END_TARGET \
  }                    \
  PYF_POP_TARGET
