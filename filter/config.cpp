// SPDX-License-Identifier: BSD-3-Clause
// pyf_configure and pyf_config (c_api.h): the table of settings, each with its reader and writer.
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "core/api.hpp"
#include "core/cuda/driver.hpp"
#include "core/error_text.hpp"
#include "filter/c_api.h"
#include "filter/guard.hpp"

namespace pyfilter::filter {
namespace {

constexpr int kMaxThreads = 1024;
thread_local int local_threads = 0;
thread_local char number_text[16];

Status parse_threads(const char* key, const char* value, int* count) {
  char* end = nullptr;
  errno = 0;
  const long parsed = std::strtol(value, &end, 10);
  if (end == value || *end != '\0' || errno != 0 || parsed < 0 || parsed > kMaxThreads)
    return fail(Code::invalid_argument, "%s is \"%s\", allowed: 0 (one per core) to %d", key, value, kMaxThreads);
  *count = static_cast<int>(parsed);
  return kOk;
}

const char* number(int value) {
  std::snprintf(number_text, sizeof number_text, "%d", value);
  return number_text;
}

Status set_threads(const char* key, const char* value) {
  int count = 0;
  PYF_TRY(parse_threads(key, value, &count));
  return set_thread_count(count);
}

Status set_local_threads(const char* key, const char* value) {
  int count = 0;
  PYF_TRY(parse_threads(key, value, &count));
  PYF_TRY(set_local_thread_count(count));
  local_threads = count;
  return kOk;
}

Status set_level(const char*, const char* value) { return set_cpu_level(value); }

Status set_backend_of(const char*, const char* value) { return set_backend(value); }

Status set_release(const char*, const char*) { return cuda_release_memory(); }

// Number of usable devices; asking initialises CUDA.
const char* device_count() {
  int count = 0;
  return cuda_device_count(&count).ok() ? number(count) : "0";
}

Status set_never(const char* key, const char*) {
  return fail(Code::invalid_argument, "%s is read-only: it reports what this machine has", key);
}

struct Setting {
  const char* key;
  Status (*set)(const char* key, const char* value);
  const char* (*get)();
};

constexpr Setting kSettings[] = {
    {"threads", set_threads, [] { return number(thread_count()); }},
    {"local_threads", set_local_threads, [] { return number(local_threads); }},
    {"cpu_level", set_level, [] { return cpu_level(); }},
    {"backend", set_backend_of, [] { return backend_name(); }},
    {"cuda", set_never, [] { return has_cuda() ? "1" : "0"; }},
    {"cuda_problem", set_never, cuda_problem},
    {"cuda_devices", set_never, device_count},
    {"release_memory", set_release, [] { return ""; }},
};

const Setting* find_setting(const char* key) {
  for (const Setting& setting : kSettings)
    if (std::strcmp(setting.key, key) == 0) return &setting;
  return nullptr;
}

Status configure(const char* key, const char* value) {
  if (key == nullptr || value == nullptr) return fail(Code::invalid_argument, "key or value is NULL");
  const Setting* const setting = find_setting(key);
  if (setting == nullptr)
    return fail(Code::invalid_argument,
                "unknown setting \"%s\", known: threads, local_threads, cpu_level, backend, "
                "release_memory",
                key);
  return setting->set(key, value);
}

}  // namespace
}  // namespace pyfilter::filter

extern "C" {

int pyf_configure(const char* key, const char* value) {
  return static_cast<int>(pyfilter::filter::guarded([&] { return pyfilter::filter::configure(key, value); }).code);
}

const char* pyf_config(const char* key) {
  const pyfilter::filter::Setting* const setting = key != nullptr ? pyfilter::filter::find_setting(key) : nullptr;
  return setting != nullptr ? setting->get() : nullptr;
}
}
