// Runs CUDA kernels on one CPU thread: a fiber for each CUDA thread, switched at barriers, warp operations and, so that whoever
// waits for a value in memory lets others on, after some hundred steps. It is what `libcuda.so.1` is to the loader. Kernels of several
// host threads take turns: one that has not ended lets others run, in case it waits for their messages.
#include "emulated.h"
#include <complex>
#include <algorithm>
#include <atomic>
#include <csetjmp>
#include <csignal>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <map>
#include <mutex>
#include <set>
#include <tuple>
#include <sys/mman.h>
#include <unistd.h>
#include <vector>

using namespace emulated;
typedef unsigned long long u64;
enum State { READY, YIELDED, AT_WARP, AT_BLOCK, AT_NAMED, DONE };
constexpr size_t STACK = 128 << 10, PAGE = 4096;
constexpr int NAMED = 16, FAULT = 719, TOO_LARGE = 720, INVALID = 1;

struct Block;
struct Fiber : Thread {
  void* stack;
  Block* of;
  State state;
  int lane, kind, source, named;
  unsigned mask;
  u64 value, result;
};
struct Block {
  std::vector<Fiber> fibers;
  std::vector<unsigned> alive, arrived;    // lanes of each warp: not at the end; at a warp operation
  std::vector<char> shared, dynamic;       // static shared memory while another block runs; dynamic, and its guard
  int left, waiting, votes, at[NAMED];
};
struct Order { int kind = 0, window = 1; u64 seed = 1; } order;      // 0 forward, 1 reverse, 2 random

extern "C" {
Thread* emulated_now;
dim3 emulated_blocks, emulated_threads;
int emulated_budget;
char emulated_error[4096];
void (*emulated_capture)(void* stream, void* function, int grid, int columns, int block, int shared, int together, void** params);
double emulated_limit = 60;                // seconds of a processor for one launch
void emulated_switch(void** from, void* to);
}
asm(R"(
.globl emulated_switch
emulated_switch:
  pushq %rbp; pushq %rbx; pushq %r12; pushq %r13; pushq %r14; pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15; popq %r14; popq %r13; popq %r12; popq %rbx; popq %rbp
  ret
)");

static std::mutex one_at_a_time;
static std::atomic<int> queued;            // host threads that wait for it
struct Hold {
  Hold() { ++queued, one_at_a_time.lock(), --queued; }
  ~Hold() { one_at_a_time.unlock(); }
};
static thread_local std::vector<char*> stacks;
static void *scheduler, **parameters;
static Function* function;
static thread_local jmp_buf failed;
static thread_local bool running;
static Fiber* now() { return static_cast<Fiber*>(emulated_now); }
static u64 random_bits() {
  order.seed ^= order.seed << 13, order.seed ^= order.seed >> 7, order.seed ^= order.seed << 17;
  return order.seed;
}

[[noreturn]] static void fail(const char* format, ...) {
  int used = snprintf(emulated_error, sizeof emulated_error, "emulated GPU: %s", function->name);
  if (emulated_now)
    used += snprintf(emulated_error + used, sizeof emulated_error - used, ", block %u, thread %u", emulated_now->block.x,
                     emulated_now->thread.x);
  used += snprintf(emulated_error + used, sizeof emulated_error - used, ": ");
  va_list list;
  va_start(list, format);
  vsnprintf(emulated_error + used, sizeof emulated_error - used, format, list);
  va_end(list);
  fprintf(stderr, "%s\n", emulated_error);
  longjmp(failed, 1);
}

// -- device memory: every array ends before a page that nobody may touch, and begins behind bytes that are checked -------

static std::map<char*, size_t> arrays;     // by where they begin
static char* end_of(char* p, size_t size) { return p + (size + 15) / 16 * 16; }
extern "C" void* emulated_malloc(size_t size) {
  Hold hold;
  const size_t held = (size + 15) / 16 * 16, pages = (held + 64 + PAGE - 1) / PAGE * PAGE;
  char* base = (char*)mmap(nullptr, pages + PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (base == MAP_FAILED) return nullptr;
  mprotect(base + pages, PAGE, PROT_NONE);
  memset(base, 0xFF, pages);
  char* p = base + pages - held;
  arrays[p] = size;
  return p;
}
// 1 if something was written before the array or behind it.
extern "C" int emulated_free(char* p) {
  Hold hold;
  const size_t size = arrays[p];
  char *base = (char*)((size_t)(p - 64) / PAGE * PAGE), *end = end_of(p, size);
  int touched = 0;
  for (char* q = p - 64; q < p; ++q) touched |= *q != char(0xFF);
  for (char* q = p + size; q < end; ++q) touched |= *q != char(0xFF);
  arrays.erase(p);
  munmap(base, end + PAGE - base);
  return touched;
}
static void on_fault(int signal, siginfo_t* info, void*) {
  if (!running) {                          // not a kernel's: let Python's own fault handler have it
    ::signal(signal, SIG_DFL);
    return;
  }
  char* at = (char*)info->si_addr;
  if (signal == SIGFPE) fail("an integer division by zero");
  auto next = arrays.upper_bound(at);
  if (next == arrays.begin()) fail("an access to %p, which is no memory of the device", at);
  --next;
  fail("an access to %p, %lld bytes behind the end of the nearest array before it, of %zu bytes", at,
       (long long)(at - next->first - next->second), next->second);
}

// -- fibers --------------------------------------------------------------------------------------------------------------

static void leave() { emulated_switch(&now()->stack, scheduler); }
static void complete_warp(Block& b, int warp);
static void complete_block(Block& b) {
  if (!b.waiting || b.waiting < b.left) return;
  for (Fiber& f : b.fibers)
    if (f.state == AT_BLOCK) f.state = READY, f.result = b.votes;
  b.waiting = b.votes = 0;
}
static u64 combined(int kind, u64 a, u64 b) {
  switch (kind) {
    case ADD: case UADD: return unsigned(a + b);
    case LEAST: return (int)b < (int)a ? b : a;
    case MOST: return (int)b > (int)a ? b : a;
    case ULEAST: return std::min(a, b);
    case UMOST: return std::max(a, b);
    case AND: return a & b;
    case OR: return a | b;
    case XOR: return a ^ b;
  }
  return a;
}
static void life() {
  function->entry(parameters);
  Fiber* f = now();
  Block& b = *f->of;
  const int warp = f->thread.x / 32;
  f->state = DONE;
  --b.left;
  b.alive[warp] &= ~(1u << f->lane);
  complete_warp(b, warp);
  complete_block(b);
  leave();
  abort();
}
// The lanes of one mask go on if all of them that live have come.
static void complete_group(Block& b, int warp, unsigned mask) {
  Fiber* lanes = &b.fibers[warp * 32];
  const unsigned need = mask & b.alive[warp];
  if (!need || (b.arrived[warp] & need) != need) return;
  const int first = __builtin_ctz(need), kind = lanes[first].kind;
  u64 votes = 0, total = lanes[first].value;
  for (unsigned rest = need; rest; rest &= rest - 1) {
    const Fiber& f = lanes[__builtin_ctz(rest)];
    if (f.mask != mask) return;
    if (f.kind != kind)
      fail("lanes %d and %d of warp %d meet in different warp operations (%d and %d)", first, f.lane, warp, kind, f.kind);
    votes |= u64(f.value != 0) << f.lane;
    if (f.lane != first) total = combined(kind, total, f.value);
  }
  for (unsigned rest = need; rest; rest &= rest - 1) {
    Fiber& f = lanes[__builtin_ctz(rest)];
    f.state = READY;
    f.result = kind == SHUFFLE ? (need >> f.source & 1 ? lanes[f.source].value : ~0ull)          // all bits set: of nobody
               : kind == VOTE ? u64(need) << 32 | votes : kind == MATCH ? 0 : total;
    if (kind == MATCH)
      for (unsigned others = need; others; others &= others - 1)
        if (lanes[__builtin_ctz(others)].value == f.value) f.result |= others & -others;
  }
  b.arrived[warp] &= ~need;
}
static void complete_warp(Block& b, int warp) {
  for (unsigned open = b.arrived[warp]; open; open &= open - 1)
    if (b.arrived[warp] & open & -open) complete_group(b, warp, b.fibers[warp * 32 + __builtin_ctz(open)].mask);
}
extern "C" u64 emulated_warp(unsigned mask, int kind, u64 value, int source) {
  Fiber* f = now();
  if (!(mask >> f->lane & 1)) fail("a warp operation whose mask %08x has no bit for lane %d, which calls it", mask, f->lane);
  const int warp = f->thread.x / 32;
  f->state = AT_WARP, f->mask = mask, f->kind = kind, f->value = value, f->source = source;
  f->of->arrived[warp] |= 1u << f->lane;
  complete_group(*f->of, warp, mask);
  leave();
  return f->result;
}
extern "C" int emulated_block(int, int value) {
  Fiber* f = now();
  f->state = AT_BLOCK;
  ++f->of->waiting;
  f->of->votes += value != 0;
  complete_block(*f->of);
  leave();
  return int(f->result);
}
extern "C" void emulated_named(int barrier, int threads, bool waits) {
  Fiber* f = now();
  Block& b = *f->of;
  if (waits) f->state = AT_NAMED, f->named = barrier;
  if (++b.at[barrier] == threads) {
    b.at[barrier] = 0;
    for (Fiber& other : b.fibers)
      if (other.state == AT_NAMED && other.named == barrier) other.state = READY;
  }
  if (waits) leave();
}
extern "C" void emulated_preempt() {
  now()->state = YIELDED;
  leave();
}

static std::vector<Block>* together_now;   // the blocks of this launch; all of them run, if there are clusters
static int cluster;                        // blocks of a cluster
static std::vector<u64>* at_cluster;       // threads that came to the barrier of each cluster
extern "C" void* emulated_of_block(const void* own, int block) {
  const unsigned wanted = now()->block.x / cluster * cluster + block;
  if (block < cluster)
    for (Block& b : *together_now)
      if (b.fibers[0].block.x == wanted) return b.fibers[0].dynamic + ((const unsigned char*)own - now()->dynamic);
  fail("there is no block %d in the cluster", block);
}
extern "C" void emulated_cluster() {
  volatile u64* came = &(*at_cluster)[now()->block.x / cluster];
  const u64 all = u64(cluster) * emulated_threads.x, until = *came / all * all + all;
  *came = *came + 1;
  while (*came < until) emulated_preempt();
}

// -- launches ------------------------------------------------------------------------------------------------------------

static void begin(Block& b, int number, int slot, int shared) {
  const int threads = emulated_threads.x, warps = (threads + 31) / 32;
  b.fibers.assign(threads, Fiber());
  b.alive.assign(warps, 0), b.arrived.assign(warps, 0);
  b.left = threads, b.waiting = b.votes = 0;
  memset(b.at, 0, sizeof b.at);
  b.dynamic.assign(shared + 256, char(0xFF));
  b.shared.assign(function->shared_end - function->shared_begin, char(0xFF));
  unsigned char* dynamic = (unsigned char*)(((size_t)b.dynamic.data() + 127) / 128 * 128);
  while ((int)stacks.size() < (slot + 1) * threads) {
    constexpr int EACH = 256;
    char* memory = (char*)mmap(nullptr, EACH * STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    for (int k = 0; k < EACH; ++k) stacks.push_back(memory + k * STACK);
  }
  for (int t = 0; t < threads; ++t) {
    Fiber& f = b.fibers[t];
    f.thread = {unsigned(t), 0, 0}, f.block = {unsigned(number) % emulated_blocks.x, unsigned(number) / emulated_blocks.x, 0};
    f.dynamic = dynamic, f.of = &b, f.lane = t % 32, f.state = READY;
    b.alive[t / 32] |= 1u << t % 32;
    void** top = (void**)(stacks[slot * threads + t] + STACK - 64 * (t % 32));     // not all in one set of the cache
    top[-1] = nullptr, top[-2] = (void*)life;
    f.stack = top - 8;
  }
}
static void require_dynamic(const Block& b, int shared) {
  const char* end = (const char*)b.fibers[0].dynamic + shared;
  for (const char* p = end; p < b.dynamic.data() + b.dynamic.size(); ++p)
    if (*p != char(0xFF)) fail("a write %d bytes behind the %d bytes of dynamic shared memory", int(p - end), shared);
}
static bool run_warp(Block& b, int warp) {
  const int first = warp * 32, count = std::min<int>(32, b.fibers.size() - first);
  bool any = false;
  int rounds = order.kind == 2 ? 1 + random_bits() % 30 : 50;          // then others, for whom it may wait, have their turn
  for (bool again = true; again && rounds--;) {
    again = false;
    const int shift = order.kind == 2 ? random_bits() % 32 : 0;
    for (int k = 0; k < count; ++k) {
      const int mixed = count == 32 ? (k * 11 + shift) % 32 : (k + shift) % count;
      const int lane = order.kind == 0 ? k : order.kind == 1 ? count - 1 - k : mixed;
      Fiber& f = b.fibers[first + lane];
      if (f.state != READY) continue;
      emulated_now = &f;
      emulated_budget = order.kind == 2 ? random_bits() % 100 : 500;
      emulated_switch(&scheduler, f.stack);
      again = any = true;
    }
  }
  return any;
}
static bool run_block(Block& b) {
  bool any = false;
  for (Fiber& f : b.fibers)
    if (f.state == YIELDED) f.state = READY;
  const int warps = b.alive.size(), shift = order.kind == 2 ? random_bits() % warps : 0;
  for (int k = 0; k < warps; ++k) any |= run_warp(b, order.kind == 1 ? warps - 1 - k : (k + shift) % warps);
  return any;
}
// The processor time of this host thread: other work on the machine does not count.
static double seconds() {
  timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return t.tv_sec + 1e-9 * t.tv_nsec;
}
static void say_stuck(const std::vector<Block>& blocks, const char* what) {
  char text[2048];
  int used = 0, told = 0;
  for (const Block& b : blocks)
    for (const Fiber& f : b.fibers) {
      if (f.state == DONE || (f.thread.x && (&f)[-1].state == f.state && (&f)[-1].mask == f.mask) || ++told > 12) continue;
      static const char* names[] = {"is running", "spins", "waits in a warp operation", "waits at __syncthreads",
                                    "waits at a named barrier"};
      used += snprintf(text + used, sizeof text - used, "\n  block %u: from thread %u on: %s", f.block.x, f.thread.x,
                       names[f.state]);
      if (f.state == AT_WARP) used += snprintf(text + used, sizeof text - used, " for lanes %08x", f.mask);
    }
  emulated_now = nullptr;
  fail("%s%s", what, text);
}
// Lets kernels of other host threads run, if there are any; at a time when all of this kernel's fibers have stopped.
static void take_turns() {
  if (!queued) return;
  const auto mine = std::make_tuple(function, parameters, emulated_blocks, emulated_threads, together_now, cluster, at_cluster);
  emulated_now = nullptr;
  one_at_a_time.unlock();
  usleep(20);
  ++queued, one_at_a_time.lock(), --queued;
  std::tie(function, parameters, emulated_blocks, emulated_threads, together_now, cluster, at_cluster) = mine;
}
static void run(int shared, int together) {
  const int grid = emulated_blocks.x * emulated_blocks.y;
  const int slots = std::min(grid, together ? grid : order.window);
  std::vector<Block> blocks(slots);
  std::vector<u64> came(grid, 0);
  together_now = &blocks, cluster = together > 1 ? together : 1, at_cluster = &came;
  std::vector<char> active(slots, 0);
  const size_t size = function->shared_end - function->shared_begin;
  int next = 0, current = -1;
  const double until = seconds() + emulated_limit;
  for (long long pass = 0;; ++pass) {
    bool any = false, left = false;
    for (int k = 0; k < slots; ++k) {
      const int s = order.kind == 1 ? slots - 1 - k : k;
      if (!active[s] && next < grid) {
        const int number = order.kind == 1 ? grid - 1 - next : next;
        ++next;
        begin(blocks[s], number, s, shared);
        active[s] = 1;
        if (current == s) memcpy(function->shared_begin, blocks[s].shared.data(), size);
      }
      if (!active[s]) continue;
      if (current != s) {
        if (current >= 0) memcpy(blocks[current].shared.data(), function->shared_begin, size);
        memcpy(function->shared_begin, blocks[s].shared.data(), size);
        current = s;
      }
      any |= run_block(blocks[s]);
      if (!blocks[s].left) require_dynamic(blocks[s], shared), active[s] = 0;
      left |= active[s] || next < grid;
    }
    if (!left) return;
    if (!any) say_stuck(blocks, "deadlock: no thread can go on");
    if (current >= 0) memcpy(blocks[current].shared.data(), function->shared_begin, size), current = -1;
    take_turns();
    if (pass % 256 == 255 && seconds() > until) say_stuck(blocks, "no end in the time it has: do threads spin for ever?");
  }
}

extern "C" int emulated_run(Function* f, int grid, int columns, int block, int shared, int together, void** params) {
  Hold hold;
  if (grid < 1 || columns < 1 || columns > 65535 || block < 1 || block > 1024 || shared > f->most) {
    fprintf(stderr, "emulated GPU: %s cannot be launched with %d blocks of %d threads and %d bytes of dynamic shared memory "
            "(it may have %d)\n", f->name, grid, block, shared, f->most);
    return INVALID;
  }
  if (together == grid && grid > 96) return TOO_LARGE;
  if (together > 1 && grid % together) return INVALID;
  function = f, parameters = params;
  emulated_blocks = {unsigned(grid), unsigned(columns), 1}, emulated_threads = {unsigned(block), 1, 1};
  static thread_local char room[64 << 10];
  stack_t own = {}, before;
  own.ss_sp = room, own.ss_size = sizeof room;
  sigaltstack(&own, &before);
  struct sigaction handler = {};
  handler.sa_sigaction = on_fault, handler.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
  const int signals[] = {SIGSEGV, SIGBUS, SIGFPE};
  static struct sigaction old[3];
  static int users;                        // kernels that run or wait for their turn
  for (int k = 0; k < 3 && !users; ++k) sigaction(signals[k], &handler, &old[k]);
  ++users;
  int status = 0;
  running = true;
  if (setjmp(failed)) status = FAULT; else run(shared, together);
  running = false;
  emulated_now = nullptr;
  --users;
  for (int k = 0; k < 3 && !users; ++k) sigaction(signals[k], &old[k], nullptr);
  before.ss_flags &= ~SS_ONSTACK;
  sigaltstack(&before, nullptr);
  return status;
}

static std::set<void*> capturing;          // streams
static std::mutex of_capturing;
extern "C" void emulated_capturing(void* stream, int on) {
  std::lock_guard<std::mutex> hold(of_capturing);
  if (on) capturing.insert(stream); else capturing.erase(stream);
}
struct Attribute { int id; char padding[4]; int value; char rest[60]; };
struct Config { unsigned grid[3], block[3], shared; void* stream; Attribute* attributes; unsigned count; };
extern "C" int cuLaunchKernelEx(const Config* c, Function* f, void** params, void**) {
  int together = 0;                        // blocks of a cluster; a cooperative launch is one
  for (unsigned k = 0; k < c->count; ++k) {
    if (c->attributes[k].id == 2 && c->attributes[k].value) together = c->grid[0];
    if (c->attributes[k].id == 4) together = c->attributes[k].value;
  }
  if (together && c->grid[0] % together) return 912;        // CUDA_ERROR_INVALID_CLUSTER_SIZE: clusters are whole
  bool noted;
  {
    std::lock_guard<std::mutex> hold(of_capturing);
    noted = capturing.count(c->stream);
  }
  if (noted) {
    emulated_capture(c->stream, f, c->grid[0], c->grid[1], c->block[0], c->shared, together, params);
    return 0;
  }
  return emulated_run(f, c->grid[0], c->grid[1], c->block[0], c->shared, together, params);
}
extern "C" int cuFuncSetAttribute(Function*, int, int) { return 0; }
extern "C" void emulated_order(int kind, int window, u64 seed) { order = {kind, window, seed * 2 + 1}; }

// cuSOLVER's 64-bit LU, column-major; types: CUDA_R_32F 0, CUDA_R_64F 1, CUDA_C_32F 4, CUDA_C_64F 5.
typedef long long i64;
template <typename T> static int getrf(i64 n, T* A, i64 lda, i64* pivots) {
  int info = 0;
  for (i64 j = 0; j < n; ++j) {
    i64 p = j;
    for (i64 i = j + 1; pivots && i < n; ++i)
      if (std::abs(A[i + j * lda]) > std::abs(A[p + j * lda])) p = i;
    if (pivots) pivots[j] = p + 1;
    for (i64 k = 0; k < n && p != j; ++k) std::swap(A[j + k * lda], A[p + k * lda]);
    if (A[j + j * lda] == T(0)) { if (!info) info = j + 1; continue; }
    for (i64 i = j + 1; i < n; ++i) A[i + j * lda] /= A[j + j * lda];
    for (i64 k = j + 1; k < n; ++k)
      for (i64 i = j + 1; i < n; ++i) A[i + k * lda] -= A[i + j * lda] * A[j + k * lda];
  }
  return info;
}
template <typename F> static int of_type(int kind, F f) {
  switch (kind) {
    case 0: return f((float*)nullptr);
    case 1: return f((double*)nullptr);
    case 4: return f((std::complex<float>*)nullptr);
    case 5: return f((std::complex<double>*)nullptr);
  }
  return 3;
}
extern "C" int cusolverDnSetStream(void*, void*) { return 0; }
extern "C" int cusolverDnCreateParams(void** params) { *params = nullptr; return 0; }
extern "C" int cusolverDnDestroyParams(void*) { return 0; }
extern "C" int cusolverDnXgetrf_bufferSize(void*, void*, i64 m, i64 n, int, const void*, i64 lda, int, size_t* device,
                                           size_t* host) {
  *device = *host = 8;
  return lda < m || m != n ? 3 : 0;
}
extern "C" int cusolverDnXgetrf(void*, void*, i64, i64 n, int kind, void* A, i64 lda, i64* pivots, int, void*, size_t, void*,
                                size_t, int* info) {
  return of_type(kind, [&](auto* type) { *info = getrf(n, (decltype(type))A, lda, pivots); return 0; });
}
template <typename T> static T conjugate(T a) { return a; }
template <typename T> static std::complex<T> conjugate(std::complex<T> a) { return std::conj(a); }
template <typename T> static int getrs(int op, i64 n, i64 count, const T* A, i64 lda, const i64* pivots, T* B, i64 ldb) {
  for (i64 r = 0; r < count; ++r) {
    T* b = B + r * ldb;
    for (i64 j = 0; !op && j < n; ++j) std::swap(b[j], b[pivots[j] - 1]);
    for (int pass = 0; pass < 2; ++pass) {
      const bool up = pass == 1;
      for (i64 s = 0; s < n; ++s) {
        const i64 i = up ? n - 1 - s : s;
        for (i64 k = up ? i + 1 : 0; k < (up ? n : i); ++k) {
          const T a = op ? A[k + i * lda] : A[i + k * lda];
          b[i] -= (op == 2 ? conjugate(a) : a) * b[k];
        }
        const bool one = op ? pass == 1 : pass == 0;             // L has the unit diagonal
        if (!one) b[i] /= op == 2 ? conjugate(A[i + i * lda]) : A[i + i * lda];
      }
    }
    for (i64 j = n - 1; op && j >= 0; --j) std::swap(b[j], b[pivots[j] - 1]);
  }
  return 0;
}
extern "C" int cusolverDnXgetrs(void*, void*, int op, i64 n, i64 count, int kind, const void* A, i64 lda, const i64* pivots,
                                int, void* B, i64 ldb, int* info) {
  *info = 0;
  return of_type(kind, [&](auto* type) {
    using T = std::remove_pointer_t<decltype(type)>;
    return getrs(op, n, count, (const T*)A, lda, pivots, (T*)B, ldb);
  });
}
