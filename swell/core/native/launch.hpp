// Adds the type `Launcher` (launch.cpp) to the module, under its full name; false after an error of Python's.
#pragma once
#define PY_SSIZE_T_CLEAN
#include <Python.h>

bool add_launcher(PyObject* module, const char* name);
