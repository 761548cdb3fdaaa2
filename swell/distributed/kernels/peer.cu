// Messages between GPUs by peer access: a kernel writes values straight into another GPU's memory, and a kernel there
// polls for them.
//
// Each word of 8 bytes holds 4 bytes of a value and the number of its message, and arrives as a whole. A reader that
// finds the expected message number has the value, too: no fence and no flag is needed. (NCCL's LL protocol works in
// this way.) Every entry has two places in the inbox, for even and odd message numbers. A rank sends message m + 2 only
// after it received its neighbour's message m + 1, and the neighbour sent this one only after it had read message m.
//
// These kernels send and wait even after the judge's verdict, since the kernels of the other ranks do: no rank may wait
// for a message that is never sent. Products, dots and sums stay unchanged then.
//
// With several right-hand sides blockIdx.y is the column; inboxes, places and message numbers have a part for each
// column.
#include "bulk.cuh"
#include "context.cuh"
#include "packet.cuh"

constexpr int PATIENCE = 1 << 12;        // polls of a place between two checks whether another rank has failed

DEVICE void begin() {
  let_next_start();
  wait_for_previous();
}

// Writes a value and its message number to a place, a Packet.
template <class T> DEVICE void post(T value, unsigned long long place, unsigned message) {
  Packet<T>().send(reinterpret_cast<u64*>(place), message, value);
}

// Waits for entry k of a message in an inbox of shape (2, n), and returns it; an unspecified value if another rank has
// failed.
template <class T>
DEVICE T await(unsigned long long inbox, unsigned message, long long n, long long k, long long failed) {
  const u64* place = reinterpret_cast<const u64*>(inbox + ((message & 1) * n + k) * sizeof(Packet<T>));
  Packet<T> packet;
  packet.look(place);
  for (int looks = 1; !packet.fresh(message); ++looks) {
    if (looks % PATIENCE == 0 && *reinterpret_cast<const volatile int*>(failed)) break;
    packet.look(place);
  }
  return packet.value();
}

// The address of this column's part of ``inbox``: (columns, 2, n) values of type T.
template <class T>
DEVICE unsigned long long of_column(long long inbox, long long n) {
  return inbox + 2 * blockIdx.y * n * sizeof(Packet<T>);
}

// Sends x[index] to the addresses ``places``: (columns, 2, n), first the places for even message numbers, then for odd
// ones. Entries whose index is -1 send 0. ``message``, (columns, n), holds the number of each entry's last message.
// launch: elements of index, 256 threads
template <typename T>
__global__ void send(Context* ctx, const int* index, const T* x, const long long* places, int* message, long long n) {
  begin();
  const long long k = thread_id();
  if (k >= n) return;
  const long long at = blockIdx.y * n + k;
  const unsigned m = message[at] + 1;
  message[at] = m;
  post(index[k] < 0 ? T(0) : x[index[k]], places[(2 * blockIdx.y + (m & 1)) * n + k], m);
}

// Waits for the n entries of ``inbox`` (columns, 2, n) and stores them in out[index]; entries whose index is -1 are
// dropped. ``sent`` holds the number of this rank's own last message, of all columns, hence of the awaited one: a rank
// starts every exchange before it finishes it.
// launch: elements of index, 256 threads
template <typename T>
__global__ void receive(Context* ctx, const int* index, long long inbox, const int* sent, long long failed, T* out,
    long long n) {
  begin();
  const long long k = thread_id();
  if (k >= n) return;
  const T value = await<T>(of_column<T>(inbox, n), *sent, n, k, failed);
  if (index[k] >= 0) out[index[k]] = value;
}

// Row k of A times the received values; A is as in halo.cu.
template <int BLOCK, class T>
DEVICE T received_row(const int* indptr, const int* indices, const T* data, long long inbox, long long size, int sent,
    long long failed, long long k) {
  const unsigned long long own = of_column<T>(inbox, size);
  const long long i = k / BLOCK, r = k % BLOCK;
  T total(0);
  for (long long at = indptr[i]; at < indptr[i + 1]; ++at) {
    const T* row = data + (at * BLOCK + r) * BLOCK;
    const long long first = (long long)indices[at] * BLOCK;
#pragma unroll
    for (int c = 0; c < BLOCK; ++c) total = fused(row[c], await<T>(own, sent, size, first + c, failed), total);
  }
  return total;
}

// Waits for the received values v, and out[rows] += alpha A v. ``received`` only passes the length of v.
// launch: elements of rows, 256 threads
template <typename T, int BLOCK>
__global__ void add_received(Context* ctx, const int* rows, const int* indptr, const int* indices, const T* data,
    long long inbox, const T* received, const int* sent, long long failed, T* out, int block, T alpha, long long n,
    long long received_size) {
  begin();
  const long long k = thread_id();
  if (k >= n) return;
  const T total = received_row<BLOCK>(indptr, indices, data, inbox, received_size, *sent, failed, k);
  if (!over(ctx)) out[rows[k]] = fused(alpha, total, out[rows[k]]);
}

// Like add_received with alpha = 1; also adds the resulting change of (w, out) to dots[0].
// launch: elements of rows, 256 threads, at most 2 blocks per multiprocessor
template <typename T, int BLOCK>
__global__ void add_received_dot(Context* ctx, const int* rows, const int* indptr, const int* indices, const T* data,
    long long inbox, const T* received, const int* sent, long long failed, T* out, const T* w, acc_t<T>* dots,
    int block, long long n, long long received_size) {
  begin();
  const bool ended = over(ctx);
  acc_t<T> wy(0);
  for (long long k = thread_id(); k < n; k += threads()) {
    const int row = rows[k];
    const T total = received_row<BLOCK>(indptr, indices, data, inbox, received_size, *sent, failed, k);
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

// Sums the numbers of all ranks in the order of ranks, hence to equal bits on each rank. ``inboxes`` are the addresses
// of all ranks' inboxes (2, ranks, most), with a row for each sender, of which a column has ``share`` places. A block
// waits only for the block of the same index on the other ranks, and blocks start in order: so some block can always
// proceed.
// launch: elements of numbers, 256 threads
template <typename T>
__global__ void sum_over_ranks(Context* ctx, T* numbers, const long long* inboxes, int* message, long long failed,
    int rank, int ranks, int most, int share, long long n) {
  begin();
  const long long k = thread_id();
  if (k >= n) return;
  const long long at = blockIdx.y * (long long)share + k;
  const unsigned m = message[at] + 1;
  message[at] = m;
  const T own = numbers[k];
  const long long row = (m & 1) * ranks;
  for (int other = 0; other < ranks; ++other)
    if (other != rank) post(own, inboxes[other] + ((row + rank) * most + at) * sizeof(Packet<T>), m);
  T total(0);
  for (int other = 0; other < ranks; ++other)
    total += other == rank ? own : await<T>(inboxes[rank], m, 0, (row + other) * most + at, failed);
  if (!over(ctx)) numbers[k] = total;
}
