// Launches of GPU kernels: a call packs its arguments, finds the compiled function for their types, and hands both to
// CUDA's driver, whose address comes from Python. core/cuda_kernels.py makes a `Launcher` for each kernel and type:
//
//     Launcher(owner, driver, parameters, deciding, wide, rule)
//
// call.hpp describes the parameters, and reads and packs the arguments of a call.
//
// What is rare is the owner's: resolve(values, shared) → (function, bytes of shared memory it may have), for a new
// combination of types; require_aligned(number, array); widen(function) for a cluster of more than 8 blocks;
// failed(status, grid, block, shared), which raises.
#include "call.hpp"
#include "launch.hpp"

namespace {

constexpr int PORTABLE = 8, CLUSTER = 4;
constexpr int64_t WIDE = 16;

struct LauncherObject {
  PyObject_HEAD
  Launcher* launcher;
};

Launcher& of(PyObject* self) { return *reinterpret_cast<LauncherObject*>(self)->launcher; }

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
