// SPDX-License-Identifier: Apache-2.0
#include "pixel_buffer.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>

#include "bindings.h"

namespace moka::python {

namespace {

using Region = std::tuple<double, double, double, double>;

bool is_of_words(PixelBufferFormat format) {
  return format == PixelBufferFormat::p010 || format == PixelBufferFormat::p010_full;
}

std::string shape_text(const std::vector<int64_t>& shape) {
  std::string text = "(";
  for (size_t i = 0; i < shape.size(); i++) text += (i == 0 ? "" : ", ") + std::to_string(shape[i]);
  return text + (shape.size() == 1 ? ",)" : ")");
}

/// A plane, or all of them, as an array of samples, or of bytes.
MultiArray samples_of(nb::handle object, PixelBufferFormat format, const std::string& where, Borrowed& borrowed) {
  MultiArray array;
  const std::string expected = is_of_words(format) ? "uint16 samples or bytes" : "uint8 samples";
  if (!borrowed.array(borrowed.keep(nb::borrow(object)), false, array))
    raise_type(where + ": expected a buffer of " + expected + ", got " + kind_of(object));
  if (array.type() != DataType::uint8 && !(is_of_words(format) && array.type() == DataType::uint16))
    raise(ErrorKind::invalid_argument, where + ": expected " + expected + ", got " + describe(FeatureValue(array)));
  // The samples of a row lie side by side.
  int64_t dense = 1;
  for (size_t i = array.shape().size(); i-- > 1;) {
    if (array.shape()[i] > 1 && array.strides()[i] != dense)
      raise(ErrorKind::invalid_argument, where + ": expected rows without gaps between their samples");
    dense *= array.shape()[i];
  }
  if (array.shape().size() == 1 && array.shape()[0] > 1 && array.strides()[0] != 1)
    raise(ErrorKind::invalid_argument, where + ": expected rows without gaps between their samples");
  return array;
}

int64_t row_bytes_of(const MultiArray& plane) {
  if (plane.shape().size() < 2 || plane.shape()[0] < 2) return 0;
  return plane.strides()[0] * static_cast<int64_t>(size_of(plane.type()));
}

/// Checks the shape of a plane: its rows, and samples in each. Planes of one dimension are bytes without gaps.
void check_plane(const MultiArray& plane, PixelBufferFormat format, int64_t rows, int64_t samples,
                 const std::string& where) {
  const int64_t element = static_cast<int64_t>(size_of(plane.type())), sample = is_of_words(format) ? 2 : 1;
  const auto& shape = plane.shape();
  const bool is_flat = shape.size() == 1;
  const bool fits = is_flat ? shape[0] * element == rows * samples * sample
                            : !shape.empty() && shape[0] == rows && plane.count() * element == rows * samples * sample;
  if (!fits)
    raise(ErrorKind::invalid_argument, where + ": expected " + std::to_string(rows) + " rows of " +
                                           std::to_string(samples) + " samples, got shape " + shape_text(shape));
  if (!is_flat && row_bytes_of(plane) < 0)
    raise(ErrorKind::invalid_argument, where + ": expected rows from top to bottom, got the reverse");
}

/// All planes in one array, such as OpenCV's of height * 3 / 2 rows.
PixelBuffer of_one(nb::handle object, std::optional<int64_t> width, std::optional<int64_t> height,
                   PixelBufferFormat format, Borrowed& borrowed) {
  const std::string where = "PixelBuffer (" + std::string(to_string(format)) + ")";
  const MultiArray array = samples_of(object, format, where, borrowed);
  const auto& shape = array.shape();
  if (!width && shape.size() == 2) {
    const int64_t sample = is_of_words(format) && array.type() == DataType::uint8 ? 2 : 1;
    width = shape[1] / sample;
    if (!height) height = shape[0] * 2 / 3;
  }
  if (!width || !height)
    raise(ErrorKind::invalid_argument,
          where + ": expected width and height, as the array does not tell them, got an array of shape " +
              shape_text(shape));
  if (shape.size() > 1 && shape[0] > 1 &&
      row_bytes_of(array) != array.count() / shape[0] * static_cast<int64_t>(size_of(array.type())))
    raise(ErrorKind::invalid_argument, where + ": expected one array without gaps between rows; planes may have gaps");
  MultiArray shared = array;
  const std::shared_ptr<const uint8_t> samples(std::shared_ptr<const uint8_t>(),
                                               static_cast<const uint8_t*>(shared.data()));
  return PixelBuffer(*width, *height, format, samples, static_cast<size_t>(array.count()) * size_of(array.type()));
}

PixelBuffer of_planes(nb::sequence given, std::optional<int64_t> width, std::optional<int64_t> height,
                      PixelBufferFormat format, Borrowed& borrowed) {
  const bool is_planar = format == PixelBufferFormat::i420 || format == PixelBufferFormat::i420_full;
  const std::string name(to_string(format));
  const size_t wanted = is_planar ? 3 : 2, count = nb::len(given);
  if (count != wanted)
    raise(ErrorKind::invalid_argument,
          "PixelBuffer (" + name + "): expected " + std::to_string(wanted) + " planes, got " + std::to_string(count));
  std::vector<PixelPlane> planes;
  for (size_t p = 0; p < wanted; p++) {
    const std::string where = "PixelBuffer (" + name + "): plane " + std::to_string(p);
    MultiArray plane = samples_of(given[p], format, where, borrowed);
    if (p == 0 && plane.shape().size() == 2) {
      const int64_t sample = is_of_words(format) && plane.type() == DataType::uint8 ? 2 : 1;
      if (!width) width = plane.shape()[1] / sample;
      if (!height) height = plane.shape()[0];
    }
    if (!width || !height)
      raise(ErrorKind::invalid_argument, where + ": expected luma of shape (height, width), or width and height");
    const int64_t chroma = (*width + 1) / 2 * (is_planar ? 1 : 2);
    check_plane(plane, format, p == 0 ? *height : (*height + 1) / 2, p == 0 ? *width : chroma, where);
    planes.emplace_back(static_cast<const void*>(plane.data()), row_bytes_of(plane));
  }
  return PixelBuffer(*width, *height, format, planes);
}

void make(HeldPixelBuffer* to, nb::handle planes, std::optional<int64_t> width, std::optional<int64_t> height,
          const std::string& format, const std::string& matrix, const std::string& fit, std::optional<Region> region) {
  auto borrowed = std::make_unique<Borrowed>();
  const PixelBufferFormat f = pixel_buffer_format(format);
  const bool is_list = nb::isinstance<nb::list>(planes) || nb::isinstance<nb::tuple>(planes);
  PixelBuffer buffer = is_list ? of_planes(nb::borrow<nb::sequence>(planes), width, height, f, *borrowed)
                               : of_one(planes, width, height, f, *borrowed);
  buffer.matrix = ycbcr_matrix(matrix);
  buffer.fit = image_fit(fit);
  if (region) buffer.region = {std::get<0>(*region), std::get<1>(*region), std::get<2>(*region), std::get<3>(*region)};
  new (to) HeldPixelBuffer{std::move(buffer), std::move(borrowed)};
}

PixelFormat format_of_mode(const std::string& mode) {
  if (mode == "RGB") return PixelFormat::rgb8;
  if (mode == "RGBA") return PixelFormat::rgba8;
  if (mode == "BGRA") return PixelFormat::bgra8;
  if (mode == "L") return PixelFormat::gray8;
  if (mode == "F") return PixelFormat::gray_float32;
  raise(ErrorKind::invalid_argument, "mode: expected RGB, RGBA, BGRA, L or F, got '" + mode + "'");
}

}  // namespace

bool is_pixel_buffer(nb::handle value) { return nb::isinstance<HeldPixelBuffer>(value); }

PixelBuffer to_pixel_buffer(nb::handle value, Borrowed& borrowed) {
  borrowed.keep(nb::borrow(value));
  return nb::cast<HeldPixelBuffer&>(value).buffer;
}

void bind_pixel_buffer(nb::module_& m) {
  nb::class_<HeldPixelBuffer>(m, "PixelBuffer",
                              "A picture of a camera or a video decoder, as the value of an image input, in any size. "
                              "A prediction crops it, brings it\n"
                              "to the size that the model takes and converts it to the model's colors, in one pass. "
                              "The memory is borrowed and must not\n"
                              "change during predictions.")
      .def("__init__", make, nb::arg("planes"), nb::arg("width") = nb::none(), nb::arg("height") = nb::none(),
           nb::arg("format") = "nv12", nb::arg("matrix") = "bt601", nb::arg("fit") = "scaleFill",
           nb::arg("region") = nb::none(),
           nb::sig("def __init__(self, planes: typing.Any, width: typing.Optional[int] = None, height: "
                   "typing.Optional[int] = None, format: str = 'nv12', matrix: str = 'bt601', fit: str = 'scaleFill', "
                   "region: "
                   "typing.Optional[typing.Tuple[float, float, float, float]] = None) -> None"),
           "planes: a list of planes: luma (height, width), and chroma, Cb and Cr in turns, or Cb, Cr; or all of them "
           "in one array,\n"
           "such as OpenCV's (height * 3 / 2, width). Arrays or buffers of uint8, for p010 of uint16. width and "
           "height: where the\n"
           "arrays do not tell them. format: nv12, nv12_full, i420, i420_full, p010, p010_full, or Core Video's four "
           "letters.\n"
           "matrix: bt601, bt709, bt2020. fit: scaleFill, scaleFit, centerCrop. region: the part (x, y, width, height) "
           "that is\n"
           "used, in fractions of the picture from its top left corner.")
      .def_prop_ro("width", [](const HeldPixelBuffer& b) { return b.buffer.width; })
      .def_prop_ro("height", [](const HeldPixelBuffer& b) { return b.buffer.height; })
      .def_prop_ro("format", [](const HeldPixelBuffer& b) { return std::string(to_string(b.buffer.format)); })
      .def_prop_ro("matrix", [](const HeldPixelBuffer& b) { return std::string(to_string(b.buffer.matrix)); })
      .def_prop_ro("fit", [](const HeldPixelBuffer& b) { return std::string(to_string(b.buffer.fit)); })
      .def_prop_ro("region",
                   [](const HeldPixelBuffer& b) {
                     const ImageRegion& r = b.buffer.region;
                     return Region(r.x, r.y, r.width, r.height);
                   })
      .def("__repr__", [](const HeldPixelBuffer& b) { return "moka." + describe(FeatureValue(b.buffer)); })
      .def(
          "converted",
          [](const HeldPixelBuffer& b, const std::string& mode) {
            return pixels_of(image_of(b.buffer, format_of_mode(mode)));
          },
          nb::arg("mode") = "RGB", nb::sig("def converted(self, mode: str = 'RGB') -> numpy.ndarray"),
          "The whole picture as an array: mode RGB, RGBA or BGRA (height, width, channels), L (height, width), or F of "
          "float32.")
      .def(
          "fitted",
          [](const HeldPixelBuffer& b, int64_t width, int64_t height, const std::string& mode) {
            return pixels_of(fitted(b.buffer, width, height, format_of_mode(mode)));
          },
          nb::arg("width"), nb::arg("height"), nb::arg("mode") = "RGB",
          nb::sig("def fitted(self, width: int, height: int, mode: str = 'RGB') -> numpy.ndarray"),
          "The picture in this size, by its fit and region, as a prediction takes it.");
}

}  // namespace moka::python
