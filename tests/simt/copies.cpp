// SPDX-License-Identifier: BSD-3-Clause
// machine.hpp: copies to shared memory, which complete at any time until their thread waits for them.
#include <cstring>
#include <vector>

#include "machine.hpp"
#include "races.hpp"

namespace simt {

namespace {

void note(const Copy& copy) { races::copy(copy.to, copy.from, copy.bytes, copy.zeros); }
void complete(const Copy& copy) {
  const races::Unseen unseen;
  if (copy.bytes != 0) std::memcpy(copy.to, copy.from, copy.bytes);
  if (copy.zeros != 0) std::memset(static_cast<char*>(copy.to) + copy.bytes, 0, copy.zeros);
}
template <class IsDue>
void complete_all(const IsDue& is_due) {
  std::vector<Copy>& copies = self->copies;
  for (const Copy& copy : copies)
    if (is_due(copy)) note(copy), complete(copy);
  const races::Unseen unseen;
  std::erase_if(copies, is_due);
}

}  // namespace

void copy_later(void* to, const void* from, std::size_t bytes, std::size_t zeros) {
  const std::uintptr_t both = reinterpret_cast<std::uintptr_t>(to) | reinterpret_cast<std::uintptr_t>(from);
  if (both % bytes != 0) mistake("a copy of %zu bytes to shared memory that is not aligned", bytes);
  if (zeros > bytes) mistake("%zu zeros in a copy of %zu bytes", zeros, bytes);
  const Copy copy = {to, from, bytes - zeros, zeros, self->copy_groups};
  note(copy);  // at any time from now on
  if (coin()) return complete(copy);
  const races::Unseen unseen;
  self->copies.push_back(copy);
}
void end_copy_group() { ++self->copy_groups; }
void copy_groups_now(std::size_t left) {
  complete_all([&](const Copy& copy) { return copy.group + left < self->copy_groups; });
}
void copy_now() {
  complete_all([](const Copy&) { return true; });
}

}  // namespace simt
