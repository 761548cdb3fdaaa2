// The arguments of a launch (launch.cpp): a call of Python's completes and packs them by what a `Launcher` was made of.
//
// parameters   for each (form, fill, of): `form`, how it is passed: p address, A Array, T Table, B Blocks (array.hpp),
//              f, d, i, q, ?, F and D a number as in `struct`, F and D complex. `fill`, what the loader adds: "" none,
//              n the count of the launch, or of the array that is parameter number `of`: z its size, r the distance
//              of its rows, c the distance of its columns.
// rule         a dict of integers; a key that ends in _at is the number of a parameter, −1 for none:
//              count_at, count      the count: 0 one, 1 slices (size − 1), 2 rows, 3 elements, 4 columns of that array
//              height_at            blocks of that many threads, one for each of the count
//              blocks, threads      a fixed grid, if blocks > 0
//              threads, threads_at, lanes, lanes_at, each, most       else: threads of a block, threads and elements of
//                                   a thread for one of the count; the largest number of blocks, 0 for any
//              shared_at, cluster_at   bytes of dynamic shared memory; blocks in a cluster
//              attribute            CUlaunchAttributeID, 0 for none
//              each_column          1: after the parameters follow the steps of all arrays
// deciding     for each template argument (kind, of): t the type, i the value, b whether the array is empty or not
// wide         numbers of the arrays that begin at multiples of 16 bytes
#pragma once
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <stdint.h>
#include <string.h>

#include <algorithm>
#include <array>
#include <vector>

namespace {

constexpr int MOST = 48, DECIDING = 6;

// Of CUDA's driver (cuda.h).
struct Attribute {
  int id;
  char padding[4];
  int value[16];
};
struct Config {
  unsigned grid[3], block[3], shared;
  void* stream;
  Attribute* attributes;
  unsigned count;
};
using Driver = int (*)(const Config*, void* function, void** arguments, void** extra);

struct Parameter {
  char form;
  char fill;                           // n, z size, r stride (of rows), c step (of columns), or 0
  int of;
  bool array() const { return form == 'p' || form == 'A' || form == 'T' || form == 'B'; }
};

struct Rule {
  int64_t count = 0, count_at = -1, height_at = -1, blocks = 0, threads = 0, threads_at = -1, lanes = 1, lanes_at = -1;
  int64_t each = 1, most = 0, shared_at = -1, cluster_at = -1, attribute = 0, each_column = 0;
};

struct Function {
  std::array<int64_t, DECIDING> key;
  void* address;
  int64_t shared;                      // bytes of dynamic shared memory that it may have
};

struct Launcher {
  PyObject* owner;
  Driver driver;
  std::vector<Parameter> parameters;
  std::vector<std::pair<char, int>> deciding;
  std::vector<int> wide;
  Rule rule;
  std::vector<Function> functions;
};

struct Names {
  PyObject *data, *ptr, *size, *shape, *strides, *itemsize, *dtype, *num, *real, *imag;
} names;

// -- reading; an error of Python's is set where `failed` says so ------------------------------------------------------

int64_t integer(PyObject* value) { return PyLong_AsLongLong(value); }

int64_t attribute(PyObject* object, PyObject* name) {
  PyObject* found = PyObject_GetAttr(object, name);
  const int64_t number = found ? integer(found) : -1;
  Py_XDECREF(found);
  return number;
}

int64_t nested(PyObject* object, PyObject* outer, PyObject* inner) {
  PyObject* found = PyObject_GetAttr(object, outer);
  const int64_t number = found ? attribute(found, inner) : -1;
  Py_XDECREF(found);
  return number;
}

// Read a tuple of integers, such as a shape; return its length, or −1.
int integers(PyObject* object, PyObject* name, int64_t* out, int most) {
  PyObject* tuple = PyObject_GetAttr(object, name);
  if (!tuple) return -1;
  const int count = int(std::min<Py_ssize_t>(PyTuple_Size(tuple), most));
  for (int k = 0; k < count; ++k) out[k] = integer(PyTuple_GetItem(tuple, k));
  Py_DECREF(tuple);
  return count;
}

double part(PyObject* object, PyObject* name) {
  PyObject* found = PyObject_GetAttr(object, name);
  const double number = found ? PyFloat_AsDouble(found) : -1;
  Py_XDECREF(found);
  return number;
}

// The arguments of one launch. `extra` are the values of the parameters that the caller left out.
struct Call {
  const Launcher& launcher;
  PyObject* values;                    // a tuple
  PyObject* steps;                     // a tuple of the distances between columns, or None
  int64_t given, extra[MOST];
  int64_t count, grid, block, shared, cluster;

  Call(const Launcher& launcher, PyObject* values, PyObject* steps)
      : launcher(launcher), values(values), steps(steps), given(PyTuple_Size(values)) {}

  PyObject* value(int k) const { return PyTuple_GetItem(values, k); }        // a borrowed reference
  int64_t number(int64_t k) const { return k < given ? integer(value(int(k))) : extra[k]; }
  int64_t or_number(int64_t fixed, int64_t at) const { return at < 0 ? fixed : number(at); }
  int64_t step(int k) const { return steps == Py_None ? 0 : integer(PyTuple_GetItem(steps, k)); }

  // Complete the arguments and find the grid; false after an error.
  bool complete() {
    const Launcher& l = launcher;
    const int parameters = int(l.parameters.size());
    if (given > parameters) {
      PyErr_Format(PyExc_TypeError, "%lld arguments of a kernel: expected at most %d", (long long)given, parameters);
      return false;
    }
    count = counted();
    for (int k = int(given); k < parameters; ++k) {
      const Parameter& p = l.parameters[k];
      if (!p.fill) {
        PyErr_Format(PyExc_TypeError, "%lld arguments of a kernel: argument %d is missing", (long long)given, k);
        return false;
      }
      int64_t strides[2] = {0, 0};
      if (p.fill == 'r' && integers(value(p.of), names.strides, strides, 2) < 0) return false;
      extra[k] = p.fill == 'n' ? count : p.fill == 'z' ? attribute(value(p.of), names.size)
               : p.fill == 'r' ? strides[0] / attribute(value(p.of), names.itemsize) : step(p.of);
    }
    shared = or_number(0, l.rule.shared_at), cluster = or_number(1, l.rule.cluster_at);
    if (l.rule.height_at >= 0) {
      grid = count, block = number(l.rule.height_at);
    } else if (l.rule.blocks) {
      grid = l.rule.blocks, block = l.rule.threads;
    } else {
      block = or_number(l.rule.threads, l.rule.threads_at);
      const int64_t share = block * l.rule.each, threads = count * or_number(l.rule.lanes, l.rule.lanes_at);
      grid = share > 0 ? (threads + share - 1) / share : 0;
      if (l.rule.most) grid = std::min(grid, l.rule.most);
    }
    return !PyErr_Occurred();
  }

  int64_t counted() const {
    if (!launcher.rule.count) return 1;
    PyObject* array = value(int(launcher.rule.count_at));
    if (launcher.rule.count == 3) return attribute(array, names.size);
    if (launcher.rule.count == 1) return std::max<int64_t>(attribute(array, names.size) - 1, 0);
    int64_t shape[8] = {0};
    const int dimensions = integers(array, names.shape, shape, 8);
    return dimensions < 1 ? 0 : launcher.rule.count == 2 ? shape[0] : shape[dimensions - 1];
  }

  // What decides which instantiation of the template runs.
  std::array<int64_t, DECIDING> key() const {
    std::array<int64_t, DECIDING> key{};
    for (size_t k = 0; k < launcher.deciding.size(); ++k) {
      const auto [kind, at] = launcher.deciding[k];
      if (kind == 'i') key[k] = number(at);
      else if (kind == 'b') key[k] = attribute(value(at), names.size) > 0;
      else {
        PyObject* dtype = PyObject_GetAttr(value(at), names.dtype);
        key[k] = dtype ? attribute(dtype, names.num) : -1;
        Py_XDECREF(dtype);
      }
    }
    return key;
  }
};

// The bytes of the arguments, each at a multiple of 8, and their addresses.
struct Packed {
  int64_t words[8 * MOST];
  void* addresses[2 * MOST + 1];
  int used = 0, count = 0;

  void begin() { addresses[count++] = words + used; }
  void put(int64_t word) { words[used++] = word; }
  void put(double number) { memcpy(words + used++, &number, 8); }
  void put_floats(float first, float second = 0) {
    const float both[2] = {first, second};
    memcpy(words + used++, both, 8);
  }

  // Append parameter k of a call; false after an error.
  bool add(const Call& call, int k) {
    const Parameter& p = call.launcher.parameters[k];
    begin();
    if (k >= call.given) {
      put(call.extra[k]);
      return true;
    }
    PyObject* value = call.value(k);
    if (p.array()) {
      const int64_t size = attribute(value, names.size);
      put(size > 0 ? nested(value, names.data, names.ptr) : int64_t(0));
      int64_t shape[3] = {0, 0, 0}, strides[3] = {0, 0, 0};
      if (p.form == 'A') put(size);
      if (p.form == 'T' || p.form == 'B') {
        const int wanted = p.form == 'T' ? 2 : 3;
        if (integers(value, names.shape, shape, 3) != wanted) {
          if (!PyErr_Occurred())
            PyErr_Format(PyExc_TypeError, "argument %d of a kernel: expected %d dimensions", k, wanted);
          return false;
        }
        put(shape[0]), put(shape[1]);
        if (p.form == 'B') put(shape[2]);
        else if (integers(value, names.strides, strides, 3) > 0) put(strides[0] / attribute(value, names.itemsize));
      }
    } else if (p.form == 'd') {
      put(PyFloat_AsDouble(value));
    } else if (p.form == 'f') {
      put_floats(float(PyFloat_AsDouble(value)));
    } else if (p.form == 'F') {
      put_floats(float(part(value, names.real)), float(part(value, names.imag)));
    } else if (p.form == 'D') {
      put(part(value, names.real)), put(part(value, names.imag));
    } else if (p.form == '?') {
      put(int64_t(PyObject_IsTrue(value)));
    } else {
      const int64_t number = integer(value);
      if (p.form == 'i' && number != int32_t(number)) {
        PyErr_Format(PyExc_OverflowError, "argument %d of a kernel: expected an int of 32 bits, and %lld came", k,
                     (long long)number);
        return false;
      }
      put(number);
    }
    return !PyErr_Occurred();
  }
};

}  // namespace
