// SPDX-License-Identifier: Apache-2.0
#include "values.h"

#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cstring>

#include "pixel_buffer.h"

namespace moka::python {

std::string kind_of(nb::handle value) {
  nb::handle type = value.type();
  return nb::cast<std::string>(nb::borrow<nb::str>(type.attr("__name__")));
}

std::string_view utf8_of(nb::handle text) {
  Py_ssize_t size = 0;
  const char* bytes = PyUnicode_AsUTF8AndSize(text.ptr(), &size);
  if (bytes == nullptr) throw nb::python_error();
  return {bytes, static_cast<size_t>(size)};
}

void raise_unfit(const FeatureDescription& f, nb::handle value, const nb::python_error& why) {
  if (!why.matches(PyExc_TypeError) && !why.matches(PyExc_ValueError)) throw why;
  raise_type("input '" + f.name + "': expected " + f.formatted_type() + ", got " + kind_of(value) + ": " +
             nb::cast<std::string>(nb::str(nb::borrow(why.value()))));
}

namespace {

/// The element type for a buffer's format, which is a struct format of one item.
bool element_type(const Py_buffer& b, DataType& out) {
  const char* f = b.format == nullptr ? "B" : b.format;
  if (*f == '@' || *f == '=' || *f == '<') f++;
  if (f[0] == 0 || f[1] != 0) return false;
  const auto integer = [&](bool is_signed) {
    switch (b.itemsize) {
      case 1: out = is_signed ? DataType::int8 : DataType::uint8; return true;
      case 2: out = is_signed ? DataType::int16 : DataType::uint16; return true;
      case 4: out = is_signed ? DataType::int32 : DataType::uint32; return true;
      case 8: out = is_signed ? DataType::int64 : DataType::uint64; return true;
      default: return false;
    }
  };
  switch (*f) {
    case 'e': out = DataType::float16; return b.itemsize == 2;
    case 'f': out = DataType::float32; return b.itemsize == 4;
    case 'd': out = DataType::float64; return b.itemsize == 8;
    case '?': out = DataType::boolean; return b.itemsize == 1;
    case 'b':
    case 'h':
    case 'i':
    case 'l':
    case 'q': return integer(true);
    case 'B':
    case 'H':
    case 'I':
    case 'L':
    case 'Q': return integer(false);
    default: return false;
  }
}

MultiArray to_array(nb::handle value, const FeatureDescription& f, Borrowed& borrowed) {
  MultiArray out;
  if (PyObject_CheckBuffer(value.ptr()) && borrowed.array(value, false, out)) return out;
  nb::object array;
  try {
    array = nb::module_::import_("moka._arrays").attr("as_array")(value);
  } catch (nb::python_error& e) {
    raise_unfit(f, value, e);
  }
  if (!borrowed.array(borrowed.keep(array), false, out))
    raise_type("input '" + f.name + "': expected " + f.formatted_type() + ", got an array of " +
               nb::cast<std::string>(nb::str(nb::object(array.attr("dtype")))));
  return out;
}

std::string text_of(nb::handle value) {
  if (nb::isinstance<nb::bytes>(value)) {
    auto b = nb::borrow<nb::bytes>(value);
    return {b.c_str(), b.size()};
  }
  return std::string(utf8_of(value));
}

bool is_text(nb::handle value) { return nb::isinstance<nb::str>(value) || nb::isinstance<nb::bytes>(value); }

bool to_double(nb::handle value, double& out) {
  out = PyFloat_AsDouble(value.ptr());
  if (out == -1.0 && PyErr_Occurred() != nullptr) {
    PyErr_Clear();
    return false;
  }
  return true;
}

/// Whether a value is a whole number: it has __index__ (int, bool, numpy integers).
bool to_int(nb::handle value, int64_t& out) {
  PyObject* index = PyNumber_Index(value.ptr());
  if (index == nullptr) {
    PyErr_Clear();
    return false;
  }
  out = PyLong_AsLongLong(index);
  Py_DECREF(index);
  if (out == -1 && PyErr_Occurred() != nullptr) {
    PyErr_Clear();
    return false;
  }
  return true;
}

Dictionary to_dictionary(nb::handle given, const FeatureDescription& f) {
  nb::object value = nb::borrow(given);
  if (!nb::isinstance<nb::dict>(value)) value = nb::module_::import_("moka._arrays").attr("as_dict")(value);
  if (value.is_none()) raise_type("input '" + f.name + "': expected " + f.formatted_type() + ", got " + kind_of(given));
  Dictionary out;
  out.string_keys = f.string_keys;
  bool first = true;
  for (auto [key, item] : nb::borrow<nb::dict>(value)) {
    bool text = is_text(key);
    if (first) out.string_keys = text;
    first = false;
    int64_t number = 0;
    if (text != out.string_keys || (!text && !to_int(key, number)))
      raise_type("input '" + f.name + "': expected keys that are all text or all integers, got " + kind_of(key));
    double v = 0;
    if (!to_double(item, v))
      raise_type("input '" + f.name + "': expected numbers as the values of the dictionary, got " + kind_of(item));
    if (text)
      out.strings[text_of(key)] = v;
    else
      out.ints[number] = v;
  }
  return out;
}

FeatureValue to_sequence(nb::handle given, const FeatureDescription& f) {
  nb::object value = nb::borrow(given);
  if (!nb::isinstance<nb::list>(value) && !nb::isinstance<nb::tuple>(value))
    value = nb::module_::import_("moka._arrays").attr("as_list")(value);
  if (value.is_none()) raise_type("input '" + f.name + "': expected " + f.formatted_type() + ", got " + kind_of(given));
  StringSequence strings;
  Int64Sequence ints;
  for (nb::handle item : nb::borrow<nb::sequence>(value)) {
    int64_t n = 0;
    if (f.string_keys ? !is_text(item) : !to_int(item, n))
      raise_type("input '" + f.name + "': expected " + f.formatted_type() + ", got an element of type " +
                 kind_of(item));
    if (f.string_keys)
      strings.push_back(text_of(item));
    else
      ints.push_back(n);
  }
  if (f.string_keys) return strings;
  return ints;
}

nb::dlpack::dtype dlpack_type(DataType type) {
  const auto make = [&](nb::dlpack::dtype_code code) {
    return nb::dlpack::dtype{static_cast<uint8_t>(code), static_cast<uint8_t>(size_of(type) * 8), 1};
  };
  switch (type) {
    case DataType::float16:
    case DataType::float32:
    case DataType::float64: return make(nb::dlpack::dtype_code::Float);
    case DataType::int8:
    case DataType::int16:
    case DataType::int32:
    case DataType::int64: return make(nb::dlpack::dtype_code::Int);
    case DataType::uint8:
    case DataType::uint16:
    case DataType::uint32:
    case DataType::uint64: return make(nb::dlpack::dtype_code::UInt);
    case DataType::boolean: return make(nb::dlpack::dtype_code::Bool);
  }
  return make(nb::dlpack::dtype_code::Float);
}

template <class T>
nb::capsule owner_of(const T& value) {
  return nb::capsule(new T(value), [](void* p) noexcept { delete static_cast<T*>(p); });
}

nb::object array_object(void* data, const std::vector<int64_t>& shape, const std::vector<int64_t>& strides,
                        DataType type, nb::handle owner) {
  std::vector<size_t> sizes(shape.begin(), shape.end());
  return nb::cast(nb::ndarray<nb::numpy>(data, sizes.size(), sizes.data(), owner,
                                         strides.empty() ? nullptr : strides.data(), dlpack_type(type)));
}

/// The feature of a name, which is probably the `i`-th; nullptr when absent.
const FeatureDescription* find(const std::vector<FeatureDescription>& list, std::string_view name, size_t i = 0) {
  if (i < list.size() && list[i].name == name) return &list[i];
  for (const auto& f : list)
    if (f.name == name) return &f;
  return nullptr;
}

/// Valid while the key lives.
std::string_view name_of(nb::handle key) {
  if (!nb::isinstance<nb::str>(key)) raise_type("expected names of features as keys, got " + kind_of(key));
  return utf8_of(key);
}

}  // namespace

Borrowed::~Borrowed() {
  for (Py_buffer& b : buffers_) PyBuffer_Release(&b);
}

nb::handle Borrowed::keep(nb::object object) {
  objects_.push_back(std::move(object));
  return objects_.back();
}

bool Borrowed::array(nb::handle object, bool writable, MultiArray& out) {
  buffers_.emplace_back();
  Py_buffer& b = buffers_.back();
  if (PyObject_GetBuffer(object.ptr(), &b, writable ? PyBUF_RECORDS : PyBUF_RECORDS_RO) != 0) {
    buffers_.pop_back();
    PyErr_Clear();
    return false;
  }
  DataType type{};
  bool fits = element_type(b, type) && b.itemsize > 0;
  std::vector<int64_t> shape(b.shape, b.shape + b.ndim), strides;
  for (int i = 0; fits && i < b.ndim; i++) {
    fits = b.strides[i] % b.itemsize == 0;
    strides.push_back(b.strides[i] / b.itemsize);
  }
  fits = fits && reinterpret_cast<uintptr_t>(b.buf) % static_cast<uintptr_t>(b.itemsize) == 0;
  if (!fits) {
    PyBuffer_Release(&b);
    buffers_.pop_back();
    if (PyErr_Occurred() != nullptr) PyErr_Clear();
    return false;
  }
  out = MultiArray(b.buf, type, std::move(shape), std::move(strides));
  return true;
}

FeatureValue to_feature(nb::handle value, const FeatureDescription& f, Borrowed& borrowed, const Reading* reading) {
  if (value.is_none()) return {};
  const auto mismatch = [&] {
    raise_type("input '" + f.name + "': expected " + f.formatted_type() + ", got " + kind_of(value));
  };
  switch (f.type) {
    case FeatureType::int64: {
      int64_t n = 0;
      double x = 0;
      if (to_int(value, n)) return n;
      if (is_text(value) || !to_double(value, x)) mismatch();
      return x;
    }
    case FeatureType::float64: {
      double x = 0;
      if (is_text(value) || !to_double(value, x)) mismatch();
      return x;
    }
    case FeatureType::string:
      if (!is_text(value)) mismatch();
      return text_of(value);
    case FeatureType::dictionary: return to_dictionary(value, f);
    case FeatureType::sequence: return to_sequence(value, f);
    case FeatureType::image:
      if (is_pixel_buffer(value)) return to_pixel_buffer(value, borrowed);
      return to_image(value, f, borrowed, reading);
    case FeatureType::multi_array:
    case FeatureType::state: break;
  }
  if (reading != nullptr && is_file(value)) return to_value_of_file(value, f, *reading);
  if (is_image(value) || is_text(value) || nb::isinstance<nb::dict>(value)) mismatch();
  return to_array(value, f, borrowed);
}

Features to_features(nb::handle dict, const std::vector<FeatureDescription>& described, Borrowed& borrowed,
                     const Reading* reading, Features names) {
  if (!nb::isinstance<nb::dict>(dict)) raise_type("expected a dict of inputs by name, got " + kind_of(dict));
  const auto given = nb::borrow<nb::dict>(dict);
  const bool is_sized = names.size() == given.size();
  Features out = is_sized ? std::move(names) : Features();
  size_t i = 0;
  for (auto [key, value] : given) {
    const std::string_view name = name_of(key);
    if (is_sized && out.begin()[static_cast<std::ptrdiff_t>(i)].first != name)
      return to_features(dict, described, borrowed, reading);
    FeatureValue& to = is_sized ? out.begin()[static_cast<std::ptrdiff_t>(i)].second : out[name];
    const FeatureDescription* f = find(described, name, i++);
    to = f == nullptr ? FeatureValue(int64_t{0}) : to_feature(value, *f, borrowed, reading);
  }
  return out;
}

void copy_borrowed(Features& features) {
  for (auto& [name, value] : features) {
    if (auto* array = std::get_if<MultiArray>(&value)) *array = array->converted(array->type());
    if (auto* buffer = std::get_if<PixelBuffer>(&value)) *buffer = copied(*buffer);
    if (auto* image = std::get_if<Image>(&value)) {
      Image copy(image->width, image->height, image->format);
      for (int64_t y = 0; y < image->height; y++)
        std::memcpy(copy.pixels.get() + y * copy.row_bytes, image->pixels.get() + y * image->row_bytes,
                    static_cast<size_t>(copy.row_bytes));
      *image = std::move(copy);
    }
  }
}

Features to_columns(nb::handle dict, const std::vector<FeatureDescription>& described, Borrowed& borrowed) {
  Features out;
  for (auto [key, value] : nb::borrow<nb::dict>(dict)) {
    const std::string name(name_of(key));
    const FeatureDescription* f = find(described, name);
    if (f == nullptr) raise(ErrorKind::invalid_argument, "column '" + name + "': not an input of the model");
    if (value.is_none()) continue;
    const bool list = nb::isinstance<nb::list>(value) || nb::isinstance<nb::tuple>(value);
    if (!list || nb::len(value) == 0 || !nb::isinstance<nb::str>(value[0])) {
      out[name] = to_array(value, *f, borrowed);
      continue;
    }
    StringSequence texts;
    for (nb::handle text : value) {
      if (!nb::isinstance<nb::str>(text)) raise_type("column '" + name + "': expected strings, got " + kind_of(text));
      texts.emplace_back(utf8_of(text));
    }
    out[name] = std::move(texts);
  }
  return out;
}

Features to_backings(nb::handle dict, const std::vector<FeatureDescription>& described, Borrowed& borrowed) {
  Features out;
  if (dict.is_none()) return out;
  if (!nb::isinstance<nb::dict>(dict)) raise_type("expected a dict of output backings, got " + kind_of(dict));
  for (auto [key, value] : nb::borrow<nb::dict>(dict)) {
    const std::string name(name_of(key));
    const FeatureDescription* f = find(described, name);
    if (f == nullptr) raise(ErrorKind::invalid_argument, "output '" + name + "': not an output of the model");
    if (f->type != FeatureType::multi_array && f->type != FeatureType::image)
      raise_type("output '" + name + "': only multi-arrays and images can be written in place, this is " +
                 f->formatted_type());
    MultiArray array;
    const bool is_buffer = PyObject_CheckBuffer(value.ptr()) != 0;
    if (!is_buffer || !borrowed.array(value, true, array)) {
      if (is_buffer && borrowed.array(value, false, array))
        raise(ErrorKind::invalid_argument, "output '" + name + "': expected a writable array, got a read-only one");
      raise_type("output '" + name + "': expected a writable array for " + f->formatted_type() + ", got " +
                 kind_of(value));
    }
    if (f->type == FeatureType::image)
      out[name] = image_in(array, "output '" + name + "'", *f);
    else
      out[name] = array;
  }
  return out;
}

nb::object to_numpy(const MultiArray& array) {
  MultiArray shared = array;
  return array_object(shared.data(), array.shape(), array.strides(), array.type(), owner_of(array));
}

nb::object numpy_view(const ArrayView& view, bool channels_last) {
  const std::vector<int64_t> shape(view.shape.begin(), view.shape.end());
  std::vector<int64_t> strides;
  if (const size_t rank = shape.size(); channels_last && rank >= 3) {
    strides.assign(rank, 0);
    int64_t step = shape[1];
    for (size_t i = rank; i-- > 2; step *= shape[i]) strides[i] = step;
    strides[0] = step;
    strides[1] = 1;
  }
  // An owner that keeps nothing: without one, nanobind would copy.
  return array_object(view.data, shape, strides, view.type, nb::none());
}

nb::object read_only(nb::object array) {
  array.attr("flags").attr("writeable") = false;
  return array;
}

nb::object pixels_of(const Image& image) {
  Image v = image;
  const auto channels = static_cast<int64_t>(bytes_per_pixel(v.format));
  if (v.format == PixelFormat::gray_float32)
    return array_object(v.pixels.get(), {v.height, v.width}, {v.row_bytes / 4, 1}, DataType::float32, owner_of(v));
  if (v.format == PixelFormat::gray_float16)
    return array_object(v.pixels.get(), {v.height, v.width}, {v.row_bytes / 2, 1}, DataType::float16, owner_of(v));
  if (channels == 1)
    return array_object(v.pixels.get(), {v.height, v.width}, {v.row_bytes, 1}, DataType::uint8, owner_of(v));
  return array_object(v.pixels.get(), {v.height, v.width, channels}, {v.row_bytes, channels, 1}, DataType::uint8,
                      owner_of(v));
}

nb::object to_python(const FeatureValue& value) {
  struct Visitor {
    nb::object operator()(std::monostate) const { return nb::none(); }
    nb::object operator()(int64_t v) const { return nb::int_(v); }
    nb::object operator()(double v) const { return nb::float_(v); }
    nb::object operator()(const std::string& v) const { return nb::str(v.c_str(), v.size()); }
    nb::object operator()(const MultiArray& v) const { return to_numpy(v); }
    nb::object operator()(const Image& v) const {
      return nb::module_::import_("moka._images").attr("from_pixels")(pixels_of(v));
    }
    nb::object operator()(const PixelBuffer& v) const { return (*this)(image_of(v, PixelFormat::rgb8)); }
    nb::object operator()(const Dictionary& v) const {
      nb::dict out;
      for (const auto& [key, x] : v.strings) out[nb::str(key.c_str(), key.size())] = x;
      for (const auto& [key, x] : v.ints) out[nb::int_(key)] = x;
      return out;
    }
    nb::object operator()(const StringSequence& v) const {
      nb::list out;
      for (const auto& s : v) out.append(nb::str(s.c_str(), s.size()));
      return out;
    }
    nb::object operator()(const Int64Sequence& v) const {
      nb::list out;
      for (int64_t n : v) out.append(nb::int_(n));
      return out;
    }
  };
  return std::visit(Visitor{}, value);
}

Dict to_dict(const Features& features, nb::handle given) {
  nb::dict out;
  const bool has_given = given.is_valid() && !given.is_none();
  for (const auto& [name, value] : features) {
    nb::str key(name.c_str(), name.size());
    if (has_given && nb::borrow<nb::dict>(given).contains(key))
      out[key] = nb::borrow<nb::dict>(given)[key];
    else
      out[key] = to_python(value);
  }
  return out;
}

}  // namespace moka::python
