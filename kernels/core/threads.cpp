// SPDX-License-Identifier: BSD-3-Clause
// The pool of worker threads (threads.hpp).
#include "core/threads.hpp"

#include <pthread.h>
#include <sched.h>
#include <unistd.h>

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <new>
#include <thread>

#include "core/fp_environment.hpp"

namespace pyfilter {
namespace {

thread_local bool working = false;

struct Job {
  void (*work)(void*, std::uint64_t) = nullptr;
  void* context = nullptr;
  std::uint64_t count = 0;
  std::atomic<std::uint64_t> next{0};

  void run() {
    for (std::uint64_t i = next.fetch_add(1); i < count; i = next.fetch_add(1)) work(context, i);
  }
  void run_beside_others() {
    working = true;
    run();
    working = false;
  }
};

class Pool {
 public:
  // False if another call has the workers.
  bool try_run(int helpers, Job& job) {
    std::unique_lock<std::mutex> owner(in_use_, std::try_to_lock);
    if (!owner.owns_lock()) return false;
    start_workers(helpers);
    std::unique_lock<std::mutex> lock(mutex_, std::defer_lock);
    lock_soon(lock);
    job_ = &job;
    wanted_ = helpers < workers_ ? helpers : workers_;
    const std::uint64_t generation = ++generation_;
    lock.unlock();
    posted_ = generation;  // set after unlocking: workers that see it find the mutex free
    wake_.notify_all();
    job.run_beside_others();
    lock_soon(lock);
    wanted_ = 0;  // workers that have not started yet are not needed
    job_ = nullptr;
    lock.unlock();
    spin_while([this] { return running_ != 0; });
    if (running_ == 0) return true;  // the last worker may still hold the mutex
    lock.lock();
    idle_.wait(lock, [this] { return running_ == 0; });
    return true;
  }

 private:
  void start_workers(int wanted) {
    while (workers_ < wanted) {
      try {
        std::thread(&Pool::serve, this).detach();
      } catch (...) {
        return;  // no more threads can be started: use those that run
      }
      ++workers_;
    }
  }

  void serve() {
    const FpEnvironment environment;
    std::uint64_t seen = 0;
    std::unique_lock<std::mutex> lock(mutex_, std::defer_lock);
    for (;;) {
      // spin before sleeping: a call has several jobs, and the next call often follows at once
      spin_while([&] { return posted_ == seen; });
      lock_soon(lock);
      wake_.wait(lock, [&] { return generation_ != seen && wanted_ > 0; });
      seen = generation_;
      --wanted_;
      Job* job = job_;
      ++running_;
      lock.unlock();
      job->run_beside_others();
      lock_soon(lock);
      if (--running_ == 0) idle_.notify_all();
      lock.unlock();
    }
  }

  std::mutex in_use_;
  std::mutex mutex_;
  std::condition_variable wake_, idle_;
  Job* job_ = nullptr;
  std::uint64_t generation_ = 0;
  int wanted_ = 0, workers_ = 0;
  std::atomic<std::uint64_t> posted_{0};  // generation_, readable without the mutex
  std::atomic<int> running_{0};
};

// Never destroyed: workers wait on it until the process ends. A forked child has no workers and maybe a locked mutex;
// it forgets the pool and makes its own.
std::atomic<Pool*> pool{nullptr};

void forget_pool() { pool.store(nullptr); }

Pool* get_pool() {
  static const int registered = pthread_atfork(nullptr, nullptr, forget_pool);
  if (registered != 0) return nullptr;
  Pool* current = pool.load();
  if (current != nullptr) return current;
  Pool* fresh = new (std::nothrow) Pool;
  if (fresh == nullptr) return nullptr;
  if (pool.compare_exchange_strong(current, fresh)) return fresh;
  delete fresh;
  return current;
}

}  // namespace

void parallel_for(int threads, std::uint64_t count, void (*work)(void*, std::uint64_t), void* context) noexcept {
  Job job;
  job.work = work;
  job.context = context;
  job.count = count;
  const int helpers = count < static_cast<std::uint64_t>(threads) ? static_cast<int>(count) - 1 : threads - 1;
  Pool* workers = helpers > 0 ? get_pool() : nullptr;
  if (workers == nullptr || !workers->try_run(helpers, job)) job.run();
}

bool works_beside_others() noexcept { return working; }

int available_cores() noexcept {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) == 0) return CPU_COUNT(&set) > 0 ? CPU_COUNT(&set) : 1;
  const long n = sysconf(_SC_NPROCESSORS_ONLN);
  return n > 0 ? static_cast<int>(n) : 1;
}

}  // namespace pyfilter
