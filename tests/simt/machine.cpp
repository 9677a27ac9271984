// SPDX-License-Identifier: BSD-3-Clause
// machine.hpp: stacks, scheduling, meetings of threads, memory.
#include "machine.hpp"

#include <sys/mman.h>

#include <atomic>
#include <boost/context/detail/fcontext.hpp>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <utility>
#include <vector>

#include "pages.hpp"
#include "races.hpp"

namespace simt {

namespace context = boost::context::detail;

Thread* self = nullptr;
Grid grid;

namespace {

constexpr std::size_t kStackBytes = std::size_t{256} << 10, kStaticBytes = std::size_t{48} << 10;
constexpr std::size_t kDynamicAlignment = 1024;
// Stacks are used from different places on: at the same place of each, they would be in the same lines of caches.
constexpr std::size_t kStagger = 1088, kStaggered = 32;
constexpr int kPoison = 0xFF;  // floats are NaN

}  // namespace

struct Fiber {
  explicit Fiber(std::size_t number) : unused(number % kStaggered * kStagger) {}

  Thread thread;
  Pages stack{kStackBytes, 0, true};
  std::size_t unused;  // bytes above the first that is used
  context::fcontext_t at = nullptr;
  void* seen_as = races::create();
  bool ended = false;
};

// Two phases alternate: threads wait for one to complete while others already join the next.
struct Phases {
  char phases[2] = {};
  unsigned phase = 0;
};
struct Warp : Phases {
  Met given, found;  // of lanes that arrive, and of those that met last
  std::uint32_t alive = 0;
  Meeting what = Meeting::barrier;
  Fiber* lanes[32] = {};
};

struct Block : Phases {
  Place place;
  unsigned alive = 0;
  Joined joining = {0, 0, 1}, joined = {};
  std::vector<Fiber*> waiting;
  std::vector<Warp> warps;
  std::vector<std::unique_ptr<Fiber>> fibers;
  Pages statics, dynamics;  // shared memory
  std::size_t static_bytes = 0;
  std::map<const void*, std::size_t> static_places;
  char begun = 0, over = 0;  // set before its threads run; set when they have ended
};

namespace {

class Machine;
Machine* machine = nullptr;

// Launches that leave memory to each other; launches of several threads of the system run one after another.
std::mutex turn;
std::atomic<std::uint64_t> launches{0};
std::vector<std::unique_ptr<Fiber>>& idle_fibers() {
  static auto* const all = new std::vector<std::unique_ptr<Fiber>>;
  return *all;
}
std::unique_ptr<Fiber> take_fiber() {
  static std::size_t made = 0;
  if (idle_fibers().empty()) return std::make_unique<Fiber>(made++);
  std::unique_ptr<Fiber> taken = std::move(idle_fibers().back());
  idle_fibers().pop_back();
  return taken;
}

class Machine {
 public:
  explicit Machine(const std::function<void()>& kernel) : kernel_(kernel), random_(seed() + launches++) {}
  ~Machine() {
    for (const auto& block : idle_)
      for (auto& fiber : block->fibers) idle_fibers().push_back(std::move(fiber));
  }

  void run() {
    play();
    for (const auto& block : idle_) races::acquire(&block->over);
  }
  // Called by the running thread: another one runs, if one can.
  void wait() {
    Fiber& own = *running_;
    if (ready_.empty())
      jump(&own, machine_at_, seen_as_);
    else
      resume(&own);
  }
  void pause() {
    ready_.push_back(running_);
    wait();
  }
  void publish(Warp& warp) {
    warp.found = warp.given;
    warp.phase ^= 1;
    for (std::uint32_t left = warp.found.lanes; left != 0; left &= left - 1) {
      Fiber* const fiber = warp.lanes[__builtin_ctz(left)];
      if (fiber != running_) ready_.push_back(fiber);
    }
    warp.given.lanes = warp.given.votes = 0;
  }
  void publish(Block& block) {
    block.joined = std::exchange(block.joining, {0, 0, 1});
    block.phase ^= 1;
    for (Fiber* fiber : block.waiting)
      if (fiber != running_) ready_.push_back(fiber);
    block.waiting.clear();
  }
  Fiber* running() { return running_; }
  bool coin() { return random_() % 2 != 0; }

 private:
  // Draws a thread and lets it run. `from`: the thread that calls, or none if it is the machine.
  void resume(Fiber* from) {
    std::swap(ready_[random_() % ready_.size()], ready_.back());
    Fiber& next = *ready_.back();
    ready_.pop_back();
    running_ = &next;
    self = &next.thread;
    if (&next != from) jump(from, next.at, next.seen_as);
  }
  void jump(Fiber* from, context::fcontext_t to, void* seen_as) {
    races::turn_to(seen_as);
    came_from(context::jump_fcontext(to, from));
  }
  // Notes where a thread stopped, or the machine.
  void came_from(const context::transfer_t& other) {
    (other.data == nullptr ? machine_at_ : static_cast<Fiber*>(other.data)->at) = other.fctx;
  }

  void play() {
    const races::Unseen unseen;
    const Place& n = grid.blocks;
    const std::uint64_t blocks = std::uint64_t{n.x} * n.y * n.z;
    std::uint64_t started = 0;
    while (started < blocks || resident_ != 0) {
      for (; resident_ < kResidentBlocks && started < blocks; ++started)
        start({static_cast<unsigned>(started % n.x), static_cast<unsigned>(started / n.x % n.y),
               static_cast<unsigned>(started / n.x / n.y)});
      if (ready_.empty()) report_stuck();
      resume(nullptr);
      self = nullptr;
      if (running_->ended) leave(*running_);
    }
  }

  static std::uint64_t seed() {
    const char* const text = std::getenv("PYF_SIMT_SEED");
    return 1 + 1'000'000 * (text == nullptr ? 0 : std::strtoull(text, nullptr, 10));
  }
  static void begin(context::transfer_t from) {
    Machine& here = *machine;
    here.came_from(from);
    Fiber& fiber = *here.running_;
    races::acquire(&fiber.thread.block->begun);
    here.kernel_();
    copy_now();
    races::release(&fiber.thread.block->over);
    fiber.ended = true;
    here.jump(&fiber, here.machine_at_, here.seen_as_);
  }

  void start(const Place& place) {
    const unsigned threads = grid.threads.x;
    std::unique_ptr<Block> made;
    if (!idle_.empty()) {
      made = std::move(idle_.back());
      idle_.pop_back();
    } else {
      made = std::make_unique<Block>();
      made->warps.resize((threads + 31) / 32);
      // the lower 4 GB: kernels hold addresses of shared memory in 32-bit words
      made->statics = Pages(kStaticBytes, MAP_32BIT);
      made->dynamics = Pages(round_up(grid.dynamic_bytes, kDynamicAlignment), MAP_32BIT);
      for (unsigned i = 0; i < threads; ++i) made->fibers.push_back(take_fiber());
    }
    Block& block = *made;
    block.place = place;
    races::acquire(&block.over);  // of the block that used this memory before
    races::release(&block.begun);
    block.alive = threads;
    std::memset(block.statics.memory, kPoison, block.statics.bytes);
    std::memset(block.dynamics.memory, kPoison, block.dynamics.bytes);
    for (unsigned i = 0; i < threads; ++i) {
      Fiber& fiber = *block.fibers[i];
      Warp& warp = block.warps[i / 32];
      fiber.thread = {{i, 0, 0}, &block, &warp, i % 32, {}};
      fiber.at = context::make_fcontext(fiber.stack.end() + page_bytes() - fiber.unused,
                                        fiber.stack.bytes - fiber.unused, &Machine::begin);
      fiber.ended = false;
      warp.lanes[i % 32] = &fiber;
      warp.alive |= 1u << i % 32;
      ready_.push_back(&fiber);
    }
    blocks_.emplace(&block, std::move(made));
    ++resident_;
  }
  void leave(Fiber& fiber) {
    running_ = nullptr;
    Block& block = *fiber.thread.block;
    Warp& warp = *fiber.thread.warp;
    warp.alive &= ~(1u << fiber.thread.lane);
    if (warp.given.lanes != 0 && warp.given.lanes == warp.alive) publish(warp);
    --block.alive;
    if (block.alive != 0 && block.waiting.size() == block.alive) publish(block);
    if (block.alive != 0) return;
    const auto found = blocks_.find(&block);
    idle_.push_back(std::move(found->second));
    blocks_.erase(found);
    --resident_;
  }
  [[noreturn]] void report_stuck() {
    unsigned at_barrier = 0, meeting = 0;
    for (const auto& [block, owned] : blocks_) {
      at_barrier += static_cast<unsigned>(block->waiting.size());
      for (const Warp& warp : block->warps) meeting += static_cast<unsigned>(__builtin_popcount(warp.given.lanes));
    }
    mistake("threads wait for ever: %u for their block, %u for their warp", at_barrier, meeting);
  }

  const std::function<void()>& kernel_;
  std::minstd_rand random_;  // of each launch, independent of others
  std::vector<Fiber*> ready_;
  std::map<Block*, std::unique_ptr<Block>> blocks_;
  std::vector<std::unique_ptr<Block>> idle_;  // for reuse
  unsigned resident_ = 0;
  context::fcontext_t machine_at_ = nullptr;
  void* seen_as_ = races::here();
  Fiber* running_ = nullptr;
};

}  // namespace

namespace {

void meet_others(Warp& warp, Meeting what, std::uint64_t value) {
  const races::Unseen unseen;
  if (warp.given.lanes == 0)
    warp.what = what;
  else if (warp.what != what)
    mistake("lanes of a warp meet in different operations: %d and %d", static_cast<int>(warp.what),
            static_cast<int>(what));
  const std::uint32_t lane = 1u << self->lane;
  warp.given.values[self->lane] = value;
  warp.given.lanes |= lane;
  if (value != 0) warp.given.votes |= lane;
  if (warp.given.lanes == warp.alive)
    machine->publish(warp);
  else
    machine->wait();
}

void join_others(Block& block, unsigned value) {
  const races::Unseen unseen;
  block.joining.count += value != 0 ? 1 : 0;
  block.joining.any |= value != 0 ? 1 : 0;
  block.joining.all &= value != 0 ? 1 : 0;
  block.waiting.push_back(machine->running());
  if (block.waiting.size() == block.alive)
    machine->publish(block);
  else
    machine->wait();
}

}  // namespace

const Met& meet(Meeting what, std::uint64_t value) {
  Warp& warp = *self->warp;
  char* const phase = &warp.phases[warp.phase];
  if (what == Meeting::barrier) races::release(phase);
  meet_others(warp, what, value);
  if (what == Meeting::barrier) races::acquire(phase);
  return warp.found;
}

Joined join_block(unsigned value) {
  Block& block = *self->block;
  char* const phase = &block.phases[block.phase];
  races::release(phase);
  join_others(block, value);
  races::acquire(phase);
  return block.joined;
}

void pause() {
  const races::Unseen unseen;
  machine->pause();
}
bool coin() {
  const races::Unseen unseen;
  return machine->coin();
}

void* shared(const void* key, std::size_t bytes) {
  const races::Unseen unseen;
  Block& block = *self->block;
  const auto [place, is_new] = block.static_places.try_emplace(key, block.static_bytes);
  if (is_new) block.static_bytes += round_up(bytes, 128);
  if (block.static_bytes > kStaticBytes) mistake("more than %zu bytes of static shared memory", kStaticBytes);
  return block.statics.memory + place->second;
}
void* dynamic_shared() {
  Block& block = *self->block;
  return block.dynamics.end() - round_up(grid.dynamic_bytes, kDynamicAlignment);
}
bool is_shared(const void* at) {
  const Block& block = *self->block;
  const auto inside = [&](const Pages& pages) { return at >= pages.memory && at < pages.end(); };
  return inside(block.statics) || inside(block.dynamics);
}
const Place& block_place() { return self->block->place; }

void run(const Grid& launch, const std::function<void()>& kernel) {
  if (launch.blocks.x == 0 || launch.blocks.y == 0 || launch.blocks.z == 0 || launch.threads.x == 0 ||
      launch.threads.x > 1024 || launch.threads.y != 1 || launch.threads.z != 1 || launch.blocks.y > 65535 ||
      launch.dynamic_bytes > kMostDynamicBytes)
    mistake("a launch of %u x %u x %u blocks of %u x %u threads with %zu bytes", launch.blocks.x, launch.blocks.y,
            launch.blocks.z, launch.threads.x, launch.threads.y, launch.dynamic_bytes);
  const std::lock_guard<std::mutex> lock(turn);
  grid = launch;
  Machine here(kernel);
  machine = &here;
  here.run();
  machine = nullptr;
}

namespace {

std::mutex memory_lock;
std::map<void*, Pages>& allocations() {
  static auto* const all = new std::map<void*, Pages>;
  return *all;
}

}  // namespace

void* allocate(std::size_t bytes) {
  const std::size_t whole = round_up(bytes, 16);
  Pages pages(whole, 0);
  std::memset(pages.memory, kPoison, pages.bytes);
  void* const memory = pages.end() - whole;
  const std::lock_guard<std::mutex> lock(memory_lock);
  allocations().emplace(memory, std::move(pages));
  return memory;
}
void release(void* memory) {
  const std::lock_guard<std::mutex> lock(memory_lock);
  if (memory != nullptr && allocations().erase(memory) == 0) mistake("memory is freed that was not allocated");
}

void mistake(const char* format, ...) {
  std::va_list arguments;
  va_start(arguments, format);
  std::fputs("simt: ", stderr);
  std::vfprintf(stderr, format, arguments);
  std::fputs("\n", stderr);
  va_end(arguments);
  std::abort();
}

}  // namespace simt

// The number of kernels that have run, for tests that check that some did.
extern "C" __attribute__((visibility("default"))) std::uint64_t pyf_simt_launches() { return simt::launches; }
