// Weights of the tested norm².
#pragma once
#include "../../core/native/lanes.hpp"

// w |r|² of rows i, a Lanes or a Tail, where `square` is |r|²; all weights are 1 if `w` is empty.
template <class I> INLINE Pack<double> weighted(Array<const float> w, I i, Pack<double> square) {
  return w.size ? wide(load(w, i)) * square : square;
}
