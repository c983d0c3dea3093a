// SPDX-License-Identifier: Apache-2.0
#include "files/text.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "base/error.h"

namespace moka::files {
namespace {

std::string_view without_plus(std::string_view text) {
  if (text.starts_with('+') && !text.starts_with("+-")) text.remove_prefix(1);
  return text;
}

}  // namespace

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r\n";
  const size_t first = text.find_first_not_of(kSpace);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kSpace) - first + 1);
}

std::string in_lower_case(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return out;
}

std::string extension_of(std::string_view path) {
  std::string out = std::filesystem::path(path).extension().string();
  if (!out.empty()) out.erase(0, 1);
  return in_lower_case(out);
}

std::optional<double> number_in(std::string_view given) {
  const std::string_view text = without_plus(given);
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool fits = error != std::errc::result_out_of_range;
  if (!fits) value = std::strtod(std::string(text).c_str(), nullptr);  // 0 or infinity
  if ((fits && error != std::errc()) || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::optional<int64_t> integer_in(std::string_view given) {
  const std::string_view text = without_plus(given);
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::string quoted(std::span<const std::string> names) {
  constexpr size_t kMost = 12;
  std::string out;
  for (size_t i = 0; i < std::min(kMost, names.size()); ++i) out += cat(i ? ", '" : "'", names[i], "'");
  if (names.size() > kMost) out += cat(" and ", names.size() - kMost, " more");
  return out;
}

std::string seconds_text(double seconds) {
  constexpr std::pair<double, std::string_view> kUnits[] = {{1e9, " ns"}, {1e6, " \u00b5s"}, {1e3, " ms"}, {1, " s"}};
  for (const auto& [per_second, name] : kUnits) {
    const double value = seconds * per_second;
    if (value >= 999.5 && per_second > 1) continue;
    char text[400];
    std::snprintf(text, sizeof text, "%.*f", value >= 99.95 || per_second == 1e9 ? 0 : value >= 9.995 ? 1 : 2, value);
    return cat(text, name);
  }
  return cat(seconds, " s");
}

}  // namespace moka::files
