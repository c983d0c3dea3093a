// SPDX-License-Identifier: Apache-2.0
#include "boundary/inputs.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "base/whole.h"
#include "boundary/arrays.h"
#include "boundary/descriptions.h"
#include "boundary/pixel_buffers.h"

namespace moka::boundary {

namespace {

std::string joined(std::span<const int64_t> shape) {
  std::string s;
  for (int64_t d : shape) s += cat(s.empty() ? "" : " x ", d);
  return s.empty() ? "scalar" : s;
}

Error mismatch(const import::FeatureDescription& f, std::string_view expected, std::string_view got) {
  return fail(ErrorCode::invalid_argument, "input '", f.name, "': expected ", expected, ", got ", got);
}

std::string expected_text(const import::FeatureDescription& f) { return to_public(f).formatted_type(); }

/// `shape` as [sequence, batch, channel, height, width]; nullopt when `f` does not accept it in this form.
std::optional<ir::Shape> rank5_shape(const import::FeatureDescription& f, std::span<const int64_t> shape) {
  const size_t described = f.array.rank();
  ir::Shape s{1, 1};
  if (shape.size() == described)
    for (int64_t d : shape) s.push_back(d);
  else if (shape.size() == 5 || (shape.size() == 3 && described == 1))
    s = ir::Shape(shape);
  else
    return std::nullopt;
  while (s.rank() < 5) s.push_back(1);
  if (s[0] < 1 || s[1] < 1 || (described == 1 && (s[3] != 1 || s[4] != 1))) return std::nullopt;
  return s;
}

std::string rank5_text(const import::FeatureDescription& f) {
  return f.array.rank() == 1 ? cat(expected_text(f), ", Seq x Batch x C or Seq x Batch x C x 1 x 1")
                             : cat(expected_text(f), " or Seq x Batch x C x H x W");
}

Status check_image_size(const import::FeatureDescription& f, int64_t w, int64_t h) {
  const import::ImageConstraint& c = f.image;
  auto inside = [](int64_t n, const import::SizeRange& r) { return n >= r.lower && (r.upper < 0 || n <= r.upper); };
  bool ok;
  if (!c.enumerated.empty())
    ok = (w == c.width && h == c.height) ||
         std::find(c.enumerated.begin(), c.enumerated.end(), std::pair(w, h)) != c.enumerated.end();
  else
    ok = (c.width_range ? inside(w, *c.width_range) : w == c.width) &&
         (c.height_range ? inside(h, *c.height_range) : h == c.height);
  if (!ok) return mismatch(f, expected_text(f), cat("Image (", w, " x ", h, ")"));
  return {};
}

/// The tensor type of an array of this shape: the declared type when only the rank differs.
Result<ir::Type> array_type(const import::FeatureDescription& f, const ir::Type& declared,
                            std::span<const int64_t> shape) {
  if (!declared.is_tensor()) return mismatch(f, cat(declared), "a MultiArray");
  ir::Type t = declared;
  ir::Shape s = MOKA_TRY_IN(ir::Shape::make(shape), cat("input '", f.name, "'"));
  if (declared.is_ranked() && declared.rank() == s.rank()) {
    for (int i = 0; i < s.rank(); i++)
      if (declared.shape()[i] >= 0 && declared.shape()[i] != s[i])
        return mismatch(f, cat("shape ", declared.shape()), cat("shape ", s));
  } else if (declared.is_concrete()) {
    if (declared.shape().count() != MOKA_TRY(s.checked_count()))
      return mismatch(f, cat("shape ", declared.shape()), cat("shape ", s));
    return declared;
  } else if (declared.is_ranked()) {
    return mismatch(f, cat("rank ", declared.rank()), cat("shape ", s));
  }
  return ir::Type::tensor(t.dtype(), s);
}

bool is_number(const FeatureValue& v) {
  return std::holds_alternative<int64_t>(v) || std::holds_alternative<double>(v);
}

/// The value of a number that is not stored as an integer; nullopt for other values.
std::optional<double> floating(const FeatureValue& v) {
  if (const auto* x = std::get_if<double>(&v)) return *x;
  const auto* a = std::get_if<MultiArray>(&v);
  return a != nullptr && ir::is_float(to_ir(a->type())) ? std::optional(a->at(0)) : std::nullopt;
}

/// The type of an array for an input that accepts rank 5, in the form of `declared`.
Result<ir::Type> rank5_type(const import::FeatureDescription& f, const ir::Type& declared,
                            std::span<const int64_t> shape) {
  auto whole = rank5_shape(f, shape);
  if (!whole) return mismatch(f, rank5_text(f), cat("shape ", joined(shape)));
  std::span<const int64_t> described = whole->dims().subspan(2, f.array.rank());
  if (f.array.ranges.empty() && f.array.enumerated.empty() && shape.size() != described.size() &&
      !std::equal(described.begin(), described.end(), f.array.shape.begin(), f.array.shape.end()))
    return mismatch(f, rank5_text(f), cat("shape ", joined(shape)));
  MOKA_TRY(check_array_shape(f, described));
  return array_type(f, declared, declared.rank() == 5 ? whole->dims() : described);
}

using Sides = std::pair<int64_t, int64_t>;

/// The width and height of the picture that an image input gets.
Result<Sides> size_of_picture(const import::FeatureDescription& f, const FeatureValue& value) {
  if (const auto* b = std::get_if<PixelBuffer>(&value)) {
    MOKA_TRY_IN(frame_of(*b), cat("input '", f.name, "'"));
    const Sides size = pictures::nearest_size(f.image, pictures::part_of_side(b->region.width, b->width),
                                              pictures::part_of_side(b->region.height, b->height));
    MOKA_TRY_IN(placement_of(*b, size.first, size.second), cat("input '", f.name, "'"));
    return size;
  }
  const auto* i = std::get_if<Image>(&value);
  if (i == nullptr || i->pixels == nullptr) return mismatch(f, expected_text(f), describe(value));
  MOKA_TRY(check_image_size(f, i->width, i->height));
  return Sides(i->width, i->height);
}

}  // namespace

Status check_array_shape(const import::FeatureDescription& f, std::span<const int64_t> shape) {
  const import::MultiArrayConstraint& c = f.array;
  if (!c.enumerated.empty()) {
    for (const auto& e : c.enumerated)
      if (std::equal(e.begin(), e.end(), shape.begin(), shape.end())) return {};
    return mismatch(f, expected_text(f),
                    cat("MultiArray Shape (", joined(shape), ") was not in enumerated set of allowed shapes"));
  }
  if (!c.ranges.empty()) {
    if (shape.size() != c.ranges.size()) return mismatch(f, expected_text(f), cat("shape ", joined(shape)));
    for (size_t i = 0; i < shape.size(); i++) {
      const auto& r = c.ranges[i];
      if (shape[i] < r.lower || (r.upper >= 0 && shape[i] > r.upper))
        return mismatch(f, expected_text(f),
                        cat("Size (", shape[i], ") of dimension (", i, ") is not in allowed range (", r.lower, "..",
                            r.upper < 0 ? std::string("inf") : cat(r.upper), ")"));
    }
    return {};
  }
  if (!c.shape.empty() && !std::equal(c.shape.begin(), c.shape.end(), shape.begin(), shape.end()))
    return mismatch(f, expected_text(f), cat("shape ", joined(shape)));
  return {};
}

kernel::PlaneOrder plane_order(const import::FeatureDescription& f) {
  switch (f.image.color) {
    case import::ColorSpace::grayscale:
    case import::ColorSpace::grayscale_float16: return kernel::PlaneOrder::gray;
    case import::ColorSpace::rgb: return kernel::PlaneOrder::rgb;
    case import::ColorSpace::bgr: return kernel::PlaneOrder::bgr;
  }
  return kernel::PlaneOrder::rgb;
}

kernel::Pixels pixels_of(const Image& image) {
  return {static_cast<kernel::PixelFormat>(image.format), image.width, image.height, image.row_bytes,
          image.pixels.get()};
}

Leading leading_of(const import::FeatureDescription& f, const FeatureValue& value) {
  const auto* a = f.array.takes_rank5 ? std::get_if<MultiArray>(&value) : nullptr;
  const auto shape = a != nullptr ? rank5_shape(f, a->shape()) : std::nullopt;
  return shape ? Leading{(*shape)[0], (*shape)[1]} : Leading{};
}

Result<ir::Type> input_type(const import::FeatureDescription& f, const ir::Type& declared, const FeatureValue& value) {
  switch (f.kind) {
    case import::FeatureKind::int64:
    case import::FeatureKind::float64: {
      const auto* a = std::get_if<MultiArray>(&value);
      if (!is_number(value) && !(a != nullptr && a->count() == 1))
        return mismatch(f, expected_text(f), describe(value));
      if (a != nullptr && lacks_data(*a)) return mismatch(f, expected_text(f), "a MultiArray without data");
      if (f.kind == import::FeatureKind::int64)
        if (const auto x = floating(value); x && !is_int64(*x)) return mismatch(f, "a whole number", cat(*x));
      return declared;
    }
    case import::FeatureKind::string:
      if (!std::holds_alternative<std::string>(value)) return mismatch(f, expected_text(f), describe(value));
      return declared;
    case import::FeatureKind::dictionary: {
      const auto* d = std::get_if<Dictionary>(&value);
      bool empty = d != nullptr && d->strings.empty() && d->ints.empty();
      // Converters describe dictionaries with integer keys as dictionaries with string keys, so a string key may be the
      // decimal text of an integer.
      if (d == nullptr || (d->string_keys && !f.string_keys && !empty))
        return mismatch(f, expected_text(f), describe(value));
      return declared;
    }
    case import::FeatureKind::sequence: {
      const auto* s = std::get_if<StringSequence>(&value);
      const auto* i = std::get_if<Int64Sequence>(&value);
      if ((f.string_keys && s == nullptr) || (!f.string_keys && i == nullptr))
        return mismatch(f, expected_text(f), describe(value));
      auto n = static_cast<int64_t>(s != nullptr ? s->size() : i->size());
      const auto& r = f.sequence_length;
      if (n < r.lower && r.lower > 1) return mismatch(f, cat("at least ", r.lower, " elements"), cat(n));
      if (r.upper > 0 && n > r.upper) return mismatch(f, cat("at most ", r.upper, " elements"), cat(n));
      return ir::Type::tensor(declared.dtype(), ir::Shape{n});
    }
    case import::FeatureKind::multi_array: {
      if (is_number(value)) {
        const ir::Shape ones{1, 1, 1, 1, 1};
        return array_type(f, declared,
                          f.array.takes_rank5 && declared.rank() == 5 ? ones.dims() : ones.dims().first(0));
      }
      const auto* a = std::get_if<MultiArray>(&value);
      if (a == nullptr) return mismatch(f, expected_text(f), describe(value));
      if (lacks_data(*a)) return mismatch(f, expected_text(f), "a MultiArray without data");
      if (f.array.takes_rank5) return rank5_type(f, declared, a->shape());
      bool same_count = declared.is_concrete() && declared.is_tensor() && declared.shape().count() == a->count() &&
                        declared.rank() == 0;
      if (!same_count) MOKA_TRY(check_array_shape(f, a->shape()));
      return array_type(f, declared, a->shape());
    }
    case import::FeatureKind::image: {
      const auto [width, height] = MOKA_TRY(size_of_picture(f, value));
      ir::Shape s{1, plane_order(f) == kernel::PlaneOrder::gray ? 1 : 3, height, width};
      if (declared.rank() == 3) s.erase(0);
      return array_type(f, declared, s.dims());
    }
    case import::FeatureKind::state: return declared;
  }
  return declared;
}

Result<ir::Type> default_type(const import::FeatureDescription& f, const ir::Type& declared, int64_t batch) {
  if (f.array.takes_rank5 && declared.rank() == 5 && !f.array.shape.empty()) {
    ir::Shape s{1, batch};
    for (size_t i = 0; i < 3; i++) s.push_back(i < f.array.shape.size() ? f.array.shape[i] : 1);
    return array_type(f, declared, s.dims());
  }
  if (f.kind == import::FeatureKind::multi_array && !declared.is_concrete())
    return array_type(f, declared, f.array.default_shape());
  if (f.kind == import::FeatureKind::image && !declared.is_concrete()) {
    if (!declared.is_tensor() || !declared.is_ranked() || declared.rank() < 3)
      return fail(ErrorCode::malformed, "input '", f.name, "': an image, which the program takes as ", declared);
    ir::Shape s = declared.shape();
    s[s.rank() - 1] = f.image.width;
    s[s.rank() - 2] = f.image.height;
    return ir::Type::tensor(declared.dtype(), s);
  }
  if (f.kind == import::FeatureKind::sequence) return ir::Type::tensor(declared.dtype(), ir::Shape{0});
  return declared;
}

Result<ir::Type> given_type(const import::FeatureDescription& f, const ir::Type& declared, const FeatureValue* value,
                            int64_t batch) {
  if (value != nullptr) return input_type(f, declared, *value);
  if (!f.optional)
    return fail(ErrorCode::invalid_argument, "input '", f.name, "': expected ", expected_text(f), ", got nothing");
  return default_type(f, declared, batch);
}

bool has_default_at_limit(const import::FeatureDescription& f) {
  const auto at_limit = [](int64_t size, const import::SizeRange& r) {
    return r.lower != r.upper && (size <= std::max<int64_t>(r.lower, 1) || size == r.upper);
  };
  const import::MultiArrayConstraint& a = f.array;
  for (size_t i = 0; i < a.ranges.size() && i < a.shape.size(); i++)
    if (at_limit(a.shape[i], a.ranges[i])) return true;
  return (f.image.width_range && at_limit(f.image.width, *f.image.width_range)) ||
         (f.image.height_range && at_limit(f.image.height, *f.image.height_range));
}

runtime::InputValue default_value(const import::FeatureDescription& f, const ir::Type& type) {
  static const ir::Dict of_text{.string_keys = true}, of_whole{.string_keys = false};
  if (type.is_dict()) return f.string_keys ? &of_text : &of_whole;
  // The format has no defaults for scalars. Imputers treat NaN as a missing number, and recommenders a negative count.
  return runtime::Absent{f.kind == import::FeatureKind::float64 || f.threshold ? std::nan("")
                         : f.kind == import::FeatureKind::int64                ? -1
                                                                               : f.array.default_value.value_or(0)};
}

namespace {

void set_dict(const Dictionary& from, bool string_keys, ir::Dict& to) {
  to.string_keys = string_keys;
  to.text_keys.clear();
  to.int_keys.clear();
  to.values.clear();
  for (const auto& [k, v] : from.strings) {
    to.text_keys.push_back(k);
    to.values.push_back(v);
  }
  for (const auto& [k, v] : from.ints) {
    if (string_keys)
      to.text_keys.push_back(std::to_string(k));
    else
      to.int_keys.push_back(k);
    to.values.push_back(v);
  }
}

}  // namespace

Status set_input_value(const import::FeatureDescription& f, const ir::Type& type, const FeatureValue& value,
                       InputMemory& memory, runtime::InputValue& to) {
  if (const auto* d = std::get_if<Dictionary>(&value)) {
    set_dict(*d, f.string_keys, memory.dict);
    to = &memory.dict;
    return {};
  }
  if (const auto* t = std::get_if<std::string>(&value)) {
    to = t;
    return {};
  }
  if (const auto* t = std::get_if<StringSequence>(&value)) {
    to = t->data();
    return {};
  }
  if (const auto* image = std::get_if<Image>(&value)) {
    to = runtime::Picture{pixels_of(*image), plane_order(f)};
    return {};
  }
  if (const auto* b = std::get_if<PixelBuffer>(&value)) {
    const ir::Shape& s = type.shape();
    pictures::Frame frame = MOKA_TRY_IN(frame_of(*b), cat("input '", f.name, "'"));
    const int64_t width = s[s.rank() - 1], height = s[s.rank() - 2];
    const auto placement = MOKA_TRY_IN(placement_of(*b, width, height), cat("input '", f.name, "'"));
    if (memory.frame == nullptr) memory.frame = std::make_unique<runtime::FittedFrame>();
    *memory.frame = {{frame, placement, width, height}, plane_order(f)};
    to = memory.frame.get();
    return {};
  }
  if (const auto* x = std::get_if<double>(&value)) {
    to = ir::ArrayView{ir::DType::fp64, {}, {}, x};
    if (f.kind == import::FeatureKind::float64 && type.dtype() == ir::DType::fp64) return {};
  } else if (const auto* n = std::get_if<int64_t>(&value)) {
    to = ir::ArrayView{ir::DType::int64, {}, {}, n};
  } else if (const auto* v = std::get_if<Int64Sequence>(&value)) {
    to = ir::ArrayView{ir::DType::int64, type.shape().dims(), {}, v->data()};
  } else {
    to = view_of(std::get<MultiArray>(value));
  }
  return MOKA_TRY_IN(check_numbers(f, type.dtype(), value), cat("input '", f.name, "'")), Status{};
}

Status set_given(const import::FeatureDescription& f, const ir::Type& type, const FeatureValue* value,
                 InputMemory& memory, runtime::InputValue& to) {
  if (value != nullptr) return set_input_value(f, type, *value, memory, to);
  to = default_value(f, type);
  return {};
}

}  // namespace moka::boundary
