// swell._native_probe: `level`, the level of x86-64 of this processor, by which library.py chooses a library.
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "processor.hpp"

static PyModuleDef definition = {PyModuleDef_HEAD_INIT, "swell._native_probe", nullptr, -1, nullptr,
                                 nullptr, nullptr, nullptr, nullptr};

PyMODINIT_FUNC PyInit__native_probe() {
  PyObject* module = PyModule_Create(&definition);
  if (module && PyModule_AddIntConstant(module, "level", processor_level())) Py_CLEAR(module);
  return module;
}
