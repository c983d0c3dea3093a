// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "files/error.h"
#include "files/file.h"
#include "files/json_text.h"
#include "files/raw_frame.h"
#include "files/sample_axis.h"
#include "files/text.h"
#include "moka/conversion.h"
#include "moka/files.h"
#include "pictures/placement.h"

namespace moka {
namespace files {
namespace {

bool is_picture(std::string_view extension) {
  return extension == "png" || extension == "jpg" || extension == "jpeg" || extension == "webp";
}

std::string_view file_kinds(FeatureType type) {
  switch (type) {
    case FeatureType::multi_array: return ".npy, .npz, .json, .txt or sound (.wav, .flac, .ogg, .mp3, ...)";
    case FeatureType::image: return ".png, .jpg, .webp, .npy or video (.y4m, .nv12, .i420, .yuv, .p010)";
    case FeatureType::string: return ".txt or .json";
    case FeatureType::int64:
    case FeatureType::float64: return ".txt, .json or .npy";
    default: return ".json";
  }
}

/// The extension of files that begin like this. Empty: the bytes do not tell.
std::string_view extension_of_bytes(std::string_view bytes) {
  using namespace std::string_view_literals;
  constexpr std::pair<std::string_view, std::string_view> kStarts[] = {{"\x89PNG\r\n\x1a\n"sv, "png"},
                                                                       {"\xff\xd8\xff"sv, "jpg"},
                                                                       {"\x93NUMPY"sv, "npy"},
                                                                       {"PK\x03\x04"sv, "npz"},
                                                                       {"YUV4MPEG2 "sv, "y4m"},
                                                                       {"fLaC"sv, "flac"},
                                                                       {"OggS"sv, "ogg"},
                                                                       {"ID3"sv, "mp3"},
                                                                       {".snd"sv, "au"},
                                                                       {"caff"sv, "caf"},
                                                                       {"riff"sv, "w64"},
                                                                       {"{"sv, "json"},
                                                                       {"["sv, "json"}};
  for (const auto& [start, extension] : kStarts)
    if (bytes.starts_with(start)) return extension;
  if (bytes.size() < 12) return {};
  const std::string_view form = bytes.substr(8, 4);
  if (bytes.starts_with("RIFF")) return form == "WEBP" ? "webp" : "wav";
  if (bytes.starts_with("FORM") && form.starts_with("AIF")) return "aiff";
  return {};
}

int64_t clamped(int64_t value, const SizeRange& range) {
  return std::max(range.lower, range.upper < 0 ? value : std::min(value, range.upper));
}

/// Reads a file for a feature.
class FeatureReader {
 public:
  FeatureReader(const FeatureDescription& feature, std::string name, std::string extension,
                const ReadingOptions& options)
      : feature_(feature),
        options_(options),
        name_(std::move(name)),
        extension_(std::move(extension)),
        where_(cat("input '", feature.name, "' (", name_, ")")) {}

  /// `bytes` and `text` give the file's contents. Text may come from a pipe.
  template <class ReadBytes, class ReadText>
  FeatureValue read(const ReadBytes& bytes, const ReadText& text) const {
    const FeatureType type = feature_.type;
    if (type == FeatureType::image && is_picture(extension_)) return image(bytes());
    if (type == FeatureType::image && (extension_ == "y4m" || raw_format_of(extension_))) return frame(bytes());
    if (type == FeatureType::multi_array && is_sound(extension_)) return sound(decode_sound(bytes(), name_));
    if (extension_ == "npy") return of_array(decode_npy(bytes(), name_));
    if (extension_ == "npz") return of_array(member(decode_npz(bytes(), name_)));
    if (type == FeatureType::string && extension_ != "json") return text();
    const bool number = type == FeatureType::int64 || type == FeatureType::float64;
    const bool plain = extension_ == "txt" && (number || type == FeatureType::multi_array);
    if (plain || (extension_ == "json" && type != FeatureType::image)) return of_text(text());
    refuse(ErrorKind::invalid_argument, where_, ": expected ", file_kinds(type), " for ", feature_.formatted_type(),
           ", got '.", extension_, "'");
  }

 private:
  /// Calls `make`, whose errors then name the feature and the file.
  template <class Make>
  auto here(Make make) const {
    try {
      return make();
    } catch (const Exception& e) {
      throw Exception(e.kind(), cat(where_, ": ", e.what()));
    }
  }

  FeatureValue image(std::span<const std::byte> bytes) const {
    const Image decoded = decode_image(bytes, name_, options_.most_pixels);
    return here([&] { return image_value(feature_, decoded, options_.fit, options_.region); });
  }

  FeatureValue frame(std::span<const std::byte> bytes) const {
    const RawFrame& raw = options_.frame;
    PixelBuffer buffer = extension_ == "y4m" ? decode_y4m(bytes, raw.matrix, name_, options_.most_pixels)
                                             : here([&] { return decode_raw_frame(bytes, raw, extension_); });
    buffer.fit = options_.fit;
    buffer.region = options_.region;
    return copied(buffer);
  }

  FeatureValue member(Features arrays) const {
    const std::string& wanted = options_.member.empty() ? feature_.name : options_.member;
    if (FeatureValue* found = arrays.find(wanted)) return std::move(*found);
    if (arrays.size() == 1 && options_.member.empty()) return std::move(arrays.begin()->second);
    std::vector<std::string> names;
    for (const auto& [name, value] : arrays) names.push_back(name);
    refuse(ErrorKind::not_found, name_, ": no member '", wanted, "'; it has ", names.empty() ? "none" : quoted(names));
  }

  FeatureValue of_array(FeatureValue value) const {
    if (auto* texts = std::get_if<StringSequence>(&value)) {
      if (feature_.type == FeatureType::image)
        refuse(ErrorKind::invalid_argument, where_, ": expected numbers for ", feature_.formatted_type(), ", got text");
      if (feature_.type == FeatureType::sequence && feature_.string_keys) return std::move(*texts);
      if (feature_.type == FeatureType::string && texts->size() == 1) return std::move((*texts)[0]);
      refuse(ErrorKind::invalid_argument, where_, ": expected ", feature_.formatted_type(), ", got an array of text");
    }
    const auto& array = std::get<MultiArray>(value);
    if (feature_.type == FeatureType::image) return here([&] { return image_of_array(feature_, array); });
    const MultiArray doubles = array.converted(DataType::float64);
    const auto numbers = std::as_const(doubles).as<double>();
    if (feature_.type == FeatureType::multi_array)
      return here([&] { return array_of_numbers(feature_, numbers, array.shape()); });
    if (numbers.size() == 1 && feature_.type == FeatureType::float64) return numbers[0];
    if (numbers.size() == 1 && feature_.type == FeatureType::int64 && std::abs(numbers[0]) < 0x1p53 &&
        numbers[0] == std::trunc(numbers[0]))
      return static_cast<int64_t>(numbers[0]);
    refuse(ErrorKind::invalid_argument, where_, ": expected ", feature_.formatted_type(), ", got ",
           describe_in_full(array));
  }

  FeatureValue of_text(const std::string& content) const {
    const std::string_view bare = trimmed(content);
    return here([&]() -> FeatureValue {
      if (feature_.type == FeatureType::string && bare.size() >= 2 && bare.front() == '"') {
        const FeatureDescription list{"", "", FeatureType::sequence};
        return std::get<StringSequence>(value_of_text(list, cat("[", bare, "]"))).at(0);
      }
      const bool lists = bare.starts_with('[') || bare.starts_with('{') || bare.starts_with('"');
      if (extension_ == "json" && lists && !is_json(bare)) parse_json(content);
      return value_of_text(feature_, bare);
    });
  }

  FeatureValue sound(const Sound& given) const {
    const Sound sound = options_.rate ? resampled(mono(given), options_.rate) : mono(given);
    const auto axis = sample_axis(feature_.array);
    if (!axis)
      refuse(ErrorKind::invalid_argument, where_, ": expected an array with one dimension of samples, the model takes ",
             feature_.formatted_type());
    std::vector<int64_t> shape = feature_.array.shape;
    if (shape.empty())
      for (const SizeRange& range : feature_.array.ranges) shape.push_back(range.lower);
    const auto have = static_cast<int64_t>(sound.samples.size());
    const int64_t want = samples_for(*axis, shape[*axis], have);
    const auto seconds = [&](int64_t count) {
      return seconds_text(static_cast<double>(count) / static_cast<double>(sound.sample_rate));
    };
    if (want != have && !options_.pad)
      refuse(ErrorKind::invalid_argument, where_, ": expected ", want, " samples, got ", have, " (", seconds(have),
             " at ", sound.sample_rate, " Hz); ", options_.pad_name, " adds silence or cuts the end off",
             options_.rate ? "" : cat(", ", options_.rate_name, " resamples"));
    if (want < have)
      note(cat(name_, ": using the first ", want, " of ", have, " samples (", seconds(want), " of ", seconds(have),
               ")"));
    if (want > have) note(cat(name_, ": ", have, " samples, ", want - have, " of silence added"));
    std::vector<float> samples = sound.samples;
    samples.resize(static_cast<size_t>(want));
    shape[*axis] = want;
    return MultiArray::of(samples, shape).converted(feature_.array.type);
  }

  int64_t samples_for(size_t axis, int64_t usual, int64_t have) const {
    const MultiArrayConstraint& array = feature_.array;
    if (!array.ranges.empty()) return clamped(have, array.ranges[axis]);
    const bool allowed = std::any_of(array.enumerated.begin(), array.enumerated.end(),
                                     [&](const auto& s) { return s.size() > axis && s[axis] == have; });
    return allowed ? have : usual;
  }

  void note(const std::string& text) const {
    if (options_.note) options_.note(text);
  }

  const FeatureDescription& feature_;
  const ReadingOptions& options_;
  const std::string name_, extension_, where_;
};

}  // namespace

std::optional<size_t> sample_axis(const MultiArrayConstraint& constraint) {
  const size_t rank = constraint.ranges.empty() ? constraint.shape.size() : constraint.ranges.size();
  std::optional<size_t> axis;
  for (size_t i = 0; i < rank; ++i) {
    const bool varies = !constraint.ranges.empty() && constraint.ranges[i].lower != constraint.ranges[i].upper;
    const int64_t size = i < constraint.shape.size() ? constraint.shape[i] : constraint.ranges[i].lower;
    if (size == 1 && !varies) continue;
    // A flexible batch is not the time axis of a longer dimension.
    if (axis && size > 1 && *axis < constraint.shape.size() && constraint.shape[*axis] == 1) axis.reset();
    if (axis && size == 1) continue;
    if (axis) return std::nullopt;
    axis = i;
  }
  if (!axis && rank > 0) axis = rank - 1;
  return axis;
}

}  // namespace files

std::pair<int64_t, int64_t> image_size(const ImageConstraint& constraint, int64_t width, int64_t height) {
  return pictures::nearest_size(constraint, width, height);
}

namespace files {
namespace {

/// The size in which an image feature takes a part of a picture.
std::pair<int64_t, int64_t> size_of_value(const FeatureDescription& feature, int64_t width, int64_t height,
                                          const ImageRegion& region) {
  using pictures::part_of_side;
  if (feature.type != FeatureType::image)
    refuse(ErrorKind::invalid_argument, "expected ", feature.formatted_type(), ", got an image");
  const auto size = image_size(feature.image, part_of_side(region.width, width), part_of_side(region.height, height));
  constexpr int64_t kLongest = 65536;
  if (size.first < 1 || size.second < 1 || size.first > kLongest || size.second > kLongest)
    refuse(ErrorKind::invalid_argument, "expected a size the model says, got ", size.first, " x ", size.second);
  return size;
}

bool is_half(const FeatureDescription& feature) { return feature.image.color == ColorSpace::grayscale_float16; }

PixelFormat bytes_of_value(const FeatureDescription& feature) {
  const bool gray = is_half(feature) || feature.image.color == ColorSpace::grayscale;
  return gray ? PixelFormat::gray8 : PixelFormat::rgb8;
}

}  // namespace
}  // namespace files

Image image_value(const FeatureDescription& feature, const Image& image, ImageFit fit, const ImageRegion& region) {
  const auto [width, height] = files::size_of_value(feature, image.width, image.height, region);
  const bool is_float = image.format == PixelFormat::gray_float32 || image.format == PixelFormat::gray_float16;
  return converted(fit_image(image, width, height, fit, region),
                   is_float && files::is_half(feature) ? image.format : files::bytes_of_value(feature));
}

Image image_value(const FeatureDescription& feature, const PixelBuffer& buffer) {
  const auto [width, height] = files::size_of_value(feature, buffer.width, buffer.height, buffer.region);
  return fitted(buffer, width, height,
                files::is_half(feature) ? PixelFormat::gray_float16 : files::bytes_of_value(feature));
}

FeatureValue read_feature(const FeatureDescription& feature, const std::filesystem::path& path,
                          const ReadingOptions& options) {
  const files::FeatureReader reader(feature, path.string(), files::extension_of(path.string()), options);
  return reader.read([&] { return files::read_file(path); }, [&] { return files::read_text(path); });
}

FeatureValue decode_feature(const FeatureDescription& feature, std::span<const std::byte> bytes, std::string_view name,
                            const ReadingOptions& options) {
  const std::string_view text = files::text_of(bytes);
  std::string extension(files::extension_of_bytes(text));
  if (extension.empty()) extension = files::extension_of(name);
  const files::FeatureReader reader(feature, std::string(name), std::move(extension), options);
  return reader.read([&] { return bytes; }, [&] { return std::string(text); });
}

}  // namespace moka
