// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstring>
#include <map>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "moka/model.h"
#include "moka/moka.h"

/// What the files of the C API share: handles, errors as statuses, and checks of arguments.
///
///     moka_status moka_features_set_double(moka_features* features, const char* name, double value) {
///       return guarded([&] { set(features, name, value); });
///     }

/// Pointers for C to values that are not stored as arrays. The getters create them.
struct View {
  std::vector<const char*> strings;
  std::vector<int64_t> ints;
  std::vector<double> values;
};

struct moka_features {
  moka::Features values;
  mutable std::map<std::string, View, std::less<>> views;
  bool copies = false;  ///< arrays and images are copied when they are set
};

struct moka_cancellation {
  std::stop_source source;
};

struct moka_model {
  /// A feature description in C form, created once.
  struct Feature {
    std::string type_text;
    std::vector<moka_size_range> ranges;
    moka_feature_info info{};
  };

  moka::Model model;
  std::vector<Feature> features[3];  ///< indexed by moka_role
  std::vector<moka::ParameterDescription> parameters;
  std::vector<Feature> training_inputs;
  std::vector<std::vector<const char*>> layer_parameters;  ///< of each updatable layer
};

struct moka_state {
  moka::State state;
  moka::MultiArray copy;
};

namespace moka::api {

/// Call it in a catch block. Stores the exception's message for moka_last_error and returns its status.
moka_status caught() noexcept;

/// Runs `f`. Turns an exception into a status and the text of moka_last_error.
template <class Fn>
moka_status guarded(const Fn& f) noexcept {
  try {
    f();
    return MOKA_OK;
  } catch (...) {
    return caught();
  }
}

/// Throws invalid_argument.
[[noreturn]] void wrong(const std::string& message);

/// The object that an argument points to. Throws invalid_argument if the argument is NULL.
template <class T>
T& need(T* pointer, const char* argument) {
  if (pointer == nullptr) wrong(cat("argument '", argument, "': expected a pointer, got NULL"));
  return *pointer;
}

/// As `need`, for texts.
std::string_view need_text(const char* text, const char* argument);

/// Checks an enumerator from C, which may hold any number.
template <class To>
To enumerator(int value, int count, const char* what) {
  if (value < 0 || value >= count) wrong(cat(what, ": expected 0 to ", count - 1, ", got ", value));
  return static_cast<To>(value);
}

/// What the caller gave of a struct of options whose first member is its size, with defaults for members that the
/// caller's version of the header does not have. Null gives the defaults. Throws invalid_argument (the size).
template <class Options>
Options options_from(const Options* given, const Options& defaults, const char* what) {
  Options out = defaults;
  if (given == nullptr) return out;
  const size_t size = given->struct_size;
  if (size <= sizeof(size_t) || size > sizeof(Options) || size % alignof(Options) != 0)
    wrong(cat(what, ": expected struct_size ", sizeof(Options), ", got ", size));
  std::memcpy(&out, given, size);
  out.struct_size = sizeof(Options);
  return out;
}

/// The time after which a call with this many seconds ends; nullopt for 0. Throws invalid_argument.
std::optional<std::chrono::steady_clock::time_point> deadline_of(double timeout);

/// An array that borrows its memory. Throws invalid_argument if its members are inconsistent.
MultiArray borrowed_array(const moka_array& a);

/// Null gives the defaults. Throws invalid_argument.
ModelConfiguration configuration_of(const moka_configuration* configuration);

/// The handle of a model.
moka_model* handle_of(Model model);

/// The feature at an index, which is checked.
void set_info(const std::vector<moka_model::Feature>& features, size_t index, moka_feature_info* info);

/// Refers to the memory, shape and strides of `a`, which must outlive it.
moka_array c_array(const MultiArray& a);

}  // namespace moka::api
