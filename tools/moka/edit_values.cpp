// SPDX-License-Identifier: Apache-2.0
#include "edit_values.h"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>

#include "options.h"
#include "text.h"
#include "usage_error.h"

namespace moka::cli {

std::pair<std::string, std::string> split(const std::string& text, std::string_view expected) {
  const size_t at = text.find('=');
  if (at == std::string::npos || at == 0) throw UsageError(fmt::format("expected {}, got '{}'", expected, text));
  return {text.substr(0, at), text.substr(at + 1)};
}

std::vector<std::string> listed(const std::string& text) {
  std::vector<std::string> out;
  for (size_t at = 0; at <= text.size();) {
    const size_t end = std::min(text.find(',', at), text.size());
    if (end > at) out.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return out;
}

Settings::Settings(const std::string& text, const std::vector<std::string>& keys) {
  for (const std::string& part : listed(text)) {
    const size_t at = part.find('=');
    const bool first = values_.empty() && at == std::string::npos;
    const std::string key = first ? keys[0] : part.substr(0, at);
    if ((at == std::string::npos && !first) || std::find(keys.begin(), keys.end(), key) == keys.end())
      throw UsageError(fmt::format("expected {}=VALUE, got '{}'", fmt::join(keys, "=VALUE, "), part));
    if (!values_.emplace(key, first ? part : part.substr(at + 1)).second)
      throw UsageError(fmt::format("'{}' is given twice", key));
  }
}

std::string Settings::text(const std::string& key, const std::string& otherwise) const {
  const auto it = values_.find(key);
  return it == values_.end() ? otherwise : it->second;
}

std::vector<double> Settings::numbers(const std::string& key, const std::vector<double>& otherwise) const {
  const auto it = values_.find(key);
  if (it == values_.end()) return otherwise;
  std::vector<double> out;
  for (size_t at = 0; at <= it->second.size();) {
    const size_t end = std::min(it->second.find(':', at), it->second.size());
    const std::string part = it->second.substr(at, end - at);
    const auto number = parse_quotient(part);
    if (!number) throw UsageError(fmt::format("{}: expected a number such as 0.5 or 1/255, got '{}'", key, part));
    out.push_back(*number);
    at = end + 1;
  }
  return out;
}

namespace {

std::vector<std::string> parts(const std::string& text, char separator) {
  std::vector<std::string> out;
  for (size_t at = 0; at <= text.size();) {
    const size_t end = std::min(text.find(separator, at), text.size());
    out.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return out;
}

int64_t size_of_text(const std::string& text, const std::string& whole) {
  const auto size = parse_integer(text);
  if (!size || *size < 1)
    throw UsageError(fmt::format("expected sizes such as 1x3x32..512x32.. or 1x8|1x16, got '{}'", whole));
  return *size;
}

}  // namespace

edit::InputSizes sizes_of(const std::string& text) {
  edit::InputSizes out;
  const std::vector<std::string> shapes = parts(text, '|');
  for (const std::string& shape : shapes) {
    if (shapes.size() > 1) out.shapes.emplace_back();
    for (const std::string& part : parts(shape, 'x')) {
      if (shapes.size() > 1) {
        out.shapes.back().push_back(size_of_text(part, text));
        continue;
      }
      const size_t dots = part.find("..");
      const int64_t lower = size_of_text(part.substr(0, dots), text);
      const bool open = dots != std::string::npos && dots + 2 == part.size();
      out.ranges.push_back({lower, dots == std::string::npos ? lower
                                   : open                    ? -1
                                                             : size_of_text(part.substr(dots + 2), text)});
    }
  }
  return out;
}

ColorSpace color_of(const std::string& name) {
  const std::pair<std::string_view, ColorSpace> colors[] = {{"rgb", ColorSpace::rgb},
                                                            {"bgr", ColorSpace::bgr},
                                                            {"grayscale", ColorSpace::grayscale},
                                                            {"grayscale_float16", ColorSpace::grayscale_float16}};
  for (const auto& [known, color] : colors)
    if (in_lower_case(name) == known) return color;
  throw UsageError(fmt::format("expected the color rgb, bgr, grayscale or grayscale_float16, got '{}'", name));
}

edit::Labels read_labels(const std::string& path, const std::string& type) {
  std::istringstream in(read_option_file("--labels", path));
  std::vector<std::string> texts;
  bool is_first = true;
  for (std::string line; std::getline(in, line); is_first = false) {
    std::string_view text = line;
    if (is_first && text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);
    if (text = trimmed(text); !text.empty()) texts.emplace_back(text);
  }
  if (type == "string") return texts;
  if (type != "int64") throw UsageError(fmt::format("type: expected string or int64, got '{}'", type));
  std::vector<int64_t> numbers;
  for (const std::string& text : texts) {
    const auto number = parse_integer(text);
    if (!number) throw UsageError(fmt::format("'{}': expected integers, got '{}'", path, text));
    numbers.push_back(*number);
  }
  return numbers;
}

}  // namespace moka::cli
