// SPDX-License-Identifier: Apache-2.0
#include "recording/values.h"

#include <sodium/utils.h>

#include <array>
#include <cmath>
#include <cstring>
#include <limits>

#include "base/error.h"

namespace moka::recording {

namespace {

constexpr std::array kArrayTypes{DataType::float16, DataType::float32, DataType::float64, DataType::int32,
                                 DataType::int8};
constexpr int64_t kMostSide = 65536;

struct NamedFormat {
  const char* name;
  PixelFormat format;
};
constexpr std::array kFormats{NamedFormat{"bgra8", PixelFormat::bgra8}, NamedFormat{"gray8", PixelFormat::gray8},
                              NamedFormat{"gray_float16", PixelFormat::gray_float16}};

Json number_json(double v) {
  if (std::isnan(v)) return "nan";
  if (std::isinf(v)) return v > 0 ? "inf" : "-inf";
  return v;
}

std::string text_of_bytes(const Field& from) {
  const std::string text = from.at("data").text();
  std::string out(text.size(), '\0');
  size_t size = 0;
  if (sodium_base642bin(reinterpret_cast<unsigned char*>(out.data()), out.size(), text.data(), text.size(), nullptr,
                        &size, nullptr, sodium_base64_VARIANT_ORIGINAL) != 0)
    from.at("data").bad("base64", "something else");
  out.resize(size);
  return out;
}

double read_number(const Field& from) {
  if (!from.is_text()) return from.number();
  const std::string text = from.text();
  if (text == "nan") return std::numeric_limits<double>::quiet_NaN();
  if (text == "inf") return std::numeric_limits<double>::infinity();
  if (text == "-inf") return -std::numeric_limits<double>::infinity();
  from.bad("a number, 'nan', 'inf' or '-inf'", "'" + text.substr(0, 40) + "'");
}

DataType read_type(const Field& from) {
  const std::string name = from.at("type").text();
  for (const DataType t : kArrayTypes)
    if (to_string(t) == name) return t;
  from.at("type").bad("a type of a value", "'" + name.substr(0, 40) + "'");
}

std::vector<int64_t> read_shape(const Field& from, int64_t& count) {
  std::vector<int64_t> shape;
  const Field field = from.at("shape");
  if (field.size() > 32) field.bad("at most 32 dimensions", cat(field.size()));
  count = 1;
  bool overflows = false;
  for (size_t i = 0; i < field.size(); i++) {
    shape.push_back(field.item(i).whole<int64_t>());
    if (shape.back() < 0) field.item(i).bad("at least 0", cat(shape.back()));
    overflows |= __builtin_mul_overflow(count, shape.back(), &count);
  }
  if (overflows || count > std::numeric_limits<int64_t>::max() / 8) field.bad("sizes of an array", "too large");
  return shape;
}

MultiArray array_of(DataType type, std::vector<int64_t> shape, int64_t count, const Field& from) {
  const std::string bytes = text_of_bytes(from);
  if (bytes.size() != static_cast<size_t>(count) * size_of(type))
    from.at("data").bad(cat("the bytes of ", count, " elements"), cat(bytes.size(), " bytes"));
  MultiArray out(type, std::move(shape));
  if (!bytes.empty()) std::memcpy(out.data(), bytes.data(), bytes.size());
  return out;
}

Image read_image(const Field& from) {
  const auto width = from.at("width").whole<int64_t>(), height = from.at("height").whole<int64_t>();
  if (width < 1 || width > kMostSide || height < 1 || height > kMostSide)
    from.bad("an image of 1 to 65,536 pixels on each side", cat(width, " x ", height));
  const std::string name = from.at("format").text();
  for (const NamedFormat& f : kFormats) {
    if (name != f.name) continue;
    const std::string bytes = text_of_bytes(from);
    const size_t row = static_cast<size_t>(width) * bytes_per_pixel(f.format);
    if (bytes.size() != row * static_cast<size_t>(height))
      from.at("data").bad(cat("the pixels of ", width, " x ", height), cat(bytes.size(), " bytes"));
    Image out(width, height, f.format);
    for (int64_t y = 0; y < height; y++)
      std::memcpy(out.pixels.get() + y * out.row_bytes, bytes.data() + static_cast<size_t>(y) * row, row);
    return out;
  }
  from.at("format").bad("a format of pixels", "'" + name.substr(0, 40) + "'");
}

Dictionary read_dictionary(const Field& from) {
  const Field keys = from.at("keys"), values = from.at("values");
  if (keys.size() != values.size()) values.bad(cat(keys.size(), " numbers"), cat(values.size()));
  Dictionary out;
  out.string_keys = keys.size() == 0 || keys.item(0).is_text();
  for (size_t i = 0; i < keys.size(); i++) {
    const double value = read_number(values.item(i));
    if (out.string_keys)
      out.strings[keys.item(i).text()] = value;
    else
      out.ints[keys.item(i).whole<int64_t>()] = value;
  }
  return out;
}

std::span<const std::byte> bytes_of(const MultiArray& array) {
  return {static_cast<const std::byte*>(array.data()), static_cast<size_t>(array.count()) * size_of(array.type())};
}

MultiArray row_major(const MultiArray& array) { return array.is_contiguous() ? array : sampled(array, 1); }

struct Writer {
  Json operator()(std::monostate) const { return nullptr; }
  Json operator()(int64_t v) const { return {{"type", "int64"}, {"value", v}}; }
  Json operator()(double v) const { return {{"type", "double"}, {"value", number_json(v)}}; }
  Json operator()(const std::string& v) const { return {{"type", "string"}, {"value", v}}; }
  Json operator()(const MultiArray& v) const {
    return {{"type", to_string(v.type())}, {"shape", v.shape()}, {"data", base64(bytes_of(row_major(v)))}};
  }
  Json operator()(const Image& image) const {
    for (const NamedFormat& f : kFormats) {
      if (image.format != f.format) continue;
      const size_t row = static_cast<size_t>(image.width) * bytes_per_pixel(f.format);
      std::vector<std::byte> bytes(row * static_cast<size_t>(image.height));
      for (int64_t y = 0; y < image.height; y++)
        std::memcpy(bytes.data() + static_cast<size_t>(y) * row, image.pixels.get() + y * image.row_bytes, row);
      return {{"type", "image"},
              {"format", f.name},
              {"width", image.width},
              {"height", image.height},
              {"data", base64(bytes)}};
    }
    return nullptr;
  }
  /// A recording has pictures as colors.
  Json operator()(const PixelBuffer& v) const { return (*this)(image_of(v, PixelFormat::bgra8)); }
  Json operator()(const Dictionary& v) const {
    Json keys = Json::array(), values = Json::array();
    for (const auto& [key, number] : v.strings) keys.push_back(key), values.push_back(number_json(number));
    for (const auto& [key, number] : v.ints) keys.push_back(key), values.push_back(number_json(number));
    return {{"type", "dictionary"}, {"keys", std::move(keys)}, {"values", std::move(values)}};
  }
  Json operator()(const StringSequence& v) const { return {{"type", "strings"}, {"value", v}}; }
  Json operator()(const Int64Sequence& v) const { return {{"type", "int64s"}, {"value", v}}; }
};

}  // namespace

std::string base64(std::span<const std::byte> bytes) {
  std::string out(sodium_base64_ENCODED_LEN(bytes.size(), sodium_base64_VARIANT_ORIGINAL), '\0');
  sodium_bin2base64(out.data(), out.size(), reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size(),
                    sodium_base64_VARIANT_ORIGINAL);
  out.pop_back();
  return out;
}

Json json_of(const FeatureValue& value) { return std::visit(Writer{}, value); }

Json json_of(const Features& features) {
  Json out = Json::object();
  for (const auto& [name, value] : features) out[name] = json_of(value);
  return out;
}

Json json_of(const RecordedSample& s) {
  return {{"type", to_string(s.elements.type())},
          {"shape", s.shape},
          {"sha256", s.sha256},
          {"sample", {{"step", s.step}, {"data", base64(bytes_of(s.elements))}}},
          {"statistics",
           {{"least", s.least}, {"most", s.most}, {"mean", s.mean}, {"nan", s.nan}, {"infinite", s.infinite}}}};
}

FeatureValue read_value(const Field& from) {
  const std::string type = from.at("type").text();
  if (type == "int64") return from.at("value").whole<int64_t>();
  if (type == "double") return read_number(from.at("value"));
  if (type == "string") return from.at("value").text();
  if (type == "image") return read_image(from);
  if (type == "dictionary") return read_dictionary(from);
  if (type == "strings") return from.texts_or("value");
  if (type == "int64s") {
    Int64Sequence out;
    for (size_t i = 0; i < from.at("value").size(); i++) out.push_back(from.at("value").item(i).whole<int64_t>());
    return out;
  }
  int64_t count = 0;
  const DataType element = read_type(from);
  std::vector<int64_t> shape = read_shape(from, count);
  return array_of(element, std::move(shape), count, from);
}

Features read_features(const Field& from) {
  Features out;
  for (const std::string& name : from.names()) out[name] = read_value(from.member(name));
  return out;
}

std::optional<RecordedSample> read_sample(const Field& from) {
  const auto sample = from.find("sample");
  if (!sample) return std::nullopt;
  RecordedSample out;
  int64_t count = 0;
  const DataType type = read_type(from);
  out.shape = read_shape(from, count);
  out.step = sample->at("step").whole<int64_t>();
  if (out.step < 1) sample->at("step").bad("at least 1", cat(out.step));
  const int64_t taken = count / out.step + (count % out.step != 0);
  out.elements = array_of(type, {taken}, taken, *sample);
  out.sha256 = from.text_or("sha256");
  if (const auto s = from.find("statistics")) {
    out.least = s->number_or("least", 0);
    out.most = s->number_or("most", 0);
    out.mean = s->number_or("mean", 0);
    out.nan = s->whole_or<uint64_t>("nan", 0);
    out.infinite = s->whole_or<uint64_t>("infinite", 0);
  }
  return out;
}

MultiArray sampled(const MultiArray& array, int64_t step) {
  const size_t element = size_of(array.type());
  const int64_t taken = array.count() / step + (array.count() % step != 0);
  MultiArray out(array.type(), step == 1 ? array.shape() : std::vector<int64_t>{taken});
  const auto& shape = array.shape();
  std::vector<int64_t> index(shape.size());
  for (int64_t i = 0; i < taken; i++) {
    int64_t left = i * step;
    for (size_t axis = shape.size(); axis-- > 0;) {
      index[axis] = left % shape[axis];
      left /= shape[axis];
    }
    const int64_t at = array.is_contiguous() ? i * step : offset_of(index, shape, array.strides());
    std::memcpy(static_cast<std::byte*>(out.data()) + static_cast<size_t>(i) * element,
                static_cast<const std::byte*>(array.data()) + static_cast<size_t>(at) * element, element);
  }
  return out;
}

}  // namespace moka::recording
