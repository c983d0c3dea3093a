// SPDX-License-Identifier: Apache-2.0
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>

#include <cstring>

#include "bindings.h"
#include "values.h"

namespace moka::python {

namespace {

/// Resizes `image` to a size that the model accepts.
Image resized(const Image& image, const FeatureDescription& f, const Reading& reading) {
  const auto [width, height] = image_size(f.image, image.width, image.height);
  if (width == image.width && height == image.height) return image;
  const Image fitted = fit_image(image, width, height, image_fit(reading.fit));
  return bytes_per_pixel(fitted.format) == 4 && fitted.format != PixelFormat::gray_float32
             ? converted(fitted, PixelFormat::rgb8)
             : fitted;
}

/// Calls `read`, which reads a file. What is wrong with the file itself becomes IOError.
template <class Read>
auto reading_file(Read read) {
  try {
    return read();
  } catch (const Exception& e) {
    if (e.kind() == ErrorKind::invalid_argument) throw;
    raise(ErrorKind::io, e.what());
  }
}

}  // namespace

bool is_image(nb::handle value) {
  return nb::hasattr(value, "mode") && nb::hasattr(value, "getbands") && nb::hasattr(value, "size");
}

bool is_file(nb::handle value) {
  return nb::isinstance<nb::str>(value) || nb::hasattr(value, "__fspath__") || nb::hasattr(value, "read");
}

Image image_in(MultiArray pixels, const std::string& where, const FeatureDescription& f) {
  const auto& s = pixels.shape();
  PixelFormat format{};
  bool known = true;
  if (s.size() == 2 && pixels.type() == DataType::uint8)
    format = PixelFormat::gray8;
  else if (s.size() == 2 && pixels.type() == DataType::float32)
    format = PixelFormat::gray_float32;
  else if (s.size() == 2 && pixels.type() == DataType::float16)
    format = PixelFormat::gray_float16;
  else if (s.size() == 3 && s[2] == 3 && pixels.type() == DataType::uint8)
    format = PixelFormat::rgb8;
  else if (s.size() == 3 && s[2] == 4 && pixels.type() == DataType::uint8)
    format = PixelFormat::rgba8;
  else
    known = false;
  if (!known)
    raise(ErrorKind::invalid_argument,
          where + ": expected " + f.formatted_type() +
              " as uint8 of shape (H, W), (H, W, 3) or (H, W, 4) or float32 or float16 of shape (H, W), got " +
              describe(FeatureValue(pixels)));
  if (s[0] == 0 || s[1] == 0)
    raise(ErrorKind::invalid_argument, where + ": expected " + f.formatted_type() + ", got a picture of " +
                                           std::to_string(s[1]) + " x " + std::to_string(s[0]) + " pixels");
  const auto& strides = pixels.strides();
  const auto pixel = static_cast<int64_t>(bytes_per_pixel(format)),
             element = static_cast<int64_t>(size_of(pixels.type()));
  const int64_t row = s[0] == 1 ? s[1] * pixel : strides[0] * element;
  if ((s[1] > 1 && strides[1] * element != pixel) || (s.size() == 3 && strides[2] != 1) || row < s[1] * pixel)
    raise(ErrorKind::invalid_argument, where + ": expected rows from top to bottom without gaps between their pixels");
  return Image(pixels.data(), s[1], s[0], format, row);
}

Image to_image(nb::handle value, const FeatureDescription& f, Borrowed& borrowed, const Reading* reading) {
  nb::object array;
  try {
    const nb::object module = nb::module_::import_("moka._images");
    array = module.attr(reading != nullptr ? "as_pixels" : "as_core_ml_pixels")(value);
  } catch (nb::python_error& e) {
    raise_unfit(f, value, e);
  }
  MultiArray pixels;
  if (!borrowed.array(borrowed.keep(array), false, pixels))
    raise_type("input '" + f.name + "': expected " + f.formatted_type() + ", got " + kind_of(value));
  const Image image = image_in(pixels, "input '" + f.name + "'", f);
  return reading != nullptr && reading->resize ? resized(image, f, *reading) : image;
}

FeatureValue to_value_of_file(nb::handle file, const FeatureDescription& f, const Reading& reading) {
  nb::object opened;
  try {
    opened = nb::module_::import_("moka._files").attr("as_file")(file);
  } catch (nb::python_error& e) {
    raise_unfit(f, file, e);
  }
  ReadingOptions options;
  options.fit = image_fit(reading.fit);
  options.rate = reading.rate;
  options.pad = reading.pad;
  options.pad_name = "pad=True";
  options.rate_name = "rate=HZ";
  const auto name = nb::cast<std::string>(opened[0]);
  if (nb::object(opened[1]).is_none()) return reading_file([&] { return read_feature(f, name, options); });
  const nb::bytes data(opened[1]);
  return reading_file([&] {
    return decode_feature(f, {reinterpret_cast<const std::byte*>(data.c_str()), data.size()}, name, options);
  });
}

void bind_values(nb::module_& m) {
  nb::class_<Reading>(m, "Reading", "How files and pictures become values.")
      .def(
          "__init__",
          [](Reading* to, bool resize, const std::string& fit, uint32_t rate, bool pad) {
            image_fit(fit);
            new (to) Reading{resize, fit, rate, pad};
          },
          nb::arg("resize") = false, nb::arg("fit") = "scaleFill", nb::arg("rate") = 0, nb::arg("pad") = false);
  m.def(
      "read_picture",
      [](const nb::bytes& data, const std::string& name) {
        const Image image = reading_file([&] {
          return decode_image({reinterpret_cast<const std::byte*>(data.c_str()), data.size()}, name);
        });
        return pixels_of(image);
      },
      nb::arg("data"), nb::arg("name"), nb::sig("def read_picture(data: bytes, name: str) -> numpy.ndarray"),
      "The pixels of a PNG, JPEG or WebP file, [H, W] or [H, W, 4].");
}

}  // namespace moka::python
