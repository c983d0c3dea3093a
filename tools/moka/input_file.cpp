// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <charconv>

#include "input.h"
#include "outputs.h"
#include "text.h"

namespace moka::cli {

bool is_picture(const std::string& extension) {
  return extension == "png" || extension == "jpg" || extension == "jpeg" || extension == "webp";
}

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

RawFrame raw_frame(const std::string& text) {
  RawFrame frame;
  frame.option_name = "--frame WIDTHxHEIGHT";
  if (text.empty()) return frame;
  const auto wrong = [&] {
    throw UsageError(
        fmt::format("--frame: expected WIDTHxHEIGHT, and a format and a matrix after commas, got '{}'", text));
  };
  std::vector<std::string> parts(1);
  for (const char c : text)
    if (c == ',')
      parts.emplace_back();
    else
      parts.back() += c;
  const size_t x = parts[0].find('x');
  const auto side = [&](std::string_view digits) {
    int64_t n = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), n);
    if (error != std::errc() || end != digits.data() + digits.size() || n < 1 || n > 65536) wrong();
    return n;
  };
  if (x == std::string::npos || parts.size() > 3) wrong();
  frame.width = side(std::string_view(parts[0]).substr(0, x));
  frame.height = side(std::string_view(parts[0]).substr(x + 1));
  reading([&] {
    if (parts.size() > 1 && !parts[1].empty()) frame.format = pixel_buffer_format(parts[1]);
    if (parts.size() > 2) frame.matrix = ycbcr_matrix(parts[2]);
    return 0;
  });
  return frame;
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
  if (file.extension == "csv")
    throw UsageError(
        fmt::format("input '{}': a table gives a batch by its columns: --input @{}", input.name, file.path));
  return reading([&] {
    ReadingOptions options;
    options.frame = raw_frame(options_.frame);
    options.fit = image_fit(options_.fit);
    options.rate = options_.rate;
    options.pad = options_.pad;
    options.member = file.member;
    options.pad_name = options_.pad_option;
    options.rate_name = options_.rate_option;
    options.note = [this](const std::string& text) { notes_.push_back(text); };
    return read_feature(input, file.path, options);
  });
}

Image image_of_array(const FeatureDescription& input, const FeatureValue& array, const std::string& where) {
  const auto* numbers = std::get_if<MultiArray>(&array);
  if (!numbers) throw UsageError(fmt::format("{}: expected numbers for {}, got text", where, input.formatted_type()));
  try {
    return moka::image_of_array(input, *numbers);
  } catch (const Exception& e) {
    throw UsageError(fmt::format("{}: {}", where, e.what()));
  }
}

MultiArray read_numbers(const std::filesystem::path& path) {
  FeatureValue value = reading([&] { return read_npy(path); });
  if (auto* array = std::get_if<MultiArray>(&value)) return std::move(*array);
  throw io::IoError(fmt::format("{}: expected numbers, got text", path.string()));
}

}  // namespace moka::cli
