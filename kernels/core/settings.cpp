// SPDX-License-Identifier: BSD-3-Clause
// CPU level, thread count and backend, from the environment, the machine and set_*() (settings.hpp, api.hpp).
#include "core/settings.hpp"

#include <atomic>
#include <cstdlib>
#include <cstring>

#include "core/api.hpp"
#include "core/cuda/driver.hpp"
#include "core/error_text.hpp"
#include "core/level.hpp"
#include "core/threads.hpp"

namespace pyfilter {
namespace {

constexpr int kMaxThreads = 1024;

struct Level {
  const char* name;
  int index;  // in tables of levels (level.hpp)
  bool (*runs_here)();
};

#define PYF_LEVEL_PLACE(level, prefix) prefix##level,
enum Place : int { PYF_EACH_LEVEL(PYF_LEVEL_PLACE, place_) };

bool always() { return true; }
#if defined(PYF_HAVE_X86_LEVELS) || defined(PYF_HAVE_AVX2) || defined(PYF_HAVE_AVX512)
bool has_avx2() {
  __builtin_cpu_init();
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi") &&
         __builtin_cpu_supports("bmi2") && __builtin_cpu_supports("popcnt");
}
#endif
#if defined(PYF_HAVE_X86_LEVELS) || defined(PYF_HAVE_AVX512)
// Ice Lake, Zen 4 and later: AVX-512 with VBMI, VBMI2, VPOPCNTDQ and GFNI. Older AVX-512 processors run the avx2 level.
bool has_avx512() {
  return has_avx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
         __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512vbmi") &&
         __builtin_cpu_supports("avx512vbmi2") && __builtin_cpu_supports("avx512vpopcntdq") &&
         __builtin_cpu_supports("gfni");
}
#endif

// Best first.
const Level kLevels[] = {
#if defined(PYF_HAVE_X86_LEVELS) || defined(PYF_HAVE_AVX512)
    {"avx512", place_avx512, &has_avx512},
#endif
#if defined(PYF_HAVE_X86_LEVELS) || defined(PYF_HAVE_AVX2)
    {"avx2", place_avx2, &has_avx2},
#endif
    {"baseline", place_baseline, &always},
};

const Level* find_level(const char* name) {
  for (const Level& level : kLevels)
    if ((std::strcmp(name, "auto") == 0 || std::strcmp(name, level.name) == 0) && level.runs_here()) return &level;
  return nullptr;
}

const Level* first_level() {
  const char* wanted = std::getenv("PYFILTER_CPU");
  const Level* level = wanted != nullptr ? find_level(wanted) : nullptr;
  return level != nullptr ? level : find_level("auto");
}

int threads_of_environment() {
  const char* wanted = std::getenv("PYFILTER_NUM_THREADS");
  if (wanted == nullptr) return 0;
  char* end = nullptr;
  const long n = std::strtol(wanted, &end, 10);
  return end != wanted && *end == '\0' && n >= 0 && n <= kMaxThreads ? static_cast<int>(n) : 0;
}

std::atomic<const Level*>& chosen_level() {
  static std::atomic<const Level*> level{first_level()};
  return level;
}

std::atomic<int>& threads_in_use() {
  static std::atomic<int> threads{threads_of_environment()};
  return threads;
}

thread_local int local_threads = 0;

constexpr const char* kBackends[] = {"auto", "cpu", "cuda"};

bool find_backend(const char* name, Backend* backend) {
  for (int i = 0; i < 3; ++i) {
    if (std::strcmp(name, kBackends[i]) != 0) continue;
    *backend = static_cast<Backend>(i);
    return true;
  }
  return false;
}

std::atomic<Backend>& backend_in_use() {
  static std::atomic<Backend> backend{[] {
    const char* wanted = std::getenv("PYFILTER_BACKEND");
    Backend found = Backend::automatic;
    if (wanted != nullptr) find_backend(wanted, &found);
    return found;
  }()};
  return backend;
}

}  // namespace

int level_in_use() noexcept { return chosen_level().load()->index; }

int resolved_threads() noexcept {
  if (works_beside_others()) return 1;
  int threads = local_threads != 0 ? local_threads : threads_in_use().load();
  if (threads == 0) {
    static const int cores = available_cores();
    threads = cores;
  }
  return threads;
}

Status set_thread_count(int count) noexcept {
  if (count < 0 || count > kMaxThreads)
    return fail(Code::invalid_argument, "threads is %d, allowed: 0 (one per core) to %d", count, kMaxThreads);
  threads_in_use().store(count);
  return kOk;
}

int thread_count() noexcept { return resolved_threads(); }

Status set_local_thread_count(int count) noexcept {
  if (count < 0 || count > kMaxThreads)
    return fail(Code::invalid_argument, "local_threads is %d, allowed: 0 to %d", count, kMaxThreads);
  local_threads = count;
  return kOk;
}

Status set_cpu_level(const char* name) noexcept {
  const Level* level = name != nullptr ? find_level(name) : nullptr;
  if (level == nullptr)
    return fail(Code::invalid_argument, "cpu_level is %s, allowed on this machine: auto, baseline%s%s",
                name == nullptr ? "null" : name, find_level("avx2") != nullptr ? ", avx2" : "",
                find_level("avx512") != nullptr ? ", avx512" : "");
  chosen_level().store(level);
  return kOk;
}

Backend backend() noexcept { return backend_in_use().load(); }

Status set_backend(const char* name) noexcept {
  Backend wanted;
  if (name == nullptr || !find_backend(name, &wanted))
    return fail(Code::invalid_argument, "backend is \"%s\", allowed: auto, cpu, cuda", name == nullptr ? "" : name);
  int devices = 0;
  if (wanted == Backend::cuda) PYF_TRY(cuda_device_count(&devices));
  backend_in_use().store(wanted);
  return kOk;
}

const char* backend_name() noexcept { return kBackends[static_cast<int>(backend())]; }

bool prefers_cuda() noexcept { return backend() == Backend::cuda && has_cuda(); }

const char* cpu_level() noexcept { return chosen_level().load()->name; }

}  // namespace pyfilter
