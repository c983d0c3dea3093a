#pragma once

#include <nanobind/nanobind.h>

#include <list>
#include <string>
#include <vector>

#include "moka/moka.hpp"

/// Between Python values and Moka's.
namespace moka::python {

namespace nb = nanobind;

/// Raises the Python class of `kind` with `message`.
[[noreturn]] void raise(ErrorKind kind, const std::string& message);
/// Raises TypeError.
[[noreturn]] void raise_type(const std::string& message);

/// What the values of one prediction borrow: exported buffers and the objects behind them. Used with the interpreter
/// lock held.
class Borrowed {
 public:
  Borrowed() = default;
  Borrowed(const Borrowed&) = delete;
  ~Borrowed();
  /// The memory of `object` without a copy. False, with no Python error set, when it exports none of a type that
  /// multi-arrays have. `writable`: raises BufferError's message as invalid_argument when it is not.
  bool array(nb::handle object, bool writable, MultiArray& out);
  nb::handle keep(nb::object object);

 private:
  std::list<Py_buffer> buffers_;
  std::vector<nb::object> objects_;
};

/// A Python value for the feature `f`: numbers, text, dictionaries and lists are copied; arrays (buffer protocol,
/// DLPack, anything numpy understands) and PIL images are borrowed. TypeError names the feature.
FeatureValue to_feature(nb::handle value, const FeatureDescription& f, Borrowed& borrowed);
/// Every item of a dict. `described`: the inputs of the function; names outside it are left to Moka to refuse.
Features to_features(nb::handle dict, const std::vector<FeatureDescription>& described, Borrowed& borrowed);
/// Output backings: arrays to write to.
Features to_backings(nb::handle dict, const std::vector<FeatureDescription>& described, Borrowed& borrowed);

/// A numpy array that shares the elements of `array`.
nb::object to_numpy(const MultiArray& array);
nb::object to_python(const FeatureValue& value);
/// `given`: objects to hand back for the outputs that were written in place; may be none.
nb::dict to_dict(const Features& features, nb::handle given);

}  // namespace moka::python
