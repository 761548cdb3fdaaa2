// What a kernel's parameters are, for both devices: numbers, and views of arrays. A view owns nothing, checks no index.
#pragma once
#include "scalar.hpp"

// A contiguous vector.
template <class T> struct Array {
  T* data;
  int64_t size;

  template <class I> DEVICE T& operator[](I i) const { return data[i]; }
  DEVICE Array from(int64_t first) const { return {data + first, size - first}; }
  DEVICE Array moved(int64_t by) const { return {data + by, size}; }
  template <class U> DEVICE operator Array<U>() const { return {data, size}; }      // U: const T
};

// A matrix whose rows are contiguous; `stride` elements lie from one row to the next.
template <class T> struct Table {
  T* data;
  int64_t rows, columns, stride;

  DEVICE Array<T> operator[](int64_t row) const { return {data + row * stride, columns}; }
  DEVICE Table moved(int64_t by) const { return {data + by, rows, columns, stride}; }
  template <class U> DEVICE operator Table<U>() const { return {data, rows, columns, stride}; }
};

// Dense blocks of one size, an array of three dimensions: contiguous, each block row-major.
template <class T> struct Blocks {
  T* data;
  int64_t count, rows, columns;

  DEVICE T* operator[](int64_t block) const { return data + block * rows * columns; }
  template <class U> DEVICE operator Blocks<U>() const { return {data, count, rows, columns}; }
};

// A vector of unsigned numbers of 1, 2 or 4 bytes each, for numbers that are read once a row: one kernel serves all.
struct Unsigned {
  const void* data;
  int64_t size, bytes;

  DEVICE int64_t operator[](int64_t i) const {
    if (bytes == 1) return static_cast<const uint8_t*>(data)[i];
    return bytes == 2 ? static_cast<const uint16_t*>(data)[i] : static_cast<const uint32_t*>(data)[i];
  }
};
