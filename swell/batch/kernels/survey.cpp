// What the choice of a method asks of each system of a batch, on a CPU; survey.cu is the GPU's version.
#include "slots/swell/batch/survey.hpp"

#include "batch.hpp"

namespace {

// `survey` of the system with the values a.
template <class T>
bool looks_definite(Array<const int32_t> diagonal, Array<const int32_t> mirror, Array<const T> a, double tolerance) {
  double most = 0, difference = 0, total = 0;
  for (int64_t k = 0; k < a.size; ++k) {
    const double of_a = size(a[k]), of_both = size(a[k] - (mirror[k] >= 0 ? conj(a[mirror[k]]) : T(0)));
    total += of_a;
    most = std::max(most, of_a), difference = std::max(difference, of_both);
  }
  if (!isfinite(total)) return true;
  for (int64_t i = 0; i < diagonal.size; ++i) if (!(real(a[diagonal[i]]) > 0)) return false;
  return difference <= tolerance * most;
}

// definite[s] = 1 if system s is Hermitian, to `tolerance` of its largest entry, with a positive diagonal, or if it is
// not finite; else 0. `indptr`, `diagonal`, `values`: as in `Batch`. `mirror`: the entry of aⱼᵢ for each aᵢⱼ, or −1.
template <class T>
void survey(Array<const int32_t> indptr, Array<const int32_t> indices, Array<const int32_t> diagonal,
            Array<const int32_t> mirror, Table<const T> values, double tolerance, Array<int32_t> definite,
            int64_t threads) {
  ranges(values.rows, values.rows * values.columns, [=](int64_t begin, int64_t end) {
    for (int64_t s = begin; s < end; ++s) definite[s] = looks_definite<T>(diagonal, mirror, values[s], tolerance);
  });
}

}  // namespace

KERNELS("swell.batch.survey", VALUES(survey))
