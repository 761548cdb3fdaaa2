// Python's arguments of a kernel as its parameters: numbers, NumPy arrays in place, the judge's records. A function
// returns false for an argument that does not fit. module.cpp includes this file after NumPy's headers.
#pragma once
#include "launcher.hpp"

namespace {

using namespace launcher;

constexpr int UNKNOWN = -1;            // a type that no kernel takes

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

// The dimensions of an array of this form.
int dimensions_of(Form form) { return int(form) - int(Form::ARRAY) + 1; }

// True if no gaps lie between the elements; for an array of two dimensions, between the elements of one row. Arrays
// without rows may have any strides.
bool is_dense(PyArrayObject* array, int type) {
  const int last = PyArray_NDIM(array) - 1;
  if (last == 2) return PyArray_IS_C_CONTIGUOUS(array);
  return PyArray_DIM(array, last) < 2 || !PyArray_DIM(array, 0) || PyArray_STRIDE(array, last) == item_size(type);
}

bool take_array(PyObject* object, const Parameter& parameter, Value& value) {
  if (!PyArray_Check(object)) return false;
  auto array = reinterpret_cast<PyArrayObject*>(object);
  const int type = type_of_array(array), dimensions = dimensions_of(parameter.form);
  if (type != int(parameter.type) || PyArray_NDIM(array) != dimensions || !is_dense(array, type)) return false;
  const int flags = PyArray_FLAGS(array);
  if (!(flags & NPY_ARRAY_ALIGNED) || (parameter.written && !(flags & NPY_ARRAY_WRITEABLE))) return false;
  value.array.data = PyArray_DATA(array);
  if (dimensions == 3) {
    int64_t* const extents[] = {&value.blocks.count, &value.blocks.rows, &value.blocks.columns};
    for (int k = 0; k < 3; ++k) *extents[k] = PyArray_DIM(array, k);
    return true;
  }
  value.array.columns = PyArray_DIM(array, dimensions - 1);
  if (dimensions == 2) {
    const int64_t size = item_size(type), stride = PyArray_STRIDE(array, 0);
    value.array.rows = PyArray_DIM(array, 0);
    value.array.stride = value.array.rows < 2 ? value.array.columns : stride / size;
    if (value.array.rows >= 2 && stride % size) return false;
  }
  return true;
}

bool take_unsigned(PyObject* object, Value& value) {
  for (Type type : {Type::U8, Type::U16, Type::U32})
    if (take_array(object, {Form::ARRAY, type, false}, value)) {
      value.array.stride = item_size(int(type));
      return true;
    }
  return false;
}

// The judge's records: (flags, limits, history), with a row for each right-hand side if `form` is TABLE.
bool take_context(PyObject* object, Form form, Value& value) {
  if (!PyTuple_Check(object) || PyTuple_Size(object) != 3) return false;
  Value part;
  void** places[] = {&value.contexts.flags, &value.contexts.limits, &value.contexts.histories};
  for (int k = 0; k < 3; ++k) {
    if (!take_array(PyTuple_GetItem(object, k), {form, k ? Type::F64 : Type::I64, true}, part)) return false;
    *places[k] = part.array.data;
    if (form != Form::TABLE) continue;
    if (part.array.stride != part.array.columns || (k && part.array.rows != value.contexts.count)) return false;
    value.contexts.count = part.array.rows, value.contexts.length = part.array.columns;
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
    case Form::CONTEXT: return take_context(object, Form::ARRAY, value);
    case Form::CONTEXTS: return take_context(object, Form::TABLE, value);
    case Form::UNSIGNED: return take_unsigned(object, value);
    default: return take_array(object, parameter, value);
  }
}

bool take_all(const Overload& overload, PyObject* const* objects, Py_ssize_t count, Value* values) {
  if (count != overload.count) return false;
  for (Py_ssize_t k = 0; k < count; ++k)
    if (!take(objects[k], overload.parameters[k], values[k])) return false;
  return true;
}

}  // namespace
