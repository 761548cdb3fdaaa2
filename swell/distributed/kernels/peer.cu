// Numbers written straight into the memory of other GPUs, and waited for there.
//
// 4 bytes of a number travel with the number of their message, in one word of 8 bytes, which arrives whole: whoever finds the
// message that it waits for has the value too, so that nothing is fenced and no flag follows. (NCCL's LL protocol does so.)
// Every entry has two places, for messages of even and odd number: a rank sends message m + 2 when it has had its neighbour's
// m + 1, and the neighbour sent that when it had read m.
//
// These kernels run also after the judge has spoken, as the other ranks' do: none must wait for what is not sent.
#include "context.cuh"

constexpr int PATIENCE = 1 << 12;        // looks at a place from one look at whether another rank has failed to the next

DEVICE void begin() {
  let_next_start();
  wait_for_previous();
}

// A value's place: 8 bytes for each 4 of its own.
template <class T> DEVICE void post(T value, unsigned long long place, unsigned message) {
  const unsigned* part = reinterpret_cast<const unsigned*>(&value);
  if constexpr (sizeof(T) == 4)
    asm volatile("st.volatile.global.v2.u32 [%0], {%1, %2};" ::"l"(place), "r"(part[0]), "r"(message) : "memory");
  else
#pragma unroll
    for (int k = 0; k < sizeof(T) / 4; k += 2)
      asm volatile("st.volatile.global.v4.u32 [%0], {%1, %2, %3, %2};" ::"l"(place + 8 * k), "r"(part[k]), "r"(message), "r"(part[k + 1])
                   : "memory");
}

DEVICE bool arrived(unsigned long long place, unsigned message, unsigned* part, bool two) {
  unsigned first, second = message;
  if (two)
    asm volatile("ld.volatile.global.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(part[0]), "=r"(first), "=r"(part[1]), "=r"(second) : "l"(place) : "memory");
  else
    asm volatile("ld.volatile.global.v2.u32 {%0, %1}, [%2];" : "=r"(part[0]), "=r"(first) : "l"(place) : "memory");
  return first == message && second == message;
}

// The value of a message, as soon as it is there; what is in the place if another rank has failed.
template <class T> DEVICE T await(unsigned long long place, unsigned message, long long failed) {
  T value;
  unsigned* part = reinterpret_cast<unsigned*>(&value);
#pragma unroll
  for (int k = 0; k < sizeof(T) / 4; k += 2)
    for (int looks = 1; !arrived(place + 8 * k, message, part + k, sizeof(T) > 4); ++looks)
      if (looks % PATIENCE == 0 && *reinterpret_cast<const volatile int*>(failed)) break;
  return value;
}

// The values at ``source`` (addresses) to ``places``, each entry's for even messages, then each entry's for odd ones; ``message`` has
// the number of the last one of each entry.
// launch: elements of message, 256 threads
template <typename T> __global__ void send(Context* ctx, const long long* source, const long long* places, int* message, long long n) {
  begin();
  const long long k = thread_id();
  if (k >= n) return;
  const unsigned m = message[k] + 1;
  message[k] = m;
  post(*reinterpret_cast<const T*>(source[k]), places[(m & 1) * n + k], m);
}

// What others have sent to ``inbox`` (2, n), to ``target`` (addresses).
// launch: elements of message, 256 threads
template <typename T> __global__ void receive(Context* ctx, const long long* target, long long inbox, int* message, long long failed, long long n) {
  begin();
  const long long k = thread_id();
  if (k >= n) return;
  const unsigned m = message[k] + 1;
  message[k] = m;
  *reinterpret_cast<T*>(target[k]) = await<T>(inbox + ((m & 1) * n + k) * (2 * sizeof(T)), m, failed);
}

// Add up the numbers of all ranks, in the order of ranks, hence to the same bits on each. ``inboxes`` are those of all ranks,
// (2, ranks, most): a row for what each rank sends.
// launch: one block of 256 threads
template <typename T> __global__ void add_up(Context* ctx, T* numbers, const long long* inboxes, int* message, long long failed, int rank,
                                             int ranks, int most, long long numbers_size) {
  begin();
  const int size = numbers_size;
  const unsigned m = *message + 1;
  const long long row = (m & 1) * ranks;
  for (int k = threadIdx.x; k < size * ranks; k += blockDim.x) {
    const int other = k / size, i = k % size;
    if (other != rank) post(numbers[i], inboxes[other] + ((row + rank) * most + i) * (2 * sizeof(T)), m);
  }
  __syncthreads();
  for (int i = threadIdx.x; i < size; i += blockDim.x) {
    T total(0);
    for (int other = 0; other < ranks; ++other)
      total += other == rank ? numbers[i] : await<T>(inboxes[rank] + ((row + other) * most + i) * (2 * sizeof(T)), m, failed);
    numbers[i] = total;
  }
  if (threadIdx.x == 0) *message = m;
}
