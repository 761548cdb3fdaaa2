// A parallel copy on a CPU; products are compared with its speed.
#include "../../core/kernels/array.hpp"
#include "../../core/native/launcher.hpp"
#include "../../core/native/threads.hpp"

namespace {

void copy(Array<const double> x, Array<double> out) {
  ranges(x.size, x.size, [=](int64_t begin, int64_t end) {
    std::copy(x.data + begin, x.data + end, out.data + begin);
  });
}

}  // namespace

KERNELS("swell.bench.copy", PLAIN(copy))
