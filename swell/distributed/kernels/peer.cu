// Numbers written straight into the memory of other GPUs, and waited for there.
//
// 4 bytes of a number travel with the number of their message, in one word of 8 bytes, which arrives whole: whoever finds the
// message that it waits for has the value too, so that nothing is fenced and no flag follows. (NCCL's LL protocol does so.)
// Every entry has two places, for messages of even and odd number: a rank sends message m + 2 when it has had its neighbour's
// m + 1, and the neighbour sent that when it had read m.
//
// These kernels send and wait also after the judge has spoken, as the other ranks' do: none must wait for what is not sent. What they
// would write to vectors and scalars is left out then.
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

// Entry k of a message to an inbox of (2, n), as soon as it is there; whatever is in its place if another rank has failed.
template <class T> DEVICE T await(unsigned long long inbox, unsigned message, long long n, long long k, long long failed) {
  const unsigned long long place = inbox + ((message & 1) * n + k) * (2 * sizeof(T));
  T value;
  unsigned* part = reinterpret_cast<unsigned*>(&value);
#pragma unroll
  for (int k = 0; k < sizeof(T) / 4; k += 2)
    for (int looks = 1; !arrived(place + 8 * k, message, part + k, sizeof(T) > 4); ++looks)
      if (looks % PATIENCE == 0 && *reinterpret_cast<const volatile int*>(failed)) break;
  return value;
}

// x[index] to ``places``, each entry's for messages of even number, then each entry's for odd ones; 0 where the index is -1.
// ``message`` has the number of each entry's last one.
// launch: elements of message, 256 threads
template <typename T> __global__ void send(Context* ctx, const int* index, const T* x, const long long* places, int* message, long long n) {
  begin();
  const long long k = thread_id();
  if (k >= n) return;
  const unsigned m = message[k] + 1;
  message[k] = m;
  post(index[k] < 0 ? T(0) : x[index[k]], places[(m & 1) * n + k], m);
}

// out[index] = what others have sent to ``inbox`` (2, n), which is nothing where the index is -1. ``sent`` counts this rank's own
// messages: it begins every exchange before it ends it.
// launch: elements of index, 256 threads
template <typename T> __global__ void receive(Context* ctx, const int* index, long long inbox, const int* sent, long long failed, T* out, long long n) {
  begin();
  const long long k = thread_id();
  if (k >= n) return;
  const T value = await<T>(inbox, *sent, n, k, failed);
  if (index[k] >= 0) out[index[k]] = value;
}

// A row of A times what others have sent.
template <class T> DEVICE T received_row(int at, int end, const int* indices, const T* data, long long inbox, long long size, int sent, long long failed) {
  T total(0);
  for (; at < end; ++at) total = fused(data[at], await<T>(inbox, sent, size, indices[at], failed), total);
  return total;
}

// out[rows] += alpha A (what others have sent), of which ``received`` has the size.
// launch: elements of rows, 256 threads
template <typename T> __global__ void add_received(Context* ctx, const int* rows, const int* indptr, const int* indices, const T* data, long long inbox,
                                                   const T* received, const int* sent, long long failed, T* out, T alpha, long long n,
                                                   long long received_size) {
  begin();
  const long long k = thread_id();
  if (k >= n) return;
  const T total = received_row(indptr[k], indptr[k + 1], indices, data, inbox, received_size, *sent, failed);
  if (!over(ctx)) out[rows[k]] = fused(alpha, total, out[rows[k]]);
}

// The same for alpha = 1, with what it changes in dots[0] = (w, out).
// launch: elements of rows, 256 threads, at most 2 blocks per multiprocessor
template <typename T> __global__ void add_received_dot(Context* ctx, const int* rows, const int* indptr, const int* indices, const T* data,
                                                        long long inbox, const T* received, const int* sent, long long failed, T* out,
                                                        const T* w, acc_t<T>* dots, long long n, long long received_size) {
  begin();
  const bool ended = over(ctx);
  acc_t<T> wy(0);
  for (long long k = thread_id(); k < n; k += threads()) {
    const int row = rows[k];
    const T total = received_row(indptr[k], indptr[k + 1], indices, data, inbox, received_size, *sent, failed);
    if (ended) continue;
    const T before = out[row], after = before + total;
    out[row] = after;
    wy = conj_fused(w[row], after, conj_fused(w[row], -before, wy));
  }
  double change[scalar<T>::parts];
  split(change, wy);
  if (!grid_sum(ctx, change) || ended) return;
  join(wy, change);
  dots[0] += wy;
}

// Add up the numbers of all ranks, in the order of ranks, hence to the same bits on each. ``inboxes`` are those of all ranks,
// (2, ranks, most): a row for what each rank sends. A block waits only for the same block of the others, and those start in
// order: some block always has what it waits for.
// launch: elements of numbers, 256 threads
template <typename T> __global__ void add_up(Context* ctx, T* numbers, const long long* inboxes, int* message, long long failed, int rank, int ranks,
                                             int most, long long n) {
  begin();
  const long long k = thread_id();
  if (k >= n) return;
  const unsigned m = message[k] + 1;
  message[k] = m;
  const T own = numbers[k];
  const long long row = (m & 1) * ranks;
  for (int other = 0; other < ranks; ++other)
    if (other != rank) post(own, inboxes[other] + ((row + rank) * most + k) * (2 * sizeof(T)), m);
  T total(0);
  for (int other = 0; other < ranks; ++other)
    total += other == rank ? own : await<T>(inboxes[rank], m, 0, (row + other) * most + k, failed);
  if (!over(ctx)) numbers[k] = total;
}
