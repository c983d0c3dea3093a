// SPDX-License-Identifier: Apache-2.0
#include "text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <numeric>

namespace moka::cli {
namespace {

std::string three_digits(double value) {
  if (value >= 99.95) return fmt::format("{:.0f}", value);
  if (value >= 9.995) return fmt::format("{:.1f}", value);
  return fmt::format("{:.2f}", value);
}

size_t edits(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 0; i < a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i + 1;
    for (size_t j = 0; j < b.size(); ++j) {
      const size_t replaced = diagonal + (a[i] != b[j]);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, row[j + 1] + 1, row[j] + 1});
    }
  }
  return row.back();
}

}  // namespace

std::string in_lower_case(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return out;
}

std::string without_trailing_slashes(std::string path) {
  while (path.size() > 1 && path.ends_with('/')) path.pop_back();
  return path;
}

bool has_extension(std::string_view path, std::string_view extension) {
  return in_lower_case(path).ends_with(extension);
}

std::string format_bytes(double bytes) {
  constexpr std::string_view kUnits[] = {"kB", "MB", "GB", "TB"};
  if (bytes < 1000) return fmt::format("{:.0f} B", bytes);
  size_t unit = 0;
  for (bytes /= 1000; bytes >= 999.5 && unit + 1 < std::size(kUnits); ++unit) bytes /= 1000;
  return fmt::format("{} {}", three_digits(bytes), kUnits[unit]);
}

std::string format_seconds(double seconds) {
  if (seconds < 0.9995e-6) return fmt::format("{:.0f} ns", seconds * 1e9);
  if (seconds < 0.9995e-3) return three_digits(seconds * 1e6) + " µs";
  if (seconds < 0.9995) return three_digits(seconds * 1e3) + " ms";
  return three_digits(seconds) + " s";
}

std::string format_number(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  if (value == std::trunc(value) && std::abs(value) < 1e9) return fmt::format("{:.0f}", value == 0 ? 0.0 : value);
  return fmt::format("{:.5g}", value);
}

std::string format_count(int64_t value) {
  std::string digits = std::to_string(value);
  const size_t first = digits[0] == '-';
  for (size_t i = digits.size(); i > first + 3; i -= 3) digits.insert(i - 3, ",");
  return digits;
}

std::string format_percent(double fraction) { return fmt::format("{:.1f}%", fraction * 100); }

std::string plural(int64_t count, std::string_view word) {
  return fmt::format("{} {}{}", format_count(count), word, count == 1 ? "" : "s");
}

std::string format_shape(std::span<const int64_t> shape) {
  if (shape.empty()) return "scalar";
  return fmt::format("{}", fmt::join(shape, " x "));
}

std::string short_type(std::string_view mil_type) {
  if (!mil_type.starts_with("tensor<") || !mil_type.ends_with(">")) return std::string(mil_type);
  mil_type.remove_prefix(7);
  mil_type.remove_suffix(1);
  const size_t open = mil_type.find('['), comma = mil_type.find(',');
  if (open == std::string_view::npos || comma == std::string_view::npos || comma > open) return std::string(mil_type);
  std::string out(mil_type.substr(0, comma));
  std::string sizes;
  for (char c : mil_type.substr(open + 1)) {
    if (c == ']') break;
    if (c == ',')
      sizes += " x ";
    else if (c != ' ')
      sizes += c;
  }
  return sizes.empty() ? out : out + ' ' + sizes;
}

TensorType parse_tensor_type(std::string_view mil_type) {
  TensorType type{std::string(mil_type), 1};
  if (!mil_type.starts_with("tensor<")) return type;
  mil_type.remove_prefix(7);
  const size_t comma = mil_type.find(','), open = mil_type.find('['), close = mil_type.find(']');
  if (comma == std::string_view::npos || open == std::string_view::npos || close == std::string_view::npos ||
      close < open)
    return type;
  type.element = std::string(mil_type.substr(0, comma));
  std::string_view sizes = mil_type.substr(open + 1, close - open - 1);
  while (!trimmed(sizes).empty()) {
    const size_t end = std::min(sizes.find(','), sizes.size());
    const auto size = parse_integer(trimmed(sizes.substr(0, end)));
    if (!size || *size < 0 || __builtin_mul_overflow(type.count, *size, &type.count)) {
      type.count = 0;
      return type;
    }
    sizes.remove_prefix(std::min(end + 1, sizes.size()));
  }
  return type;
}

std::string bar(double fraction, int width) {
  constexpr std::string_view kEighths[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
  if (!(fraction > 0)) return {};
  const auto eighths = static_cast<int>(std::lround(std::min(fraction, 1.0) * width * 8));
  std::string out;
  for (int i = 0; i < eighths / 8; ++i) out += "█";
  return out += kEighths[eighths % 8];
}

std::optional<std::string> nearest(std::string_view name, std::span<const std::string> candidates) {
  std::optional<std::string> best;
  size_t least = std::max<size_t>(2, name.size() / 3) + 1;
  for (const std::string& candidate : candidates) {
    if (candidate.size() > 4 * name.size() + 8) continue;
    const size_t distance = edits(in_lower_case(name), in_lower_case(candidate));
    if (distance < least && distance < std::max(name.size(), candidate.size())) {
      least = distance;
      best = candidate;
    }
  }
  return best;
}

std::string quoted_list(std::span<const std::string> names, size_t most) {
  std::string out;
  for (size_t i = 0; i < std::min(most, names.size()); ++i) out += fmt::format("{}'{}'", i ? ", " : "", names[i]);
  if (names.size() > most) out += fmt::format(" and {} more", names.size() - most);
  return out;
}

double percentile(std::span<const double> sorted, double fraction) {
  const double at = fraction * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<size_t>(at);
  const size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (sorted[above] - sorted[below]) * (at - static_cast<double>(below));
}

std::optional<double> parse_number(std::string_view text) {
  if (text.starts_with('+') && !text.starts_with("+-")) text.remove_prefix(1);
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool fits = error != std::errc::result_out_of_range;
  if (!fits) value = std::strtod(std::string(text).c_str(), nullptr);  // 0 or infinity
  if ((fits && error != std::errc()) || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::optional<double> parse_quotient(std::string_view text) {
  const size_t slash = text.find('/');
  const auto above = parse_number(text.substr(0, slash));
  const auto below = slash == std::string_view::npos ? std::optional(1.0) : parse_number(text.substr(slash + 1));
  if (!above || !below || *below == 0) return std::nullopt;
  return *above / *below;
}

std::optional<int64_t> parse_integer(std::string_view text) {
  if (text.starts_with('+') && !text.starts_with("+-")) text.remove_prefix(1);
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r\n";
  const size_t first = text.find_first_not_of(kSpace);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kSpace) - first + 1);
}

std::string packed_text(size_t packed_bytes, size_t cached_bytes) {
  std::string out = format_bytes(static_cast<double>(packed_bytes)) + " of weights prepared for kernels";
  if (cached_bytes > 0) out += fmt::format(", {} more from the cache", format_bytes(static_cast<double>(cached_bytes)));
  return out;
}

}  // namespace moka::cli
