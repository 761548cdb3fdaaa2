// Launches of GPU kernels: a call packs its arguments, finds the compiled function for their types, and hands both to
// CUDA's driver, whose address comes from Python. core/cuda_kernels.py makes a `Launcher` for each kernel and type:
//
//     Launcher(owner, driver, parameters, deciding, wide, rule)
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
//
// What is rare is the owner's: resolve(values, shared) → (function, bytes of shared memory it may have), for a new
// combination of types; require_aligned(number, array); widen(function) for a cluster of more than 8 blocks;
// failed(status, grid, block, shared), which raises.
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <stdint.h>
#include <string.h>

#include <algorithm>
#include <array>
#include <vector>

#include "launch.hpp"

namespace {

constexpr int MOST = 48, DECIDING = 6, PORTABLE = 8, CLUSTER = 4;
constexpr int64_t WIDE = 16;

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

struct LauncherObject {
  PyObject_HEAD
  Launcher* launcher;
};

Launcher& of(PyObject* self) { return *reinterpret_cast<LauncherObject*>(self)->launcher; }

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

// Return the compiled function for a call, asking the owner if there is none; its address is null after an error.
Function function_of(Launcher& launcher, const Call& call) {
  const Function none = {{}, nullptr, 0};
  const auto key = call.key();
  if (PyErr_Occurred()) return none;
  for (Function& function : launcher.functions)
    if (function.key == key && call.shared <= function.shared) return function;
  PyObject* all = PyList_New(0);                 // the owner wants all values
  for (int k = 0; all && k < int(launcher.parameters.size()); ++k) {
    PyObject* value = k < call.given ? call.value(k) : PyLong_FromLongLong(call.extra[k]);
    const bool failed = !value || PyList_Append(all, value);
    if (k >= call.given) Py_XDECREF(value);
    if (failed) Py_CLEAR(all);
  }
  PyObject* found = all ? PyObject_CallMethod(launcher.owner, "resolve", "OL", all, (long long)call.shared) : nullptr;
  Py_XDECREF(all);
  if (!found) return none;
  const Function made = {key, reinterpret_cast<void*>(integer(PyTuple_GetItem(found, 0))),
                         integer(PyTuple_GetItem(found, 1))};
  Py_DECREF(found);
  if (PyErr_Occurred()) return none;
  for (Function& function : launcher.functions)
    if (function.key == key) return function = made;             // it may have more shared memory now
  launcher.functions.push_back(made);
  return made;
}

bool require_aligned(const Launcher& launcher, const Call& call) {
  for (const int k : launcher.wide) {
    PyObject* array = call.value(k);
    int64_t shape[3] = {0, 0, 0}, strides[3] = {0, 0, 0};
    const int dimensions = integers(array, names.shape, shape, 3);
    bool suspect = nested(array, names.data, names.ptr) % WIDE;
    if (dimensions == 2 && shape[0] > 1 && integers(array, names.strides, strides, 3) > 0)
      suspect = suspect || strides[0] % WIDE;
    const auto step = (long long)call.step(k);
    if (suspect || step) {
      PyObject* done = PyObject_CallMethod(launcher.owner, "require_aligned", "iOL", k, array, step);
      if (!done) return false;
      Py_DECREF(done);
    }
    if (PyErr_Occurred()) return false;
  }
  return true;
}

// launch(context, stream, values, steps, columns): 1 if the kernel was launched, 0 if it has nothing to do.
PyObject* launch(PyObject* self, PyObject* const* arguments, Py_ssize_t count) {
  Launcher& launcher = of(self);
  if (count != 5 || !PyTuple_Check(arguments[2])) {
    PyErr_SetString(PyExc_TypeError, "launch(context, stream, values, steps, columns): expected these, values a tuple");
    return nullptr;
  }
  Call call(launcher, arguments[2], arguments[3]);
  const int64_t context = integer(arguments[0]), stream = integer(arguments[1]), columns = integer(arguments[4]);
  if (PyErr_Occurred() || !call.complete()) return nullptr;
  if (call.grid <= 0) return PyLong_FromLong(0);
  const Function function = function_of(launcher, call);
  if (!function.address || !require_aligned(launcher, call)) return nullptr;
  Packed packed;
  packed.begin(), packed.put(context);
  for (int k = 0; k < int(launcher.parameters.size()); ++k)
    if (!packed.add(call, k)) return nullptr;
  if (launcher.rule.each_column)
    for (int k = 0; k < int(launcher.parameters.size()); ++k)
      if (launcher.parameters[k].array()) packed.begin(), packed.put(call.step(k));
  if (call.cluster > PORTABLE) {
    const auto address = (long long)reinterpret_cast<intptr_t>(function.address);
    PyObject* done = PyObject_CallMethod(launcher.owner, "widen", "L", address);
    if (!done) return nullptr;
    Py_DECREF(done);
  }
  Attribute attribute{};
  attribute.id = call.cluster > 1 ? CLUSTER : int(launcher.rule.attribute);
  attribute.value[0] = call.cluster > 1 ? int(call.cluster) : 1;
  attribute.value[1] = attribute.value[2] = 1;
  const Config config = {{unsigned(call.grid), unsigned(columns), 1}, {unsigned(call.block), 1, 1},
                         unsigned(call.shared), reinterpret_cast<void*>(stream), &attribute, attribute.id > 0};
  int status;
  Py_BEGIN_ALLOW_THREADS                         // the driver waits if its queue is full
  status = launcher.driver(&config, function.address, packed.addresses, nullptr);
  Py_END_ALLOW_THREADS
  if (!status) return PyErr_Occurred() ? nullptr : PyLong_FromLong(1);
  PyObject* done = PyObject_CallMethod(launcher.owner, "failed", "iLLL", status, (long long)call.grid,
                                       (long long)call.block, (long long)call.shared);
  Py_XDECREF(done);
  return done ? PyErr_Format(PyExc_RuntimeError, "launch: status %d", status) : nullptr;
}

// geometry(values, steps): (blocks, threads of a block).
PyObject* geometry(PyObject* self, PyObject* const* arguments, Py_ssize_t count) {
  if (count != 2 || !PyTuple_Check(arguments[0])) {
    PyErr_SetString(PyExc_TypeError, "geometry(values, steps): expected these, values a tuple");
    return nullptr;
  }
  Call call(of(self), arguments[0], arguments[1]);
  return call.complete() ? Py_BuildValue("LL", (long long)call.grid, (long long)call.block) : nullptr;
}

// -- the type ---------------------------------------------------------------------------------------------------------

bool read_rule(PyObject* dict, Rule& rule) {
  const std::pair<const char*, int64_t*> fields[] = {
      {"count", &rule.count}, {"count_at", &rule.count_at}, {"height_at", &rule.height_at}, {"blocks", &rule.blocks},
      {"threads", &rule.threads}, {"threads_at", &rule.threads_at}, {"lanes", &rule.lanes},
      {"lanes_at", &rule.lanes_at},
      {"each", &rule.each}, {"most", &rule.most}, {"shared_at", &rule.shared_at}, {"cluster_at", &rule.cluster_at},
      {"attribute", &rule.attribute}, {"each_column", &rule.each_column}};
  for (const auto& [name, field] : fields)
    if (PyObject* value = PyDict_GetItemString(dict, name)) *field = integer(value);       // a borrowed reference
  return !PyErr_Occurred();
}

PyObject* create(PyTypeObject* type, PyObject* arguments, PyObject*) {
  PyObject *owner, *parameters, *deciding, *wide, *rule;
  unsigned long long driver;
  if (!PyArg_ParseTuple(arguments, "OKO!O!O!O!", &owner, &driver, &PyTuple_Type, &parameters, &PyTuple_Type, &deciding,
                        &PyTuple_Type, &wide, &PyDict_Type, &rule))
    return nullptr;
  auto make = reinterpret_cast<allocfunc>(PyType_GetSlot(type, Py_tp_alloc));
  PyObject* self = make(type, 0);
  if (!self) return nullptr;
  auto* made = new Launcher{owner, reinterpret_cast<Driver>(driver), {}, {}, {}, {}, {}};
  reinterpret_cast<LauncherObject*>(self)->launcher = made;
  Py_INCREF(owner);
  for (Py_ssize_t k = 0; k < PyTuple_Size(parameters); ++k) {
    const char *form, *fill;
    int at;
    if (!PyArg_ParseTuple(PyTuple_GetItem(parameters, k), "ssi", &form, &fill, &at)) break;
    made->parameters.push_back({form[0], fill[0], at});
  }
  for (Py_ssize_t k = 0; k < PyTuple_Size(deciding) && !PyErr_Occurred(); ++k) {
    const char* kind;
    int at;
    if (PyArg_ParseTuple(PyTuple_GetItem(deciding, k), "si", &kind, &at)) made->deciding.emplace_back(kind[0], at);
  }
  for (Py_ssize_t k = 0; k < PyTuple_Size(wide); ++k) made->wide.push_back(int(integer(PyTuple_GetItem(wide, k))));
  if (!PyErr_Occurred() && (made->parameters.size() > MOST || made->deciding.size() > DECIDING))
    PyErr_Format(PyExc_ValueError, "a kernel of a GPU has at most %d parameters and %d template arguments", MOST,
                 DECIDING);
  if (PyErr_Occurred() || !read_rule(rule, made->rule)) Py_CLEAR(self);
  return self;
}

void destroy(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  if (Launcher* launcher = reinterpret_cast<LauncherObject*>(self)->launcher) {
    Py_DECREF(launcher->owner);
    delete launcher;
  }
  reinterpret_cast<freefunc>(PyType_GetSlot(type, Py_tp_free))(self);
  Py_DECREF(type);
}

PyMethodDef methods[] = {
    {"launch", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)(void)>(launch)), METH_FASTCALL,
     "launch(context, stream, values, steps, columns): 1 if the kernel was launched, 0 if it has nothing to do."},
    {"geometry", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)(void)>(geometry)), METH_FASTCALL,
     "geometry(values, steps): (blocks, threads of a block)."},
    {}};

}  // namespace

bool add_launcher(PyObject* module, const char* name) {
  names = {PyUnicode_InternFromString("data"), PyUnicode_InternFromString("ptr"), PyUnicode_InternFromString("size"),
           PyUnicode_InternFromString("shape"), PyUnicode_InternFromString("strides"),
           PyUnicode_InternFromString("itemsize"), PyUnicode_InternFromString("dtype"),
           PyUnicode_InternFromString("num"), PyUnicode_InternFromString("real"),
           PyUnicode_InternFromString("imag")};
  PyType_Slot slots[] = {{Py_tp_new, reinterpret_cast<void*>(create)},
                         {Py_tp_dealloc, reinterpret_cast<void*>(destroy)}, {Py_tp_methods, methods}, {}};
  PyType_Spec spec = {name, sizeof(LauncherObject), 0, Py_TPFLAGS_DEFAULT, slots};
  PyObject* type = PyType_FromSpec(&spec);
  return type && !PyModule_AddObject(module, "Launcher", type);
}
