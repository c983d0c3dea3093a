// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "moka/multi_array.h"
#include "moka/pixel_buffer.h"

namespace moka {

/// How an image's pixels are stored.
enum class PixelFormat : uint8_t {
  gray8,
  rgb8,
  rgba8,
  bgra8,
  gray_float32,
  gray_float16,  ///< Core ML's OneComponent16Half
};
MOKA_EXPORT size_t bytes_per_pixel(PixelFormat format);

/// Pixels, owned or borrowed, in rows from top to bottom. Copies share the pixels.
struct MOKA_EXPORT Image {
  int64_t width = 0, height = 0;
  PixelFormat format = PixelFormat::rgba8;
  int64_t row_bytes = 0;
  std::shared_ptr<uint8_t> pixels;

  Image() = default;
  /// Owned and zero-filled. Throws invalid_argument (sizes not in 1..65536).
  Image(int64_t width, int64_t height, PixelFormat format);
  /// Borrowed: `pixels` must outlive the image and every prediction that uses it.
  Image(void* pixels, int64_t width, int64_t height, PixelFormat format, int64_t row_bytes = 0);
};

/// A copy in another format without gaps between rows, or the image itself if it has this one. Gray is 0.299 R + 0.587
/// G + 0.114 B, dropping alpha composes over black, and new alpha is 255. Numbers of gray images stay as they are;
/// those that become bytes are rounded, and cut off at 0 and 255. Throws invalid_argument (no pixels).
MOKA_EXPORT Image converted(const Image& image, PixelFormat format);

/// The whole picture of a buffer as colors, each rounded once, or as gray: luma in the full range. Chroma is repeated.
/// Throws invalid_argument (a buffer that its constructors refuse).
MOKA_EXPORT Image image_of(const PixelBuffer& buffer, PixelFormat format);
/// The buffer in exactly width x height pixels (1 to 65536), by its own fit and region, as a prediction takes it.
/// Colors are within 0.15 of those of real numbers before they are rounded; those of gray floats are not rounded.
/// Throws invalid_argument (also a region that does not lie in the picture).
MOKA_EXPORT Image fitted(const PixelBuffer& buffer, int64_t width, int64_t height, PixelFormat format);

/// Core ML's dictionary: string or int64 keys and numeric values. Only one of the two maps is used.
struct Dictionary {
  bool string_keys = true;
  std::map<std::string, double> strings;
  std::map<int64_t, double> ints;
};

using StringSequence = std::vector<std::string>;
using Int64Sequence = std::vector<int64_t>;

/// Core ML's MLFeatureValue. monostate: no value.
using FeatureValue = std::variant<std::monostate, int64_t, double, std::string, MultiArray, Image, Dictionary,
                                  StringSequence, Int64Sequence, PixelBuffer>;
/// "Int64", "Double", "String", "MultiArray (Float32 1 x 10)", ...: the value's name in messages.
MOKA_EXPORT std::string describe(const FeatureValue& value);

/// Named values in insertion order: the inputs or outputs of a prediction.
class MOKA_EXPORT Features {
 public:
  Features() = default;
  Features(std::initializer_list<std::pair<std::string, FeatureValue>> values) : items_(values) {}

  FeatureValue& operator[](std::string_view name);        ///< adds the name when it is absent
  const FeatureValue* find(std::string_view name) const;  ///< nullptr when absent
  FeatureValue* find(std::string_view name);
  /// Throws not_found, or invalid_argument when the value is not a multi-array.
  const MultiArray& array(std::string_view name) const;
  const FeatureValue& at(std::string_view name) const;
  size_t size() const { return items_.size(); }
  bool empty() const { return items_.empty(); }
  auto begin() const { return items_.begin(); }
  auto end() const { return items_.end(); }
  auto begin() { return items_.begin(); }
  auto end() { return items_.end(); }

 private:
  std::vector<std::pair<std::string, FeatureValue>> items_;
};

}  // namespace moka
