// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstring>
#include <map>
#include <memory>
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

struct moka_description {
  /// What C needs of a feature beside its description.
  struct Feature {
    const moka::FeatureDescription* of;
    std::string type_text;
    std::vector<moka_size_range> ranges;
    std::vector<moka_allowed_shape> shapes;
    std::vector<moka_image_size> image_sizes;
    std::vector<const char*> categories;
  };
  struct Function {
    const moka::FunctionDescription* of;
    std::vector<Feature> features[3];  ///< indexed by moka_role
  };

  /// Describes a file. The description of a loaded model belongs to the model.
  explicit moka_description(moka::ModelDescription file);
  /// Both must outlive it.
  moka_description(const moka::ModelDescription& model, const moka::FunctionDescription& loaded);
  moka_description(const moka_description&) = delete;

  /// The features of a function (NULL: the loaded or default one). nullptr: there is no such function.
  const std::vector<Feature>* features(const char* function, moka_role role) const;

  const moka::ModelDescription file;
  const moka::ModelDescription& of;
  std::vector<Function> functions;
  const Function* chosen = nullptr;  ///< the loaded function, or the default one; nullptr: there is none
  std::vector<Feature> training_inputs;
  std::vector<const char*> metadata_keys;

 private:
  void add(const moka::FunctionDescription& function);
  void add_rest(const std::string& chosen_name);
};

struct moka_model {
  moka::Model model;
  std::unique_ptr<const moka_description> description;
  std::vector<moka::ParameterDescription> parameters;
  std::vector<std::vector<const char*>> layer_parameters;  ///< of each updatable layer
};

struct moka_state {
  explicit moka_state(moka::State of) : state(std::move(of)), names(state.names()) {}
  moka::State state;
  const std::vector<std::string> names;
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

inline moka::PixelFormat pixel_format_of(moka_pixel_format format) {
  return enumerator<moka::PixelFormat>(format, MOKA_GRAY_FLOAT16 + 1, "pixel format");
}

/// The size of a struct whose first member the caller set to it: that of the struct in this version of the header or in
/// an older one. Throws invalid_argument.
template <class Struct>
size_t size_of_struct(const Struct& of, const char* what) {
  const size_t size = of.struct_size;
  if (size <= sizeof(size_t) || size > sizeof(Struct) || size % alignof(Struct) != 0)
    wrong(cat(what, ": expected struct_size ", sizeof(Struct), ", got ", size));
  return size;
}

/// What the caller gave of a struct of options whose first member is its size, with defaults for members that the
/// caller's version of the header does not have. Null gives the defaults. Throws invalid_argument (the size).
template <class Options>
Options options_from(const Options* given, const Options& defaults, const char* what) {
  Options out = defaults;
  if (given == nullptr) return out;
  std::memcpy(&out, given, size_of_struct(*given, what));
  out.struct_size = sizeof(Options);
  return out;
}

/// The time after which a call with this many seconds ends; nullopt for 0. Throws invalid_argument.
std::optional<std::chrono::steady_clock::time_point> deadline_of(double timeout);

/// An array that borrows its memory. Throws invalid_argument if its members are inconsistent.
MultiArray borrowed_array(const moka_array& a);

/// A buffer that borrows its samples. Throws invalid_argument.
PixelBuffer borrowed_pixel_buffer(const moka_pixel_buffer* buffer);

/// Null gives the defaults. Throws invalid_argument.
ModelConfiguration configuration_of(const moka_configuration* configuration);

/// The handle of a model.
moka_model* handle_of(Model model);

/// Fills what the caller's version of the header has of a struct whose first member is its size, which the caller set.
/// Throws invalid_argument (the size).
template <class Struct>
void give(Struct* to, Struct from, const char* argument) {
  const size_t size = size_of_struct(need(to, argument), argument);
  from.struct_size = size;
  std::memcpy(to, &from, size);
}

/// Throws invalid_argument unless `index` is below `count`.
void check_index(size_t index, size_t count, const char* what);

/// Pointers to the texts.
std::vector<const char*> pointers(const std::vector<std::string>& texts);

/// Refers to the memory, shape and strides of `a`, which must outlive it.
moka_array c_array(const MultiArray& a);

}  // namespace moka::api
