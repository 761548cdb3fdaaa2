// Inner products of two blocks of vectors on a CPU; gram.cu has the same kernel for a GPU.
#include "slots/swell/krylov/gram.hpp"

#include "../../core/native/block.hpp"
#include "../../core/native/launcher.hpp"

namespace {

// partial = Pᴴ Q, of each slice of rows. `states`, `rows`: as in core/native/block.hpp. P and Q have `count` vectors.
// `height`: threads of a block on a GPU.
template <class T>
void gram(Contexts* states, Table<const T> P, Table<const T> Q, Blocks<acc_t<T>> partial, Array<const int64_t> rows,
          int64_t count, int64_t height) {
  if (all_stopped(states)) return;
  ranges(rows.size - 1, P.columns, [=](int64_t begin, int64_t end) {
    for (int64_t p = begin; p < end; ++p) {
      const auto own = matrix(partial, p);
      clear(own);
      for (int64_t lo = rows[p]; lo < rows[p + 1]; lo += LONG_TILE)
        add_gram<T>(P, Q, {}, lo, min(LONG_TILE, rows[p + 1] - lo), own);
    }
  });
}

}  // namespace

KERNELS("swell.krylov.gram", VALUES(gram))
