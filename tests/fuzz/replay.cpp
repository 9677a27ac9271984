// SPDX-License-Identifier: BSD-3-Clause
// A main() for a fuzz target without libFuzzer: runs the files of the given folders. With --mutations=N it then runs N
// inputs that the target's own mutator makes of them; --seed=N selects which. Any compiler will do.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include "support.hpp"

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t most, unsigned seed);

namespace {
using Input = std::vector<std::uint8_t>;
std::minstd_rand dice(1);
constexpr std::size_t kMostBytes = 4096;

Input read(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return Input(std::istreambuf_iterator<char>(file), {});
}
}  // namespace

// In the place of libFuzzer's: bytes changed, put in, taken out.
extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t most) {
  if (size < most && (size == 0 || dice() % 4 == 0)) {
    const std::size_t at = dice() % (size + 1);
    std::memmove(data + at + 1, data + at, size - at);
    data[at] = static_cast<std::uint8_t>(dice() >> 8);
    return size + 1;
  }
  if (size == 0) return 0;
  const std::size_t at = dice() % size;
  if (dice() % 4 != 0) {
    data[at] ^= static_cast<std::uint8_t>(1u << dice() % 8);
    return size;
  }
  std::memmove(data + at, data + at + 1, size - at - 1);
  return size - 1;
}

int main(int count, char** arguments) {
  std::vector<std::filesystem::path> paths;
  unsigned long mutations = 0;
  for (int i = 1; i < count; ++i) {
    if (std::strncmp(arguments[i], "--mutations=", 12) == 0)
      mutations = std::strtoul(arguments[i] + 12, nullptr, 10);
    else if (std::strncmp(arguments[i], "--seed=", 7) == 0)
      dice.seed(static_cast<unsigned>(std::strtoul(arguments[i] + 7, nullptr, 10)));
    else if (std::filesystem::is_directory(arguments[i]))
      for (const auto& entry : std::filesystem::directory_iterator(arguments[i])) paths.push_back(entry.path());
    else
      paths.emplace_back(arguments[i]);
  }
  std::sort(paths.begin(), paths.end());
  std::vector<Input> pool;
  for (const auto& path : paths) {
    pool.push_back(read(path));
    std::fprintf(stderr, "%s\n", path.c_str());  // before it is run: the last line names the culprit
    LLVMFuzzerTestOneInput(pool.back().data(), pool.back().size());
  }
  if (pool.empty()) pool.emplace_back();
  const std::size_t seeds = pool.size();
  for (unsigned long i = 0; i < mutations; ++i) {
    Input input = pool[dice() % pool.size()];
    std::size_t size = std::min(input.size(), kMostBytes);
    input.resize(kMostBytes);
    size = LLVMFuzzerCustomMutator(input.data(), size, kMostBytes, static_cast<unsigned>(dice()));
    input.resize(size);
    if (std::getenv("PYF_FUZZ_SAVE") != nullptr) {
      std::ofstream file(std::getenv("PYF_FUZZ_SAVE"), std::ios::binary);
      file.write(reinterpret_cast<const char*>(input.data()), static_cast<std::streamsize>(size));
    }
    LLVMFuzzerTestOneInput(input.data(), input.size());
    if (dice() % 8 == 0) {  // changes of changes, too
      if (pool.size() < 2 * seeds)
        pool.push_back(input);
      else
        pool[seeds + dice() % seeds] = input;
    }
  }
  std::printf("%zu files, %lu mutations: nothing broken\n", paths.size(), mutations);
  return 0;
}
