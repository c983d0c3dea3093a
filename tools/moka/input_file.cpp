// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <filesystem>

#include "convert.h"
#include "input.h"
#include "io/file.h"
#include "io/io_error.h"
#include "io/resize.h"
#include "io/sound.h"
#include "json_text.h"
#include "outputs.h"
#include "text.h"
#include "usage_error.h"

namespace moka::cli {
namespace {

bool is_picture(const std::string& extension) {
  return extension == "png" || extension == "jpg" || extension == "jpeg" || extension == "webp";
}

std::string_view file_kinds(FeatureType type) {
  switch (type) {
    case FeatureType::multi_array: return ".npy, .npz, .json, .txt or sound (.wav, .flac, .ogg, .mp3, ...)";
    case FeatureType::image: return ".png, .jpg, .webp or .npy";
    case FeatureType::string: return ".txt or .json";
    case FeatureType::int64:
    case FeatureType::float64: return ".txt, .json or .npy";
    default: return ".json";
  }
}

io::Array member_of(const FileReference& file, const std::string& input) {
  const auto arrays = io::read_npz(file.path);
  const std::string& wanted = file.member.empty() ? input : file.member;
  std::vector<std::string> names;
  for (const auto& [name, array] : arrays) {
    if (name == wanted || (arrays.size() == 1 && file.member.empty())) return array;
    names.push_back(name);
  }
  throw io::IoError(
      fmt::format("{}: no member '{}'; it has {}", file.path, wanted, names.empty() ? "none" : quoted_list(names)));
}

FeatureValue value_of_array(const FeatureDescription& input, const io::Array& array, const std::string& path) {
  const std::string where = fmt::format("input '{}' ({})", input.name, path);
  if (array.type == io::ElementType::text) {
    if (input.type == FeatureType::sequence && input.string_keys) return StringSequence(array.texts);
    if (input.type == FeatureType::string && array.texts.size() == 1) return array.texts[0];
    throw UsageError(fmt::format("{}: expected {}, got an array of text", where, input.formatted_type()));
  }
  const std::vector<double> numbers = array.to_doubles();
  if (input.type == FeatureType::multi_array)
    return array_of_numbers(input, numbers, std::vector<int64_t>(array.shape.begin(), array.shape.end()), where);
  if (numbers.size() == 1 && input.type == FeatureType::float64) return numbers[0];
  if (numbers.size() == 1 && input.type == FeatureType::int64 && std::abs(numbers[0]) < 0x1p53 &&
      numbers[0] == std::trunc(numbers[0]))
    return static_cast<int64_t>(numbers[0]);
  throw UsageError(
      fmt::format("{}: expected {}, got {}", where, input.formatted_type(), describe_in_full(to_multi_array(array))));
}

int64_t clamped(int64_t value, const SizeRange& range) {
  return std::max(range.lower, range.upper < 0 ? value : std::min(value, range.upper));
}

}  // namespace

FileReference parse_reference(std::string_view reference) {
  FileReference file{std::string(reference), {}, {}};
  const size_t colon = reference.rfind(':');
  const auto ends_in_npz = [](std::string_view path) {
    return path.size() >= 4 && path.substr(path.size() - 4) == ".npz";
  };
  if (colon != std::string_view::npos && ends_in_npz(reference.substr(0, colon))) {
    file.path = reference.substr(0, colon);
    file.member = reference.substr(colon + 1);
  }
  file.extension = std::filesystem::path(file.path).extension().string();
  if (!file.extension.empty()) file.extension.erase(0, 1);
  file.extension = in_lower_case(file.extension);
  return file;
}

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

std::pair<int64_t, int64_t> picture_size(const ImageConstraint& constraint, int64_t width, int64_t height) {
  for (const auto& size : constraint.enumerated)
    if (size == std::pair(width, height)) return size;
  if (!constraint.enumerated.empty()) return {constraint.width, constraint.height};
  return {constraint.width_range ? clamped(width, *constraint.width_range) : constraint.width,
          constraint.height_range ? clamped(height, *constraint.height_range) : constraint.height};
}

FeatureValue ValueReader::read(const FeatureDescription& input, std::string_view text) const {
  return text == "random" ? random_(input.name) : read_cell(input, text);
}

FeatureValue ValueReader::read_cell(const FeatureDescription& input, std::string_view text) const {
  if (text.starts_with("@@") && input.type == FeatureType::string) return std::string(text.substr(1));
  if (text.starts_with('@')) return read_file(input, text.substr(1));
  const bool picture = input.type == FeatureType::image && is_picture(parse_reference(text).extension);
  if (picture && options_.texts_name_files) return read_file(input, text);
  return value_from_text(input, text, fmt::format("input '{}'", input.name));
}

FeatureValue ValueReader::read_file(const FeatureDescription& input, std::string_view reference) const {
  const FileReference file = parse_reference(reference);
  add_input(file.path);
  const std::string where = fmt::format("input '{}' ({})", input.name, file.path);
  const bool number = input.type == FeatureType::int64 || input.type == FeatureType::float64;
  if (input.type == FeatureType::image && is_picture(file.extension)) return read_picture(input, file.path);
  if (input.type == FeatureType::multi_array && io::is_sound(file.extension)) return read_sound(input, file.path);
  if (file.extension == "npy" || file.extension == "npz") {
    const io::Array array = file.extension == "npy" ? io::read_npy(file.path) : member_of(file, input.name);
    return input.type == FeatureType::image ? FeatureValue(image_of_array(input, array, where))
                                            : value_of_array(input, array, file.path);
  }
  if (file.extension == "csv")
    throw UsageError(
        fmt::format("input '{}': a table gives a batch by its columns: --input @{}", input.name, file.path));
  if (input.type == FeatureType::string && file.extension != "json") return io::read_text(file.path);
  const bool text = file.extension == "txt" && (number || input.type == FeatureType::multi_array);
  if (text || (file.extension == "json" && input.type != FeatureType::image)) {
    std::string content = io::read_text(file.path);
    const std::string_view bare = trimmed(content);
    if (input.type == FeatureType::string && bare.size() >= 2 && bare.front() == '"') {
      FeatureDescription list{"", "", FeatureType::sequence};
      return std::get<StringSequence>(value_from_text(list, fmt::format("[{}]", bare), where)).at(0);
    }
    const bool lists = bare.starts_with('[') || bare.starts_with('{') || bare.starts_with('"');
    if (file.extension == "json" && lists && !is_json(bare)) parse_json(content, where);
    return value_from_text(input, bare, where);
  }
  throw UsageError(fmt::format("{}: expected {} for {}, got '.{}'", where, file_kinds(input.type),
                               input.formatted_type(), file.extension));
}

Image image_of_array(const FeatureDescription& input, const io::Array& array, const std::string& where) {
  if (array.type == io::ElementType::text)
    throw UsageError(fmt::format("{}: expected numbers for {}, got text", where, input.formatted_type()));
  try {
    return moka::image_of_array(input, to_multi_array(array));
  } catch (const Exception& e) {
    throw UsageError(fmt::format("{}: {}", where, e.what()));
  }
}

FeatureValue ValueReader::read_picture(const FeatureDescription& input, const std::string& path) const {
  const io::Picture picture = io::read_picture(path);
  const bool gray = input.image.color == ColorSpace::grayscale || input.image.color == ColorSpace::grayscale_float16;
  const auto [width, height] =
      picture_size(input.image, static_cast<int64_t>(picture.width), static_cast<int64_t>(picture.height));
  if (width < 1 || height < 1 || width > 65536 || height > 65536)
    throw UsageError(
        fmt::format("input '{}' ({}): expected a size the model says, got {} x {}", input.name, path, width, height));
  const io::Picture fitted =
      io::fit(picture, static_cast<size_t>(width), static_cast<size_t>(height), io::parse_fit(options_.fit));
  return to_image(io::with_channels(fitted, gray ? 1 : 3));
}

FeatureValue ValueReader::read_sound(const FeatureDescription& input, const std::string& path) const {
  const std::string where = fmt::format("input '{}' ({})", input.name, path);
  const io::Audio audio = io::mix_to_mono(io::read_sound(path));
  std::vector<float> samples = audio.samples;
  uint32_t rate = audio.sample_rate;
  if (options_.rate && options_.rate != rate) {
    samples = io::resample(samples, rate, options_.rate);
    rate = options_.rate;
  }
  const auto axis = sample_axis(input.array);
  if (!axis)
    throw UsageError(fmt::format("{}: expected an array with one dimension of samples, the model takes {}", where,
                                 input.formatted_type()));
  std::vector<int64_t> shape = input.array.shape;
  if (shape.empty())
    for (const SizeRange& range : input.array.ranges) shape.push_back(range.lower);
  const auto have = static_cast<int64_t>(samples.size());
  int64_t want = shape[*axis];
  if (!input.array.ranges.empty()) {
    want = clamped(have, input.array.ranges[*axis]);
  } else if (!input.array.enumerated.empty()) {
    const bool allowed = std::any_of(input.array.enumerated.begin(), input.array.enumerated.end(),
                                     [&](const auto& s) { return s.size() > *axis && s[*axis] == have; });
    if (allowed) want = have;
  }
  if (want != have && !options_.pad)
    throw UsageError(fmt::format("{}: expected {} samples, got {} ({} at {} Hz); {} adds silence or cuts the end off{}",
                                 where, want, have, format_seconds(static_cast<double>(have) / rate), rate,
                                 options_.pad_option,
                                 options_.rate ? "" : fmt::format(", {} resamples", options_.rate_option)));
  if (want < have)
    notes_.push_back(fmt::format("{}: using the first {} of {} samples ({} of {})", path, want, have,
                                 format_seconds(static_cast<double>(want) / rate),
                                 format_seconds(static_cast<double>(have) / rate)));
  if (want > have) notes_.push_back(fmt::format("{}: {} samples, {} of silence added", path, have, want - have));
  samples.resize(static_cast<size_t>(want));
  shape[*axis] = want;
  return MultiArray::of(samples, shape).converted(input.array.type);
}

}  // namespace moka::cli
