// What a compiled kernel and the runtime that runs it know of each other.
#pragma once

struct uint3 { unsigned x, y, z; };
struct dim3 { unsigned x, y, z; };

namespace emulated {
struct Thread {                            // what a kernel may ask of the thread that it is
  uint3 thread, block;
  unsigned char* dynamic;                  // the dynamic shared memory of its block
};
struct Function {                          // one instantiation of a kernel
  void (*entry)(void**);
  const char* name;
  char *shared_begin, *shared_end;         // its static shared memory: all that its library can write to
  int count;                               // parameters
  const int* sizes;                        // and the bytes of each
  int most;                                // bytes of dynamic shared memory that a launch may ask for
};
enum { SYNC, SHUFFLE, VOTE, MATCH, ADD, LEAST, MOST, AND, OR, XOR, UADD, ULEAST, UMOST };
}

extern "C" {
extern emulated::Thread* emulated_now;
extern dim3 emulated_blocks, emulated_threads;
extern int emulated_budget;                // steps that this thread may still make before others have their turn

unsigned long long emulated_warp(unsigned mask, int kind, unsigned long long value, int source);
int emulated_block(int kind, int value);   // __syncthreads: how many of the values are true (VOTE)
void emulated_named(int barrier, int threads, bool waits);
void emulated_preempt();
void* emulated_of_block(const void* own, int block);      // the same place of another block's dynamic shared memory
void emulated_cluster();                   // all threads of the cluster wait for one another
}
