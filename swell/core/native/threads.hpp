// Loops over rows, shared by a small pool of threads.
//
// A loop is cut into chunks by its length alone, and a chunk is one thread's: results have the same bits for any number
// of threads. The caller takes chunks itself, and waits only for threads that have begun one: on a busy machine it does
// all the work itself. Idle threads spin for SPIN, then sleep. One loop at a time uses the pool; a second one, of
// another thread, and a loop inside a loop, run on their caller alone.
#pragma once
#include <algorithm>
#include <stdint.h>

constexpr int64_t SERIAL = 20000;      // rows below which waking a thread costs more than it saves
constexpr int64_t CHUNKS = 64;         // most chunks of a loop
constexpr int64_t CHUNK = 1024;        // least rows of a chunk

int threads();                         // number of threads of this thread's loops, at least 1
int set_threads(int count);            // of loops that this thread begins; 0: the process's number; returns the last
void limit_threads(int count);         // for the process; 0: as many as it may use

namespace pool {
void run(int64_t rows, int64_t chunks, void (*work)(const void* body, int64_t chunk), const void* body);
}

// body(chunk) for each chunk of a loop over `rows` rows, which tells whether several threads are worth it. An exception
// in one is thrown here.
template <class F> void parallel_for(int64_t rows, int64_t chunks, const F& body) {
  pool::run(rows, chunks, [](const void* body, int64_t chunk) { (*static_cast<const F*>(body))(chunk); }, &body);
}

inline int64_t chunks_of(int64_t rows) { return std::min(CHUNKS, std::max<int64_t>(1, rows / CHUNK)); }
inline int64_t chunk_begin(int64_t rows, int64_t chunk, int64_t chunks) { return rows * chunk / chunks; }

// body(begin, end) for ranges that cover 0 to units − 1. A unit is some rows; `rows` counts them all. `body` captures
// by value ([=]): the loop then runs on a copy, whose pointers stay in registers.
template <class F> void ranges(int64_t units, int64_t rows, const F& body) {
  const int64_t chunks = rows < SERIAL ? 1 : chunks_of(rows);
  parallel_for(rows, chunks, [&body, units, chunks](int64_t chunk) {
    const F own = body;
    own(chunk_begin(units, chunk, chunks), chunk_begin(units, chunk + 1, chunks));
  });
}

// body(i) for each row i from 0 to rows − 1, which captures by value ([=]).
template <class F> void each(int64_t rows, const F& body) {
  ranges(rows, rows, [body](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) body(i);
  });
}
