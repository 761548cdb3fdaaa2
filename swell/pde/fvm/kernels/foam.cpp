// Kernel of the parser of OpenFOAM's files.
#include "../../../core/native/launcher.hpp"

namespace {

// Split `numbers`, which has "n p1 ... pn" for each face, into ptr and points: face f has points[ptr[f]:ptr[f+1]].
// Return false if the counts do not fit the sizes of `ptr` and `points`.
bool split_faces(Array<const int64_t> numbers, Array<int64_t> ptr, Array<int64_t> points) {
  int64_t at = 0, total = 0;
  ptr[0] = 0;
  for (int64_t f = 0; f < ptr.size - 1; ++f) {
    if (at >= numbers.size) return false;
    const int64_t length = numbers[at++];
    if (length < 0 || length > numbers.size - at || length > points.size - total) return false;
    for (int64_t k = 0; k < length; ++k) points[total++] = numbers[at++];
    ptr[f + 1] = total;
  }
  return at == numbers.size && total == points.size;
}

}  // namespace

KERNELS("swell.pde.fvm.foam", PLAIN(split_faces))
