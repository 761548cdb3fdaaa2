// swell._native: the kernels of the CPU as Python functions; see launcher.hpp for how they come here.
//
//     kernel("swell.core.vector.axpy")     the function; its __self__ has name, signatures and takes_state
//     names()                              the names of all kernels
//     threads(), set_threads(count)        threads of the loops that this thread begins
//     digest                               of the sources (sources.py)
//
// A call takes some 0.1 µs. The types of the arguments choose the overload; the last one is tried first. Arrays are
// read by NumPy's own inline accessors: the buffer protocol takes 0.1 µs an array, as it writes a format string each time.
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#define NPY_NO_DEPRECATED_API NPY_2_0_API_VERSION
#include <numpy/arrayobject.h>
#include <numpy/arrayscalars.h>

#include <map>
#include <new>
#include <stdexcept>
#include <string>
#include <vector>

#include "launcher.hpp"
#include "sources_digest.hpp"
#include "threads.hpp"

using namespace launcher;

namespace {

constexpr int MOST = 40;               // arguments of a kernel
const char* const NAMES[] = {"bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64",
                             "float32", "float64", "complex64", "complex128"};
constexpr int UNKNOWN = -1;

const Kernels* files = nullptr;

struct Kernel {
  std::string name;
  std::vector<Overload> overloads;
  size_t last = 0;                     // the overload that was called last
};

struct KernelObject {
  PyObject_HEAD
  Kernel* kernel;
};

std::map<std::string, Kernel>& kernels() {
  static auto* all = new std::map<std::string, Kernel>;
  return *all;
}

// -- arguments --------------------------------------------------------------------------------------------------------

int type_number(int numpy) {
  switch (numpy) {
    case NPY_BOOL: return int(Type::BOOL);
    case NPY_BYTE: return int(Type::I8);
    case NPY_UBYTE: return int(Type::U8);
    case NPY_SHORT: return int(Type::I16);
    case NPY_USHORT: return int(Type::U16);
    case NPY_INT: return int(Type::I32);
    case NPY_UINT: return int(Type::U32);
    case NPY_LONG: return int(sizeof(long) == 8 ? Type::I64 : Type::I32);
    case NPY_ULONG: return int(sizeof(long) == 8 ? Type::U64 : Type::U32);
    case NPY_LONGLONG: return int(Type::I64);
    case NPY_ULONGLONG: return int(Type::U64);
    case NPY_FLOAT: return int(Type::F32);
    case NPY_DOUBLE: return int(Type::F64);
    case NPY_CFLOAT: return int(Type::C64);
    case NPY_CDOUBLE: return int(Type::C128);
    default: return UNKNOWN;
  }
}

int type_of_array(PyArrayObject* array) {
  return PyArray_ISNBO(PyArray_DESCR(array)->byteorder) ? type_number(PyArray_DESCR(array)->type_num) : UNKNOWN;
}

int64_t item_size(int type) {
  constexpr int64_t sizes[] = {1, 1, 1, 2, 2, 4, 4, 8, 8, 4, 8, 8, 16};
  return sizes[type];
}

// True if elements of the last dimension lie side by side. NumPy gives an empty array any strides.
bool rows_contiguous(PyArrayObject* array, int type) {
  const int last = PyArray_NDIM(array) - 1;
  return PyArray_DIM(array, last) < 2 || PyArray_STRIDE(array, last) == item_size(type) || !PyArray_SIZE(array);
}

bool take_array(PyObject* object, const Parameter& parameter, Value& value) {
  if (!PyArray_Check(object)) return false;
  auto array = reinterpret_cast<PyArrayObject*>(object);
  const int type = type_of_array(array), dimensions = parameter.form == Form::TABLE ? 2 : 1;
  if (type != int(parameter.type) || PyArray_NDIM(array) != dimensions || !rows_contiguous(array, type)) return false;
  const int flags = PyArray_FLAGS(array);
  if (!(flags & NPY_ARRAY_ALIGNED) || (parameter.written && !(flags & NPY_ARRAY_WRITEABLE))) return false;
  value.array.data = PyArray_DATA(array);
  value.array.columns = PyArray_DIM(array, dimensions - 1);
  if (dimensions == 2) {
    const int64_t size = item_size(type), stride = PyArray_STRIDE(array, 0);
    value.array.rows = PyArray_DIM(array, 0);
    value.array.stride = value.array.rows < 2 ? value.array.columns : stride / size;
    if (value.array.rows >= 2 && stride % size) return false;
  }
  return true;
}

bool take_context(PyObject* object, Value& value) {
  if (!PyTuple_Check(object) || PyTuple_Size(object) != 3) return false;
  Value part;
  void** places[] = {&value.context.flags, &value.context.limits, &value.context.history};
  for (int k = 0; k < 3; ++k) {
    if (!take_array(PyTuple_GetItem(object, k), {Form::ARRAY, k ? Type::F64 : Type::I64, true}, part)) return false;
    *places[k] = part.array.data;
  }
  return true;
}

bool is_integer(PyObject* o) { return PyLong_Check(o) || PyArray_IsScalar(o, Integer) || PyArray_IsScalar(o, Bool); }
bool is_real(PyObject* o) { return PyFloat_Check(o) || is_integer(o) || PyArray_IsScalar(o, Float); }

bool take_number(PyObject* object, Type type, Value& value) {
  if (type >= Type::C64 && !is_real(object)) {
    if (PyComplex_Check(object)) {
      value.parts[0] = PyComplex_RealAsDouble(object), value.parts[1] = PyComplex_ImagAsDouble(object);
      return true;
    }
    if (!PyArray_IsScalar(object, CFloat)) return false;
    float parts[2];
    PyArray_ScalarAsCtype(object, parts);
    value.parts[0] = parts[0], value.parts[1] = parts[1];
    return true;
  }
  if (type >= Type::F32) {
    if (!is_real(object)) return false;
    value.parts[0] = PyFloat_AsDouble(object), value.parts[1] = 0;
  } else if (type == Type::BOOL) {
    if (!PyBool_Check(object) && !PyArray_IsScalar(object, Bool)) return false;
    value.integer = PyObject_IsTrue(object);
    return true;
  } else if (!is_integer(object)) {
    return false;
  } else if (PyArray_IsScalar(object, Bool)) {
    value.integer = PyObject_IsTrue(object);
    return true;
  } else if (PyLong_Check(object)) {
    value.integer = PyLong_AsLongLong(object);
  } else {
    PyObject* index = PyNumber_Index(object);
    value.integer = index ? PyLong_AsLongLong(index) : -1;
    Py_XDECREF(index);
  }
  return !PyErr_Occurred();
}

bool take(PyObject* object, const Parameter& parameter, Value& value) {
  switch (parameter.form) {
    case Form::NUMBER: return take_number(object, parameter.type, value);
    case Form::CONTEXT: return take_context(object, value);
    default: return take_array(object, parameter, value);
  }
}

bool take_all(const Overload& overload, PyObject* const* objects, Py_ssize_t count, Value* values) {
  if (count != overload.count) return false;
  for (Py_ssize_t k = 0; k < count; ++k)
    if (!take(objects[k], overload.parameters[k], values[k])) return false;
  return true;
}

// -- errors -----------------------------------------------------------------------------------------------------------

std::string signature(const Overload& overload) {
  std::string text = "(";
  for (int k = 0; k < overload.count; ++k) {
    const Parameter& p = overload.parameters[k];
    text += k ? ", " : "";
    if (p.form == Form::CONTEXT) text += "state";
    else text += NAMES[int(p.type)] + std::string(p.form == Form::ARRAY ? "[]" : p.form == Form::TABLE ? "[,]" : "");
    text += p.written && p.form != Form::CONTEXT ? " out" : "";
  }
  return text + ")";
}

std::string described(PyObject* object) {
  if (!PyArray_Check(object)) {
    PyObject* name = PyObject_GetAttrString(reinterpret_cast<PyObject*>(Py_TYPE(object)), "__name__");
    PyObject* bytes = name ? PyUnicode_AsUTF8String(name) : nullptr;
    std::string text = bytes ? PyBytes_AsString(bytes) : "?";
    Py_XDECREF(name), Py_XDECREF(bytes);
    if (!PyTuple_Check(object)) return text;
    text += "(";
    for (Py_ssize_t k = 0; k < PyTuple_Size(object); ++k) text += (k ? ", " : "") + described(PyTuple_GetItem(object, k));
    return text + ")";
  }
  auto array = reinterpret_cast<PyArrayObject*>(object);
  const int type = type_of_array(array), dimensions = PyArray_NDIM(array);
  std::string text = type == UNKNOWN ? "array of another type" : NAMES[type];
  text += "[" + std::string(dimensions > 1 ? dimensions - 1 : 0, ',') + "]";
  if (!dimensions) return text + " with 0 dimensions";
  if (type != UNKNOWN && !rows_contiguous(array, type)) text += " with gaps";
  if (!(PyArray_FLAGS(array) & NPY_ARRAY_ALIGNED)) text += " not aligned";
  if (!(PyArray_FLAGS(array) & NPY_ARRAY_WRITEABLE)) text += " read-only";
  return text;
}

PyObject* refuse(const Kernel& kernel, PyObject* const* objects, Py_ssize_t count) {
  std::string text = kernel.name + "(";
  for (Py_ssize_t k = 0; k < count; ++k) text += (k ? ", " : "") + described(objects[k]);
  text += "): expected ";
  for (size_t k = 0; k < kernel.overloads.size(); ++k) text += (k ? " or " : "") + signature(kernel.overloads[k]);
  const bool gaps = text.find(" with gaps") != std::string::npos;
  text += gaps ? "; pass numpy.ascontiguousarray(x) for an array with gaps" : "; [] is a contiguous array, out written";
  PyErr_SetString(PyExc_TypeError, text.c_str());
  return nullptr;
}

// -- calls ------------------------------------------------------------------------------------------------------------

PyObject* number(const Value& value) {
  if (value.type == Type::BOOL) return PyBool_FromLong(long(value.integer));
  if (value.type >= Type::C64) return PyComplex_FromDoubles(value.parts[0], value.parts[1]);
  if (value.type >= Type::F32) return PyFloat_FromDouble(value.parts[0]);
  return PyLong_FromLongLong(value.integer);
}

PyObject* call(PyObject* self, PyObject* const* objects, Py_ssize_t count) {
  Kernel& kernel = *reinterpret_cast<KernelObject*>(self)->kernel;
  Value values[MOST];
  size_t chosen = kernel.last;
  if (!take_all(kernel.overloads[chosen], objects, count, values)) {
    for (chosen = 0; chosen < kernel.overloads.size(); ++chosen) {
      if (PyErr_Occurred()) return nullptr;
      if (take_all(kernel.overloads[chosen], objects, count, values)) break;
    }
    if (PyErr_Occurred()) return nullptr;
    if (chosen == kernel.overloads.size()) return refuse(kernel, objects, count);
    kernel.last = chosen;
  }
  Results results;
  try {
    kernel.overloads[chosen].run(values, results);
  } catch (const std::bad_alloc&) {
    return PyErr_NoMemory();
  } catch (const std::exception& error) {
    PyErr_Format(PyExc_RuntimeError, "%s: %s", kernel.name.c_str(), error.what());
    return nullptr;
  }
  if (!results.count) Py_RETURN_NONE;
  if (results.count == 1) return number(results.values[0]);
  PyObject* tuple = PyTuple_New(results.count);
  for (int k = 0; tuple && k < results.count; ++k) {
    PyObject* item = number(results.values[k]);
    if (!item || PyTuple_SetItem(tuple, k, item)) Py_CLEAR(tuple);
  }
  return tuple;
}

Kernel& of(PyObject* self) { return *reinterpret_cast<KernelObject*>(self)->kernel; }

PyObject* get_name(PyObject* self, void*) { return PyUnicode_FromString(of(self).name.c_str()); }

PyObject* get_signatures(PyObject* self, void*) {
  const auto& overloads = of(self).overloads;
  PyObject* tuple = PyTuple_New(Py_ssize_t(overloads.size()));
  for (size_t k = 0; tuple && k < overloads.size(); ++k)
    if (PyTuple_SetItem(tuple, Py_ssize_t(k), PyUnicode_FromString(signature(overloads[k]).c_str()))) Py_CLEAR(tuple);
  return tuple;
}

PyObject* get_takes_state(PyObject* self, void*) {
  const Overload& first = of(self).overloads[0];
  return PyBool_FromLong(first.count && first.parameters[0].form == Form::CONTEXT);
}

PyObject* reduce(PyObject* self, PyObject*) {
  PyObject* module = PyImport_ImportModule("swell._native");
  PyObject* maker = module ? PyObject_GetAttrString(module, "_owner") : nullptr;
  Py_XDECREF(module);
  return maker ? Py_BuildValue("N(s)", maker, of(self).name.c_str()) : nullptr;
}

PyMethodDef methods[] = {
    {"launch", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)(void)>(call)), METH_FASTCALL,
     "Run the kernel in place on the arguments; the types of the arrays choose the overload."},
    {"__reduce__", reduce, METH_NOARGS, nullptr},
    {}};

PyGetSetDef members[] = {{"name", get_name, nullptr, nullptr, nullptr},
                         {"signatures", get_signatures, nullptr, nullptr, nullptr},
                         {"takes_state", get_takes_state, nullptr, nullptr, nullptr},
                         {}};

PyObject* type = nullptr;
std::map<Kernel*, PyObject*>& owners() {         // of the kernels that were asked for; they live as long as the process
  static auto* all = new std::map<Kernel*, PyObject*>;
  return *all;
}

PyObject* owner(PyObject*, PyObject* name) {
  PyObject* bytes = PyUnicode_AsUTF8String(name);
  if (!bytes) return nullptr;
  const auto found = kernels().find(PyBytes_AsString(bytes));
  if (found == kernels().end()) {
    PyErr_Format(PyExc_LookupError, "kernel(%R): expected one of swell._native.names(); if its source is newer than the "
                 "library, run pip install again", name);
    Py_DECREF(bytes);
    return nullptr;
  }
  Py_DECREF(bytes);
  PyObject*& held = owners()[&found->second];
  if (!held) {
    auto make = reinterpret_cast<allocfunc>(PyType_GetSlot(reinterpret_cast<PyTypeObject*>(type), Py_tp_alloc));
    held = make(reinterpret_cast<PyTypeObject*>(type), 0);
    if (!held) return nullptr;
    reinterpret_cast<KernelObject*>(held)->kernel = &found->second;
  }
  Py_INCREF(held);
  return held;
}

PyObject* kernel(PyObject* module, PyObject* name) {
  PyObject* made = owner(module, name);
  PyObject* launch = made ? PyObject_GetAttrString(made, "launch") : nullptr;
  Py_XDECREF(made);
  return launch;
}

PyObject* names(PyObject*, PyObject*) {
  PyObject* list = PyList_New(0);
  for (const auto& [name, _] : kernels()) {
    PyObject* text = PyUnicode_FromString(name.c_str());
    if (!text || PyList_Append(list, text)) Py_CLEAR(list);
    Py_XDECREF(text);
    if (!list) return nullptr;
  }
  return list;
}

PyObject* get_threads(PyObject*, PyObject*) { return PyLong_FromLong(threads()); }

PyObject* put_threads(PyObject*, PyObject* count) {
  const long number = PyLong_AsLong(count);
  if (number == -1 && PyErr_Occurred()) return nullptr;
  if (number < 0) return PyErr_Format(PyExc_ValueError, "set_threads(%ld): expected 0, for all, or more", number);
  set_threads(int(number));
  Py_RETURN_NONE;
}

PyMethodDef functions[] = {
    {"kernel", kernel, METH_O, "kernel(name): the CPU kernel 'package.file.function' as a function of arrays, numbers."},
    {"_owner", owner, METH_O, nullptr},
    {"names", names, METH_NOARGS, "names(): the names of all kernels."},
    {"threads", get_threads, METH_NOARGS, "threads(): number of threads of the loops that this thread begins."},
    {"set_threads", put_threads, METH_O, "set_threads(count): for loops that this thread begins; 0: all it may use."},
    {}};

PyModuleDef definition = {PyModuleDef_HEAD_INIT, "swell._native", "swell's kernels for the CPU.", -1, functions,
                          nullptr, nullptr, nullptr, nullptr};

}  // namespace

Kernels::Kernels(const char* file, const Overload* overloads, int count)
    : file(file), overloads(overloads), count(count), next(files) { files = this; }

PyMODINIT_FUNC PyInit__native() {
  import_array();
  for (const Kernels* list = files; list; list = list->next)
    for (int k = 0; k < list->count; ++k) {
      const Overload& overload = list->overloads[k];
      if (overload.count > MOST) return PyErr_Format(PyExc_ImportError, "%s has too many parameters", overload.name);
      const std::string name = std::string(list->file) + "." + overload.name;
      Kernel& made = kernels()[name];
      made.name = name;
      made.overloads.push_back(overload);
    }
  PyType_Slot slots[] = {{Py_tp_methods, methods}, {Py_tp_getset, members}, {}};
  PyType_Spec spec = {"swell._native.Kernel", sizeof(KernelObject), 0, Py_TPFLAGS_DEFAULT, slots};
  type = PyType_FromSpec(&spec);
  PyObject* module = type ? PyModule_Create(&definition) : nullptr;
  if (module && PyModule_AddStringConstant(module, "digest", SWELL_SOURCES)) Py_CLEAR(module);
  return module;
}
