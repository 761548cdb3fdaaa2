#include "threads.hpp"

#if !defined(_WIN32)
#include <pthread.h>
#endif
#if defined(__linux__)
#include <sched.h>
#endif
#include <stdio.h>
#include <stdlib.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <new>
#include <system_error>
#include <thread>
#include <utility>

#if defined(__x86_64__)
#include <immintrin.h>
#define PAUSE() _mm_pause()
#else
#define PAUSE() std::this_thread::yield()
#endif

namespace {

constexpr auto SPIN = std::chrono::microseconds(30);   // about the time between two products
constexpr int MOST = 256;                              // threads
constexpr uint64_t OPEN = 1, ONE = 2;                  // of Pool::gate

// CPUs that a control group allows, rounded up; MOST without a limit.
int quota() {
#if !defined(__linux__)
  return MOST;
#endif
  double limit = -1, period = -1;
  if (FILE* file = fopen("/sys/fs/cgroup/cpu.max", "r")) {
    if (fscanf(file, "%lf %lf", &limit, &period) != 2) limit = -1;
    fclose(file);
  } else {
    for (auto [path, value] : {std::pair("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", &limit),
                               std::pair("/sys/fs/cgroup/cpu/cpu.cfs_period_us", &period)})
      if (FILE* one = fopen(path, "r")) {
        if (fscanf(one, "%lf", value) != 1) *value = -1;
        fclose(one);
      }
  }
  return limit > 0 && period > 0 ? int(limit / period + 0.999) : MOST;
}

int usable() {
  for (const char* name : {"SWELL_NUM_THREADS", "OMP_NUM_THREADS"})
    if (const char* text = getenv(name)) {
      const int count = atoi(text);
      if (count > 0) return std::min(count, MOST);
    }
#if defined(__linux__)
  cpu_set_t set;
  const int cpus = sched_getaffinity(0, sizeof set, &set) ? 1 : CPU_COUNT(&set);
#else
  const int cpus = int(std::thread::hardware_concurrency());
#endif
  return std::max(1, std::min({cpus, quota(), MOST}));
}

// One loop at a time. `gate` holds OPEN while threads may enter, and ONE for each that is inside: a thread enters by a
// compare-and-swap, and the owner, after its own last chunk, closes the gate and waits for those inside alone.
class Pool {
 public:
  Pool() : size(usable()) {}

  const int size;

  void run(int64_t chunks, void (*work)(const void*, int64_t), const void* body, int count) {
    if (count < 2 || chunks < 2 || busy.exchange(true, std::memory_order_acquire)) {
      for (int64_t chunk = 0; chunk < chunks; ++chunk) work(body, chunk);
      return;
    }
    start(count - 1);
    this->work = work, this->body = body, this->chunks = chunks;
    failure = nullptr;
    sharers = int(std::min<int64_t>(count, chunks));
    for (int k = 0; k < sharers; ++k) shares[k].next.store(chunks * k / sharers, std::memory_order_relaxed);
    gate.store(OPEN, std::memory_order_release);
    loops.fetch_add(1);                                // seq_cst, as the sleepers' count: no wake-up is lost
    if (asleep.load() > 0) {
      { std::lock_guard<std::mutex> lock(mutex); }
      wake.notify_all();
    }
    take(0);
    gate.fetch_and(~OPEN);
    for (int spins = 0; gate.load(std::memory_order_acquire); ++spins)
      if (spins < 1000) PAUSE(); else std::this_thread::yield();
    std::exception_ptr thrown = failure;
    failure = nullptr;
    busy.store(false, std::memory_order_release);
    if (thrown) std::rethrow_exception(thrown);
  }

 private:
  // Work on share number `own`, then on what is left of the others. Each thread has the same share of equal loops: the
  // rows are then in its cache.
  void take(int own) {
    for (int k = 0; k < sharers; ++k) {
      const int share = (own + k) % sharers;
      const int64_t end = chunks * (share + 1) / sharers;
      for (int64_t chunk; (chunk = shares[share].next.fetch_add(1, std::memory_order_relaxed)) < end;) try {
          work(body, chunk);
        } catch (...) {
          std::lock_guard<std::mutex> lock(mutex);
          failure = std::current_exception();
        }
    }
  }

  void start(int count) {
    for (; started < std::min(count, size - 1); ++started) try {
        std::thread([this, number = started + 1] { serve(number); }).detach();
      } catch (const std::system_error&) {             // no more threads are allowed: fewer do
        return;
      }
  }

  void serve(int number) {
    for (uint64_t seen = 0;;) {
      const uint64_t now = await(seen);
      seen = now;
      uint64_t inside = gate.load(std::memory_order_relaxed);
      while (inside & OPEN)
        if (gate.compare_exchange_weak(inside, inside + ONE, std::memory_order_acquire)) {
          if (number < sharers) take(number);
          gate.fetch_sub(ONE, std::memory_order_release);
          break;
        }
    }
  }

  // Return the number of loops, once it differs from `seen`.
  uint64_t await(uint64_t seen) {
    const auto until = std::chrono::steady_clock::now() + SPIN;
    do {
      for (int k = 0; k < 64; ++k) {
        const uint64_t now = loops.load(std::memory_order_acquire);
        if (now != seen) return now;
        PAUSE();
      }
    } while (std::chrono::steady_clock::now() < until);
    std::unique_lock<std::mutex> lock(mutex);
    asleep.fetch_add(1);
    wake.wait(lock, [&] { return loops.load() != seen; });
    asleep.fetch_sub(1);
    return loops.load();
  }

  void (*work)(const void*, int64_t);
  const void* body;
  int64_t chunks;
  std::exception_ptr failure;
  int started = 0;                                     // threads; the owner's, as `busy` is held
  alignas(64) std::atomic<bool> busy{false};
  struct alignas(64) Share { std::atomic<int64_t> next{0}; };
  Share shares[MOST];
  int sharers = 1;                                     // threads of this loop
  alignas(64) std::atomic<uint64_t> gate{0};
  alignas(64) std::atomic<uint64_t> loops{0};
  std::atomic<int> asleep{0};
  std::mutex mutex;
  std::condition_variable wake;
};

// Never destroyed: threads wait in it until the process ends. A forked child has none of its parent's threads, and
// gets a new one in other memory.
std::atomic<Pool*> instance{nullptr};
std::atomic<int> most{0};              // threads of a loop of this process; 0: the pool's
thread_local int chosen = 0;           // threads of a loop that this thread begins; 0: the process's

Pool& here() {
  Pool* pool = instance.load(std::memory_order_acquire);
  if (pool) return *pool;
#if !defined(_WIN32)
  static std::once_flag registered;
  std::call_once(registered, [] { pthread_atfork(nullptr, nullptr, [] { instance.store(nullptr); }); });
#endif
  Pool* made = new Pool;
  if (instance.compare_exchange_strong(pool, made)) return *made;
  delete made;                                         // another thread was faster; this one has no threads yet
  return *pool;
}

}  // namespace

int threads() {
  int count = here().size;
  for (const int limit : {most.load(std::memory_order_relaxed), chosen})
    if (limit > 0) count = std::min(count, limit);
  return count;
}

int set_threads(int count) { return std::exchange(chosen, count); }

void limit_threads(int count) { most.store(count, std::memory_order_relaxed); }

void pool::run(int64_t rows, int64_t chunks, void (*work)(const void*, int64_t), const void* body) {
  if (rows < SERIAL || chunks < 2) for (int64_t chunk = 0; chunk < chunks; ++chunk) work(body, chunk);
  else here().run(chunks, work, body, threads());
}
