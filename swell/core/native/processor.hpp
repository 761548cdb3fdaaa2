// The level of x86-64 of this processor, as it says itself: compilers' own tests need their run-time library.
#pragma once
#include <cpuid.h>

#include <initializer_list>

// Return 3 for AVX2, FMA, BMI and what belongs to them, and a system that saves their registers; 2 for SSE4.2; else 1.
inline int processor_level() {
  unsigned a, b, c, d, features = 0, extended = 0, more = 0;
  if (__get_cpuid(1, &a, &b, &c, &d)) features = c;
  if (__get_cpuid_count(7, 0, &a, &b, &c, &d)) extended = b;
  if (__get_cpuid(0x80000001, &a, &b, &c, &d)) more = c;
  const auto all = [](unsigned found, std::initializer_list<int> bits) {
    for (int bit : bits)
      if (!(found >> bit & 1)) return false;
    return true;
  };
  if (!all(features, {0, 9, 13, 19, 20, 23}) || !all(more, {0})) return 1;   // SSE3, SSSE3, CX16, SSE4, POPCNT; LAHF
  if (!all(features, {12, 22, 27, 28, 29}) || !all(extended, {3, 5, 8}) || !all(more, {5})) return 2;
  asm volatile("xgetbv" : "=a"(a), "=d"(d) : "c"(0));
  return (a & 6) == 6 ? 3 : 2;
}
