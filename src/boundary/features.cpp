// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "boundary/descriptions.h"
#include "boundary/errors.h"
#include "boundary/pixel_buffers.h"
#include "kernel/pixels.h"
#include "moka/feature.h"

namespace moka {

namespace boundary {

void raise(const Error& error) {
  throw Exception(static_cast<ErrorKind>(static_cast<int>(error.code()) + 1), error.to_string());
}

Error reclassified(Error error, ErrorCode code) {
  return error.code() == ErrorCode::invalid_argument ? fail(code, error.to_string()) : std::move(error);
}

}  // namespace boundary

static_assert(static_cast<int>(PixelFormat::gray_float16) == static_cast<int>(kernel::PixelFormat::gray_float16));

size_t bytes_per_pixel(PixelFormat format) { return kernel::bytes_per_pixel(static_cast<kernel::PixelFormat>(format)); }

namespace {
void check_size(int64_t width, int64_t height) {
  if (width < 1 || height < 1 || width > 65536 || height > 65536)
    throw Exception(ErrorKind::invalid_argument,
                    cat("image: expected sizes of 1 to 65536, got ", width, " x ", height));
}
}  // namespace

Image::Image(int64_t w, int64_t h, PixelFormat f) : width(w), height(h), format(f) {
  check_size(w, h);
  row_bytes = w * static_cast<int64_t>(bytes_per_pixel(f));
  pixels =
      std::shared_ptr<uint8_t>(new uint8_t[static_cast<size_t>(row_bytes * h)](), std::default_delete<uint8_t[]>());
}

Image::Image(void* p, int64_t w, int64_t h, PixelFormat f, int64_t stride)
    : width(w), height(h), format(f), row_bytes(stride) {
  check_size(w, h);
  int64_t least = w * static_cast<int64_t>(bytes_per_pixel(f));
  if (row_bytes == 0) row_bytes = least;
  if (p == nullptr) throw Exception(ErrorKind::invalid_argument, "image: expected pixels, got none");
  if (row_bytes < least)
    throw Exception(ErrorKind::invalid_argument,
                    cat("image: expected rows of at least ", least, " bytes, got ", row_bytes));
  pixels = std::shared_ptr<uint8_t>(std::shared_ptr<uint8_t>(), static_cast<uint8_t*>(p));
}

std::string describe(const FeatureValue& value) {
  struct Visitor {
    std::string operator()(std::monostate) const { return "no value"; }
    std::string operator()(int64_t) const { return "Int64"; }
    std::string operator()(double) const { return "Double"; }
    std::string operator()(const std::string&) const { return "String"; }
    std::string operator()(const MultiArray& a) const {
      std::string s;
      for (int64_t d : a.shape()) s += cat(s.empty() ? "" : " x ", d);
      return cat("MultiArray (", boundary::core_ml_name(a.type()), " ", s, ")");
    }
    std::string operator()(const Image& i) const { return cat("Image (", i.width, " x ", i.height, ")"); }
    std::string operator()(const Dictionary& d) const {
      return d.string_keys ? "Dictionary (String -> Double)" : "Dictionary (Int64 -> Double)";
    }
    std::string operator()(const StringSequence& s) const { return cat("Sequence (", s.size(), " strings)"); }
    std::string operator()(const Int64Sequence& s) const { return cat("Sequence (", s.size(), " integers)"); }
    std::string operator()(const PixelBuffer& b) const { return cat("PixelBuffer (", boundary::text_of(b), ")"); }
  };
  return std::visit(Visitor{}, value);
}

FeatureValue& Features::operator[](std::string_view name) {
  if (FeatureValue* v = find(name)) return *v;
  // For a few numbers, moving values to a larger array takes longer than the prediction.
  constexpr size_t kFirst = 8;
  if (items_.size() == items_.capacity()) items_.reserve(std::max(kFirst, 4 * items_.size()));
  items_.emplace_back(std::string(name), FeatureValue{});
  return items_.back().second;
}

namespace {
template <class Items>
auto find_in(Items& items, std::string_view name) -> decltype(&items.front().second) {
  // The names of a table's columns often differ only in the last character, so it is compared first.
  for (auto& [n, v] : items)
    if (n.size() == name.size() && (name.empty() || (n.back() == name.back() && n == name))) return &v;
  return nullptr;
}
}  // namespace

const FeatureValue* Features::find(std::string_view name) const { return find_in(items_, name); }
FeatureValue* Features::find(std::string_view name) { return find_in(items_, name); }

const FeatureValue& Features::at(std::string_view name) const {
  if (const FeatureValue* v = find(name)) return *v;
  std::string all;
  for (const auto& [n, v] : items_) all += cat(all.empty() ? "'" : ", '", n, "'");
  throw Exception(ErrorKind::not_found, cat("feature: expected one of ", all, ", got '", name, "'"));
}

const MultiArray& Features::array(std::string_view name) const {
  const FeatureValue& v = at(name);
  if (const auto* a = std::get_if<MultiArray>(&v)) return *a;
  throw Exception(ErrorKind::invalid_argument, cat("feature '", name, "': expected a MultiArray, got ", describe(v)));
}

}  // namespace moka
