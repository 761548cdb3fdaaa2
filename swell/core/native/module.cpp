// The kernels of the CPU as Python functions; see launcher.hpp for how they come here. SWELL_MODULE is the name of this
// library: _native_v2, _native_v3, or _native where processors have no levels.
//
//     kernel("swell.core.vector.axpy")     the function; its __self__ has name, signatures and takes_state
//     names()                              the names of all kernels
//     threads(), set_threads(count)        threads of this thread's loops; the latter returns the last count
//     limit_threads(count)                 threads of the loops of this process
//     digest                               of the sources (sources.py)
//     Launcher                             launches of GPU kernels (launch.cpp)
//
// A call takes some 0.1 µs. The types of the arguments choose the overload; the last one is tried first. Arrays are
// read by NumPy's own inline accessors: the buffer protocol takes 0.1 µs an array, as it writes a format string.
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#define NPY_NO_DEPRECATED_API NPY_2_0_API_VERSION
#include <numpy/arrayobject.h>
#include <numpy/arrayscalars.h>

#include <limits.h>

#include <map>
#include <new>
#include <stdexcept>
#include <string>
#include <vector>

#include "arguments.hpp"
#include "launch.hpp"
#include "launcher.hpp"
#include "sources_digest.hpp"
#include "threads.hpp"

using namespace launcher;

#define JOINED(a, b) a##b
#define INIT(name) JOINED(PyInit_, name)
#define QUOTED(name) #name
#define NAME_IN_PACKAGE(name) "swell." QUOTED(name)

namespace {

constexpr int MOST = 40;               // arguments of a kernel
const char* const NAMES[] = {"bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64",
                             "float32", "float64", "complex64", "complex128"};

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

// -- errors -----------------------------------------------------------------------------------------------------------

std::string signature(const Overload& overload) {
  std::string text = "(";
  for (int k = 0; k < overload.count; ++k) {
    const Parameter& p = overload.parameters[k];
    text += k ? ", " : "";
    text += p.form == Form::CONTEXT ? "state" : p.form == Form::CONTEXTS ? "states" : NAMES[int(p.type)];
    if (p.form >= Form::ARRAY) text += "[" + std::string(dimensions_of(p.form) - 1, ',') + "]";
    text += p.written && p.form >= Form::ARRAY ? " out" : "";
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
    for (Py_ssize_t k = 0; k < PyTuple_Size(object); ++k)
      text += (k ? ", " : "") + described(PyTuple_GetItem(object, k));
    return text + ")";
  }
  auto array = reinterpret_cast<PyArrayObject*>(object);
  const int type = type_of_array(array), dimensions = PyArray_NDIM(array);
  std::string text = type == UNKNOWN ? "array of another type" : NAMES[type];
  text += "[" + std::string(dimensions > 1 ? dimensions - 1 : 0, ',') + "]";
  if (!dimensions) return text + " with 0 dimensions";
  if (type != UNKNOWN && !is_dense(array, type)) text += " with gaps";
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

// Return body(), a new reference or nullptr; a C++ exception becomes one of Python, in which `name` is named.
template <class F> PyObject* guarded(const std::string& name, const F& body) {
  try {
    return body();
  } catch (const std::bad_alloc&) {
    return PyErr_NoMemory();
  } catch (const std::exception& error) {
    return PyErr_Format(PyExc_RuntimeError, "%s: %s", name.c_str(), error.what());
  }
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
    if (chosen == kernel.overloads.size()) return guarded(kernel.name, [&] { return refuse(kernel, objects, count); });
    kernel.last = chosen;
  }
  return guarded(kernel.name, [&]() -> PyObject* {
    Results results;
    kernel.overloads[chosen].run(values, results);
    if (!results.count) Py_RETURN_NONE;
    if (results.count == 1) return number(results.values[0]);
    PyObject* tuple = PyTuple_New(results.count);
    for (int k = 0; tuple && k < results.count; ++k) {
      PyObject* item = number(results.values[k]);
      if (!item || PyTuple_SetItem(tuple, k, item)) Py_CLEAR(tuple);
    }
    return tuple;
  });
}

Kernel& of(PyObject* self) { return *reinterpret_cast<KernelObject*>(self)->kernel; }

PyObject* get_name(PyObject* self, void*) { return PyUnicode_FromString(of(self).name.c_str()); }

PyObject* get_signatures(PyObject* self, void*) {
  return guarded(of(self).name, [&overloads = of(self).overloads] {
    PyObject* tuple = PyTuple_New(Py_ssize_t(overloads.size()));
    for (size_t k = 0; tuple && k < overloads.size(); ++k)
      if (PyTuple_SetItem(tuple, Py_ssize_t(k), PyUnicode_FromString(signature(overloads[k]).c_str()))) Py_CLEAR(tuple);
    return tuple;
  });
}

PyObject* get_takes_state(PyObject* self, void*) {
  const Overload& first = of(self).overloads[0];
  const Form form = first.count ? first.parameters[0].form : Form::NUMBER;
  return PyBool_FromLong(form == Form::CONTEXT || form == Form::CONTEXTS);
}

PyObject* reduce(PyObject* self, PyObject*) {
  PyObject* module = PyImport_ImportModule("swell.core.library");         // another machine may load another library
  PyObject* maker = module ? PyObject_GetAttrString(module, "owner") : nullptr;
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
    PyErr_Format(PyExc_LookupError, "kernel(%R): expected one of names(); if its source is newer than the "
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

// Return a number of threads that came from Python, or −1 after an error.
int thread_count(PyObject* object) {
  const long count = PyLong_AsLong(object);
  if (count >= 0 && count <= INT_MAX) return int(count);
  if (!PyErr_Occurred()) PyErr_Format(PyExc_ValueError, "%ld threads: expected 0, for all, or more", count);
  return -1;
}

PyObject* put_threads(PyObject*, PyObject* object) {
  const int count = thread_count(object);
  return count < 0 ? nullptr : PyLong_FromLong(set_threads(count));
}

PyObject* put_limit(PyObject*, PyObject* object) {
  const int count = thread_count(object);
  if (count < 0) return nullptr;
  limit_threads(count);
  Py_RETURN_NONE;
}

PyMethodDef functions[] = {
    {"kernel", kernel, METH_O, "kernel(name): the kernel 'package.file.function', a function of arrays and numbers."},
    {"owner", owner, METH_O, "owner(name): the __self__ of kernel(name)."},
    {"names", names, METH_NOARGS, "names(): the names of all kernels."},
    {"threads", get_threads, METH_NOARGS, "threads(): number of threads of the loops that this thread begins."},
    {"set_threads", put_threads, METH_O,
     "set_threads(count): for loops that this thread begins; 0: the process's number. Return the last count."},
    {"limit_threads", put_limit, METH_O, "limit_threads(count): for all loops of this process; 0: all it may use."},
    {}};

PyModuleDef definition = {PyModuleDef_HEAD_INIT, NAME_IN_PACKAGE(SWELL_MODULE), "swell's kernels for the CPU.", -1,
                          functions, nullptr, nullptr, nullptr, nullptr};

}  // namespace

Kernels::Kernels(const char* file, const Overload* overloads, int count)
    : file(file), overloads(overloads), count(count), next(files) { files = this; }

PyMODINIT_FUNC INIT(SWELL_MODULE)() {
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
  PyType_Spec spec = {NAME_IN_PACKAGE(SWELL_MODULE) ".Kernel", sizeof(KernelObject), 0, Py_TPFLAGS_DEFAULT, slots};
  type = PyType_FromSpec(&spec);
  PyObject* module = type ? PyModule_Create(&definition) : nullptr;
  if (module && PyModule_AddStringConstant(module, "digest", SWELL_SOURCES)) Py_CLEAR(module);
  if (module && !add_launcher(module, NAME_IN_PACKAGE(SWELL_MODULE) ".Launcher")) Py_CLEAR(module);
  return module;
}
