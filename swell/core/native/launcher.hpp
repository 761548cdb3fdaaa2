// How a kernel file registers its kernels. A kernel is a plain function, or function template, of numbers (bool,
// int64_t, double, float, complex), Array, Unsigned, Table, Blocks, Context* and Contexts*; it returns nothing, a
// number or a tuple of numbers. `Array<const T>` is read only. A first parameter Device, of a text for both devices, is
// no argument. The file ends with its list:
//
//     KERNELS("swell.core.vector", VALUES(axpy), VALUES(dot))
//
// VALUES(f) registers f<T> for the four value types, REALS(f) for the two real ones, SUMS(f) for the two types of sums,
// INDICES(f) f<I> for the two index types, VALUES_INDICES(f) f<T, I>, PLAIN(f) a function that is no template.
// Parameter types are taken from the function. All functions of a file are in an anonymous namespace: other files have
// kernels of the same names.
#pragma once
#include <stdint.h>

#include <tuple>
#include <type_traits>
#include <utility>

#include "../kernels/array.hpp"
#include "../kernels/scalar.hpp"

#ifndef FLAGS
struct Context;
struct Contexts;
#endif

struct Device {};            // the threads that share a loop over rows

namespace launcher {

enum class Type : uint8_t { BOOL, I8, U8, I16, U16, I32, U32, I64, U64, F32, F64, C64, C128 };
enum class Form : uint8_t { NUMBER, CONTEXT, CONTEXTS, UNSIGNED, ARRAY, TABLE, BLOCKS };

struct Parameter {
  Form form;
  Type type;
  bool written;
};

// An argument as it came from Python, or a result.
struct Value {
  Type type;                 // of a result
  union {
    int64_t integer;
    double parts[2];
    struct { void* data; int64_t rows, columns, stride; } array;
    struct { void* data; int64_t count, rows, columns; } blocks;
    struct { void *flags, *limits, *history; } context;
    struct { void *flags, *limits, *histories; int64_t count, length; } contexts;
  };
};

constexpr int MOST_RESULTS = 8;
struct Results {
  int count;                 // 0: None; 1: the number itself
  Value values[MOST_RESULTS];
};

struct Overload {
  const char* name;
  const Parameter* parameters;
  int count;
  void (*run)(Value* arguments, Results& results);
};

struct Kernels {
  Kernels(const char* file, const Overload* overloads, int count);
  const char* file;
  const Overload* overloads;
  int count;
  const Kernels* next;       // another file's
};

template <class T> struct type_of;
template <> struct type_of<bool> { static constexpr Type value = Type::BOOL; };
template <> struct type_of<int8_t> { static constexpr Type value = Type::I8; };
template <> struct type_of<uint8_t> { static constexpr Type value = Type::U8; };
template <> struct type_of<int16_t> { static constexpr Type value = Type::I16; };
template <> struct type_of<uint16_t> { static constexpr Type value = Type::U16; };
template <> struct type_of<int32_t> { static constexpr Type value = Type::I32; };
template <> struct type_of<uint32_t> { static constexpr Type value = Type::U32; };
template <> struct type_of<int64_t> { static constexpr Type value = Type::I64; };
template <> struct type_of<uint64_t> { static constexpr Type value = Type::U64; };
template <> struct type_of<float> { static constexpr Type value = Type::F32; };
template <> struct type_of<double> { static constexpr Type value = Type::F64; };
template <> struct type_of<complex<float>> { static constexpr Type value = Type::C64; };
template <> struct type_of<complex<double>> { static constexpr Type value = Type::C128; };

// How a parameter of type T is described, and taken from a Value.
template <class T> struct parameter {
  static constexpr Parameter described{Form::NUMBER, type_of<T>::value, false};
  static T take(Value& v) {
    if constexpr (std::is_integral_v<T>) return T(v.integer);
    else if constexpr (std::is_floating_point_v<T>) return T(v.parts[0]);
    else return T(complex<double>{v.parts[0], v.parts[1]});
  }
};
template <class T> struct parameter<Array<T>> {
  static constexpr Parameter described{Form::ARRAY, type_of<std::remove_const_t<T>>::value, !std::is_const_v<T>};
  static Array<T> take(Value& v) { return {static_cast<T*>(v.array.data), v.array.columns}; }
};
template <> struct parameter<Unsigned> {
  static constexpr Parameter described{Form::UNSIGNED, Type::U8, false};
  static Unsigned take(Value& v) { return {v.array.data, v.array.columns, v.array.stride}; }
};
template <class T> struct parameter<Table<T>> {
  static constexpr Parameter described{Form::TABLE, type_of<std::remove_const_t<T>>::value, !std::is_const_v<T>};
  static Table<T> take(Value& v) {
    return {static_cast<T*>(v.array.data), v.array.rows, v.array.columns, v.array.stride};
  }
};
template <class T> struct parameter<Blocks<T>> {
  static constexpr Parameter described{Form::BLOCKS, type_of<std::remove_const_t<T>>::value, !std::is_const_v<T>};
  static Blocks<T> take(Value& v) {
    return {static_cast<T*>(v.blocks.data), v.blocks.count, v.blocks.rows, v.blocks.columns};
  }
};
template <> struct parameter<Context*> {
  static constexpr Parameter described{Form::CONTEXT, Type::F64, true};
  static Context* take(Value& v) { return reinterpret_cast<Context*>(&v.context); }
};
template <> struct parameter<Contexts*> {
  static constexpr Parameter described{Form::CONTEXTS, Type::F64, true};
  static Contexts* take(Value& v) { return reinterpret_cast<Contexts*>(&v.contexts); }
};

template <class T> void put(Value& v, T number) {
  v.type = type_of<T>::value;
  if constexpr (std::is_integral_v<T>) v.integer = number;
  else if constexpr (std::is_floating_point_v<T>) v.parts[0] = number;
  else v.parts[0] = number.re, v.parts[1] = number.im;
}
template <class T> void put_all(Results& results, T number) { results.count = 1, put(results.values[0], number); }
template <class... T> void put_all(Results& results, const std::tuple<T...>& numbers) {
  static_assert(sizeof...(T) > 1 && sizeof...(T) <= MOST_RESULTS);
  results.count = 0;
  std::apply([&](auto... number) { (put(results.values[results.count++], number), ...); }, numbers);
}

template <auto F, class = decltype(F)> struct launch;
template <auto F, class... A> struct launch<F, void (*)(Device, A...)> {
  static void call(A... arguments) { F(Device(), arguments...); }
  static constexpr Overload as(const char* name) { return launch<&call>::as(name); }
};
template <auto F, class R, class... A> struct launch<F, R (*)(A...)> {
  static constexpr Parameter parameters[] = {parameter<A>::described..., {}};
  static void run(Value* arguments, Results& results) { call(arguments, results, std::index_sequence_for<A...>()); }
  template <size_t... K> static void call(Value* arguments, Results& results, std::index_sequence<K...>) {
    if constexpr (std::is_void_v<R>) results.count = 0, F(parameter<A>::take(arguments[K])...);
    else put_all(results, F(parameter<A>::take(arguments[K])...));
  }
  static constexpr Overload as(const char* name) { return {name, parameters, int(sizeof...(A)), run}; }
};

}  // namespace launcher

#define KERNEL void
#define ROW_KERNEL void
#define PLAIN(f) launcher::launch<&f>::as(#f)
#define INSTANCE(f, ...) launcher::launch<&f<__VA_ARGS__>>::as(#f)
#define REALS(f) INSTANCE(f, double), INSTANCE(f, float)
#define VALUES(f) REALS(f), INSTANCE(f, complex<double>), INSTANCE(f, complex<float>)
#define SUMS(f) INSTANCE(f, double), INSTANCE(f, complex<double>)
#define INDICES(f) INSTANCE(f, int32_t), INSTANCE(f, int64_t)
#define REALS_INDICES(f) INSTANCE(f, double, int32_t), INSTANCE(f, float, int32_t), INSTANCE(f, double, int64_t), \
    INSTANCE(f, float, int64_t)
#define VALUES_INDICES(f) REALS_INDICES(f), INSTANCE(f, complex<double>, int32_t), \
    INSTANCE(f, complex<float>, int32_t), INSTANCE(f, complex<double>, int64_t), INSTANCE(f, complex<float>, int64_t)
#define KERNELS(file, ...) \
  static constexpr launcher::Overload overloads[] = {__VA_ARGS__}; \
  static const launcher::Kernels registered(file, overloads, int(sizeof overloads / sizeof *overloads));
