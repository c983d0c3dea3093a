// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nanobind/nanobind.h>

#include <list>
#include <string>
#include <string_view>
#include <vector>

#include "moka/custom.h"
#include "moka/moka.hpp"

/// Converts between Python values and Moka's.
namespace moka::python {

namespace nb = nanobind;

/// Types by the names that stubs give them.
using Dict = nb::typed<nb::dict, nb::str, nb::any>;
using List = nb::typed<nb::list, nb::any>;

/// Raises the Python class of `kind` with `message`.
[[noreturn]] void raise(ErrorKind kind, const std::string& message);
/// Raises TypeError.
[[noreturn]] void raise_type(const std::string& message);

/// How files and pictures become values.
struct Reading {
  bool resize = false;            ///< resize pictures to a size that the model accepts
  std::string fit = "scaleFill";  ///< as in the command line's --fit
  uint32_t rate = 0;              ///< sample rate of sounds in hertz; 0: the rate of the file
  bool pad = false;               ///< append silence to short sounds and cut the end of long ones
};

/// The name of the value's class.
std::string kind_of(nb::handle value);
/// The text of a str while it lives. Raises UnicodeEncodeError, a ValueError, for halves of surrogate pairs.
std::string_view utf8_of(nb::handle text);
/// Raises TypeError for a TypeError or ValueError that shows that `value` does not fit the feature. Raises other errors
/// unchanged.
[[noreturn]] void raise_unfit(const FeatureDescription& f, nb::handle value, const nb::python_error& why);

/// The exported buffers, and their owners, that the values of one prediction borrow. Used with the interpreter lock
/// held.
class Borrowed {
 public:
  Borrowed() = default;
  Borrowed(const Borrowed&) = delete;
  ~Borrowed();
  /// The memory of `object` without a copy. Returns false, without a Python error, when it exports no buffer of a type
  /// that multi-arrays support. `writable`: raises invalid_argument with BufferError's message when the memory is
  /// read-only.
  bool array(nb::handle object, bool writable, MultiArray& out);
  nb::handle keep(nb::object object);

 private:
  std::list<Py_buffer> buffers_;
  std::vector<nb::object> objects_;
};

/// Converts a Python value for the feature `f`. Copies numbers, text, dictionaries and lists; borrows arrays (buffer
/// protocol, DLPack, anything numpy understands) and PIL images. `reading`: also accepts files and pictures of any
/// kind; null: accepts only what Core ML's own Python module accepts. TypeError names the feature.
FeatureValue to_feature(nb::handle value, const FeatureDescription& f, Borrowed& borrowed,
                        const Reading* reading = nullptr);
/// Converts every item of a dict. `described`: the inputs of the function. Moka itself refuses other names. `names`:
/// the features of an earlier prediction; if the names are the same, these objects get the new values.
Features to_features(nb::handle dict, const std::vector<FeatureDescription>& described, Borrowed& borrowed,
                     const Reading* reading = nullptr, Features names = {});
/// Gives arrays and pictures memory of their own, so that they outlive a Borrowed.
void copy_borrowed(Features& features);
/// The inputs of several predictions, whose arrays have the described shape and type of floats where they fit. Raises
/// InvalidArgumentError for names that the model does not have.
std::vector<Features> to_rows(const List& rows, const Model& model, Borrowed& borrowed);
/// The columns of a table: arrays with an axis of rows, or lists of strings. Omits None.
Features to_columns(nb::handle dict, const std::vector<FeatureDescription>& described, Borrowed& borrowed);
/// Converts output backings: arrays to write to.
Features to_backings(nb::handle dict, const std::vector<FeatureDescription>& described, Borrowed& borrowed);

/// Whether the value is a PIL image.
bool is_image(nb::handle value);
/// The pixels of a PIL image or of an array [H, W] or [H, W, 3 or 4].
/// An array as the pixels of an image, which borrows it. `where` begins messages.
Image image_in(MultiArray pixels, const std::string& where, const FeatureDescription& f);
Image to_image(nb::handle value, const FeatureDescription& f, Borrowed& borrowed, const Reading* reading);
/// Whether the value is a path or an open file.
bool is_file(nb::handle value);
/// The feature's value from a file with sound, numbers or text.
FeatureValue to_value_of_file(nb::handle file, const FeatureDescription& f, const Reading& reading);

/// A numpy array [H, W] or [H, W, C] that shares the pixels of `image`.
nb::object pixels_of(const Image& image);
/// A numpy array that shares the elements of `array`.
nb::object to_numpy(const MultiArray& array);
nb::object to_python(const FeatureValue& value);
/// A numpy array over memory that somebody else owns. `channels_last`: elements of rank 3 and more lie with axis 1 as
/// the innermost.
nb::object numpy_view(const ArrayView& view, bool channels_last);
/// The same array, which now refuses to be written.
nb::object read_only(nb::object array);
/// `given`: objects to hand back for the outputs that were written in place; may be none.
Dict to_dict(const Features& features, nb::handle given);

}  // namespace moka::python
