// SPDX-License-Identifier: BSD-3-Clause
// Finds the calling libhdf5 from a return address (caller.hpp). dladdr names the module, dlopen(RTLD_NOLOAD) opens it
// in whatever scope it was loaded, and dlsym gives its functions. A libhdf5 linked into the program itself is found
// through the program's own exported symbols.
#include "filter/caller.hpp"

#include <dlfcn.h>

#include <atomic>
#include <new>

namespace pyfilter::filter {

struct Module {
  const void* base = nullptr;  // load address: identifies a module while it is loaded
  const char* path = nullptr;
};

// Fills an Hdf5 from the symbols of one module.
struct Resolver {
  Hdf5& hdf5;
  const Module& module;

  // Symbols of another module belong to another libhdf5, where our caller's ids are not valid.
  template <class Function>
  bool find(void* symbols, const char* name, Function& function) const {
    void* const symbol = dlsym(symbols, name);
    Dl_info info{};
    const bool same = symbol != nullptr && dladdr(symbol, &info) != 0 && info.dli_fbase == module.base;
    function = same ? reinterpret_cast<Function>(symbol) : nullptr;
    return same;
  }

  bool find_all(void* symbols) const {
    if (symbols == nullptr) return false;
    bool all = true;
#define PYF_FIND(name, result, parameters) all = find(symbols, #name, hdf5.name) && all;
    PYF_HDF5_REQUIRED(PYF_FIND)
#undef PYF_FIND
#define PYF_FIND(name, result, parameters) find(symbols, #name, hdf5.name);
    PYF_HDF5_OPTIONAL(PYF_FIND)
#undef PYF_FIND
    drop_partial_allocator();
    return all;
  }

  // Memory must come from and go back to the same allocator: all three functions or none.
  void drop_partial_allocator() const {
    if (hdf5.H5allocate_memory && hdf5.H5resize_memory && hdf5.H5free_memory) return;
    hdf5.H5allocate_memory = nullptr;
    hdf5.H5resize_memory = nullptr;
    hdf5.H5free_memory = nullptr;
  }

  bool has_wide_ids() const {
    unsigned major = 0, minor = 0, release = 0;
    if (hdf5.H5get_libversion(&major, &minor, &release) < 0) return false;
    return major > 1 || (major == 1 && minor >= 10);
  }

  // Whether the module stays loaded: it was opened here and is never closed.
  bool resolve() const {
    hdf5.program_symbols_ = dlopen(nullptr, RTLD_LAZY);
    hdf5.own_symbols_ = module.path != nullptr ? dlopen(module.path, RTLD_LAZY | RTLD_NOLOAD) : nullptr;
    const bool found = find_all(hdf5.own_symbols_) || find_all(hdf5.program_symbols_);
    hdf5.complete_ = found && has_wide_ids();
    return hdf5.own_symbols_ != nullptr;
  }
};

namespace {

// A module, and the return addresses in it that called us. They are few, and dladdr searches all symbols of a module
// each time. Addresses are kept only for modules that stay loaded because resolve() opened them.
struct Node {
  static constexpr int kCallSites = 8;
  const void* base = nullptr;
  Hdf5 hdf5;
  bool stays = false;
  mutable std::atomic<const void*> call_sites[kCallSites] = {};
  const Node* next = nullptr;

  bool called_from(const void* address) const {
    for (const auto& site : call_sites)
      if (site.load(std::memory_order_relaxed) == address) return true;
    return false;
  }
  void note_call_site(const void* address) const {
    for (auto& site : call_sites) {
      const void* none = nullptr;
      if (stays && site.compare_exchange_strong(none, address, std::memory_order_relaxed)) return;
    }
  }
};

// Modules met so far. Nodes are only ever added, so that readers need no lock.
std::atomic<const Node*> nodes{nullptr};
const Hdf5 kNoHdf5{};

Module module_of(const void* address) {
  Dl_info info{};
  if (dladdr(address, &info) == 0) return {};
  return {info.dli_fbase, info.dli_fname};
}

const Node* find_node(const void* base) {
  for (const Node* node = nodes.load(std::memory_order_acquire); node != nullptr; node = node->next)
    if (node->base == base) return node;
  return nullptr;
}

const Node* find_caller(const void* address) {
  for (const Node* node = nodes.load(std::memory_order_acquire); node != nullptr; node = node->next)
    if (node->called_from(address)) return node;
  return nullptr;
}

hid_t read_id(void* symbols, const char* name) {
  const void* const symbol = symbols != nullptr ? dlsym(symbols, name) : nullptr;
  return symbol != nullptr ? *static_cast<const hid_t*>(symbol) : -1;
}

}  // namespace

const Hdf5& hdf5_of(const void* return_address) noexcept {
  if (const Node* known = find_caller(return_address)) return known->hdf5;
  const Module module = module_of(return_address);
  if (const Node* known = find_node(module.base)) {
    known->note_call_site(return_address);
    return known->hdf5;
  }
  Node* const node = new (std::nothrow) Node;
  if (node == nullptr) return kNoHdf5;
  node->base = module.base;
  node->stays = Resolver{node->hdf5, module}.resolve();
  // Two threads may add the same module at once; the twin does no harm.
  node->next = nodes.load(std::memory_order_relaxed);
  while (!nodes.compare_exchange_weak(node->next, node, std::memory_order_release, std::memory_order_relaxed)) {
  }
  return node->hdf5;
}

// A program that uses such a variable itself holds a copy of it (copy relocation). libhdf5 then fills the copy and
// leaves its own variable at -1. h5dump and h5repack are such programs.
hid_t Hdf5::global(const char* name) const {
  const hid_t own = read_id(own_symbols_, name);
  return own > 0 ? own : read_id(program_symbols_, name);
}

void* loaded_symbol(const char* path, const char* name) noexcept {
  void* const symbols = dlopen(path, path != nullptr ? RTLD_LAZY | RTLD_NOLOAD : RTLD_LAZY);
  if (symbols == nullptr) return nullptr;
  void* const symbol = dlsym(symbols, name);
  dlclose(symbols);
  return symbol;
}

}  // namespace pyfilter::filter
