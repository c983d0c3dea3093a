// SPDX-License-Identifier: Apache-2.0
#include "checking/text.h"

#include <cmath>
#include <cstdio>

#include "base/error.h"

namespace moka::checking {
namespace {

std::string printed(const char* form, double value) {
  char text[400];
  std::snprintf(text, sizeof text, form, value);
  return text;
}

}  // namespace

std::string number_text(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  const bool is_short = value == std::trunc(value) && std::abs(value) < 1e9;
  return printed(is_short ? "%.0f" : "%.5g", value == 0 ? 0.0 : value);
}

std::string rounded_text(double value) { return printed("%.1f", value); }

std::string count_text(int64_t count, std::string_view word) {
  std::string digits = std::to_string(count);
  for (auto at = static_cast<int64_t>(digits.size()) - 3; at > (count < 0); at -= 3)
    digits.insert(static_cast<size_t>(at), 1, ',');
  return cat(digits, " ", word, count == 1 ? "" : "s");
}

std::string shape_text(std::span<const int64_t> shape) {
  std::string out;
  for (const int64_t d : shape) out += cat(out.empty() ? "" : " x ", d);
  return out.empty() ? "scalar" : out;
}

}  // namespace moka::checking
