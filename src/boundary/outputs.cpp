// SPDX-License-Identifier: Apache-2.0
#include "boundary/outputs.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/half.h"
#include "base/pixels.h"
#include "boundary/arrays.h"
#include "boundary/descriptions.h"
#include "trace/data_copy.h"

namespace moka::boundary {

namespace {

Error output_mismatch(const import::FeatureDescription& f, std::string_view expected, std::string_view got) {
  return fail(ErrorCode::invalid_argument, "output '", f.name, "': expected ", expected, ", got ", got);
}

void convert(const ir::TensorView& from, const ir::TensorView& to) {
  int64_t n = from.count();
  if (from.dtype == to.dtype) {
    if (auto bytes = ir::storage_bytes(from.dtype, from.shape); bytes.ok() && *bytes > 0)
      std::memcpy(to.data, from.data, *bytes);
  } else if (from.dtype == ir::DType::fp32 && to.dtype == ir::DType::fp16) {
    float_to_half(from.as<float>(), to.as<uint16_t>(), static_cast<size_t>(n));
  } else if (from.dtype == ir::DType::fp16 && to.dtype == ir::DType::fp32) {
    half_to_float(from.as<uint16_t>(), to.as<float>(), static_cast<size_t>(n));
  } else if (ir::is_float(from.dtype)) {
    for (int64_t i = 0; i < n; i++) ir::store_f64(to, i, ir::load_f64(from, i));
  } else {
    for (int64_t i = 0; i < n; i++) ir::store_i64(to, i, ir::load_i64(from, i));
  }
}

Status store_array(const import::FeatureDescription& f, const ir::TensorView& view, FeatureValue& value) {
  DataType type = MOKA_TRY_IN(from_ir(f.array.dtype), cat("output '", f.name, "'"));
  if (view.dtype == ir::DType::string)
    return fail(ErrorCode::unsupported, "output '", f.name, "': a multi-array of strings");
  int64_t one = 1;
  std::span<const int64_t> shape = view.shape.rank() == 0 ? std::span<const int64_t>(&one, 1) : view.shape.dims();
  auto* backing = std::get_if<MultiArray>(&value);
  if (backing == nullptr && !std::holds_alternative<std::monostate>(value))
    return output_mismatch(f, "a MultiArray to write to", describe(value));
  if (backing == nullptr || backing->data() == nullptr) {
    value = MOKA_TRY(new_array(to_ir(type), view.shape));
    backing = &std::get<MultiArray>(value);
  }
  if (backing->type() != type ||
      !std::equal(shape.begin(), shape.end(), backing->shape().begin(), backing->shape().end())) {
    MultiArray wanted(nullptr, type, {shape.begin(), shape.end()});
    return output_mismatch(f, cat("room for ", describe(wanted)), describe(value));
  }
  if (backing->is_contiguous()) {
    convert(view, {to_ir(type), view.shape, backing->data()});
    return {};
  }
  ir::TensorView all{to_ir(type), view.shape, backing->data()};
  int64_t index[ir::kMaxRank] = {};
  int64_t offset = 0;
  for (int64_t i = 0, n = view.count(); i < n; i++) {
    if (ir::is_float(view.dtype))
      ir::store_f64(all, offset, ir::load_f64(view, i));
    else
      ir::store_i64(all, offset, ir::load_i64(view, i));
    for (size_t d = shape.size(); d-- > 0;) {
      offset += backing->strides()[d];
      if (++index[d] < shape[d]) break;
      offset -= backing->strides()[d] * shape[d];
      index[d] = 0;
    }
  }
  return {};
}

/// Converts planes of float32 into bytes of pixels. `swap`: the first plane is the last color of a pixel.
void store_pixels(const float* planes, const Image& image, int channels, bool swap) {
  constexpr int64_t kPixels = 256;  // converted at a time
  uint8_t c[3][kPixels];
  const int64_t w = image.width, count = w * image.height;
  const size_t step = bytes_per_pixel(image.format);
  const uint8_t *first = c[swap ? 2 : 0], *last = c[swap ? 0 : 2];
  for (int64_t y = 0; y < image.height; y++) {
    for (int64_t x = 0; x < w; x += kPixels) {
      const int64_t n = std::min(kPixels, w - x);
      uint8_t* p = image.pixels.get() + y * image.row_bytes + x * static_cast<int64_t>(step);
      if (channels == 1) {
        float_to_byte(planes + y * w + x, p, static_cast<size_t>(n));
        continue;
      }
      for (int k = 0; k < 3; k++) float_to_byte(planes + k * count + y * w + x, c[k], static_cast<size_t>(n));
      for (int64_t i = 0; i < n; i++, p += step) {
        p[0] = first[i];
        p[1] = c[1][i];
        p[2] = last[i];
        if (step == 4) p[3] = 255;
      }
    }
  }
}

/// Converts a plane into rows of half floats or floats, which may begin anywhere.
Status store_plane(const ir::TensorView& view, const Image& image, ir::DType type) {
  const ir::Shape row{image.width};
  const size_t bytes = MOKA_TRY(ir::storage_bytes(type, row)), step = MOKA_TRY(ir::storage_bytes(view.dtype, row));
  std::vector<std::byte> converted(view.dtype == type ? 0 : bytes);
  for (int64_t y = 0; y < image.height; y++) {
    std::byte* from = view.as<std::byte>() + static_cast<size_t>(y) * step;
    if (view.dtype != type) {
      convert({view.dtype, row, from}, {type, row, converted.data()});
      from = converted.data();
    }
    std::memcpy(image.pixels.get() + y * image.row_bytes, from, bytes);
  }
  return {};
}

Status store_image(const import::FeatureDescription& f, const ir::TensorView& view, FeatureValue& value) {
  int rank = view.shape.rank();
  bool gray = f.image.color == import::ColorSpace::grayscale || f.image.color == import::ColorSpace::grayscale_float16;
  int64_t channels = gray ? 1 : 3;
  bool fits = rank >= 2 && (rank < 3 ? gray : view.shape[rank - 3] == channels);
  for (int i = 0; i < rank - 3; i++) fits &= view.shape[i] == 1;
  if (!fits)
    return fail(ErrorCode::malformed, "output '", f.name, "': an image needs ", channels,
                " planes, the model computes ", view.shape);
  int64_t h = view.shape[rank - 2], w = view.shape[rank - 1];
  if (h < 1 || w < 1 || h > 65536 || w > 65536)
    return fail(ErrorCode::malformed, "output '", f.name, "': an image of ", w, " x ", h);
  PixelFormat format = f.image.color == import::ColorSpace::grayscale_float16 ? PixelFormat::gray_float16
                       : gray                                                 ? PixelFormat::gray8
                                                                              : PixelFormat::rgba8;
  auto* backing = std::get_if<Image>(&value);
  if (backing == nullptr && !std::holds_alternative<std::monostate>(value))
    return output_mismatch(f, "an Image to write to", describe(value));
  if (backing == nullptr || backing->pixels == nullptr) {
    value = Image(w, h, format);
    backing = &std::get<Image>(value);
  }
  if (backing->width != w || backing->height != h)
    return output_mismatch(f, cat("room for Image (", w, " x ", h, ")"), describe(value));
  bool color_backing = backing->format == PixelFormat::rgba8 || backing->format == PixelFormat::bgra8 ||
                       backing->format == PixelFormat::rgb8;
  // Half floats may also be given as float32.
  const bool is_wider = format == PixelFormat::gray_float16 && backing->format == PixelFormat::gray_float32;
  if (gray == color_backing || (gray && backing->format != format && !is_wider))
    return output_mismatch(f, "pixels of the image's color space", "another pixel format");
  bool swap = (f.image.color == import::ColorSpace::bgr) != (backing->format == PixelFormat::bgra8);
  int64_t pixels = w * h;
  size_t step = bytes_per_pixel(backing->format);
  const bool is_float = ir::is_float(view.dtype);
  auto number = [&](int64_t i) {
    return is_float ? ir::load_f64(view, i) : static_cast<double>(ir::load_i64(view, i));
  };
  auto byte = [&](int64_t i) {
    double v = number(i);
    return static_cast<uint8_t>(std::isnan(v) ? 0 : std::lrint(std::clamp(v, 0.0, 255.0)));
  };
  if (const ir::DType own = kernel::element_of(static_cast<kernel::PixelFormat>(backing->format));
      own == ir::DType::fp16 || own == ir::DType::fp32)
    return store_plane(view, *backing, own);
  if (view.dtype == ir::DType::fp32) {
    store_pixels(view.as<float>(), *backing, gray ? 1 : 3, swap);
    return {};
  }
  for (int64_t y = 0; y < h; y++) {
    uint8_t* p = backing->pixels.get() + y * backing->row_bytes;
    for (int64_t x = 0; x < w; x++, p += step) {
      int64_t i = y * w + x;
      if (gray) {
        p[0] = byte(i);
      } else {
        p[swap ? 2 : 0] = byte(i);
        p[1] = byte(i + pixels);
        p[swap ? 0 : 2] = byte(i + 2 * pixels);
        if (step == 4) p[3] = 255;
      }
    }
  }
  return {};
}

}  // namespace

Image image_in(const ir::TensorView& view, std::shared_ptr<const void> owner) {
  const int rank = view.shape.rank();
  Image image(view.data, view.shape[rank - 1], view.shape[rank - 2], PixelFormat::gray_float16);
  image.pixels = {std::const_pointer_cast<void>(std::move(owner)), static_cast<uint8_t*>(view.data)};
  return image;
}

Status store_output(const import::FeatureDescription& f, const ir::Type& type, const ir::TensorView& view,
                    FeatureValue& value) {
  auto wrong = [&] {
    return fail(ErrorCode::malformed, "output '", f.name, "': described as ", to_public(f).formatted_type(),
                ", the model computes ", type);
  };
  const trace::DataCopy copy;
  const auto record = [&](std::string_view kind, const std::string& reason) {
    if (const auto bytes = ir::storage_bytes(view.dtype, view.shape); bytes.ok())
      copy.record(f.name, kind, *bytes, reason);
  };
  switch (f.kind) {
    case import::FeatureKind::multi_array:
    case import::FeatureKind::state: {
      if (!type.is_tensor()) return wrong();
      MOKA_TRY(store_array(f, view, value));
      if (!copy.is_recorded()) return {};
      if (view.dtype != f.array.dtype)
        record("convert", cat(ir::to_string(view.dtype), " to ", ir::to_string(f.array.dtype)));
      else
        record("copy", "it is not computed in memory of its own");
      return {};
    }
    case import::FeatureKind::image:
      if (!type.is_tensor() || type.dtype() == ir::DType::string) return wrong();
      MOKA_TRY(store_image(f, view, value));
      if (!copy.is_recorded()) return {};
      if (const ir::DType own = kernel::element_of(static_cast<kernel::PixelFormat>(std::get<Image>(value).format));
          own == view.dtype)
        record("copy", "it is not computed in memory of its own");
      else if (ir::is_float(own))
        record("convert", cat(view.dtype, " to ", own));
      else
        record("convert", cat("planes of ", ir::to_string(view.dtype), " to pixels"));
      return {};
    case import::FeatureKind::int64:
      if (!type.is_tensor() || view.count() != 1 || type.dtype() == ir::DType::string) return wrong();
      value = ir::load_i64(view, 0);
      return {};
    case import::FeatureKind::float64:
      if (!type.is_tensor() || view.count() != 1 || type.dtype() == ir::DType::string) return wrong();
      value = ir::load_f64(view, 0);
      return {};
    case import::FeatureKind::string:
      if (!type.is_tensor() || view.count() != 1 || type.dtype() != ir::DType::string) return wrong();
      if (auto* s = std::get_if<std::string>(&value))
        *s = *view.as<std::string>();
      else
        value = *view.as<std::string>();
      return {};
    case import::FeatureKind::dictionary: {
      if (!type.is_dict()) return wrong();
      const ir::Dict& d = view.dict();
      Dictionary out;
      out.string_keys = d.string_keys;
      for (size_t i = 0; i < d.size(); i++) {
        if (d.string_keys)
          out.strings[d.text_keys[i]] = d.values[i];
        else
          out.ints[d.int_keys[i]] = d.values[i];
      }
      value = std::move(out);
      return {};
    }
    case import::FeatureKind::sequence:
      if (!type.is_tensor()) return wrong();
      if (type.dtype() == ir::DType::string) {
        value = StringSequence(view.as<std::string>(), view.as<std::string>() + view.count());
      } else {
        Int64Sequence s;
        for (int64_t i = 0; i < view.count(); i++) s.push_back(ir::load_i64(view, i));
        value = std::move(s);
      }
      return {};
  }
  return {};
}

}  // namespace moka::boundary
