// SPDX-License-Identifier: Apache-2.0
#include "onnx_export/round_trip_util.h"

#include <algorithm>
#include <cmath>
#include <optional>

namespace moka::test {

std::string difference(const FeatureValue& got, const FeatureValue& expected, double tolerance) {
  const auto compared = [&](double a, double b, const std::string& where) -> std::string {
    const bool same =
        a == b || (std::isnan(a) && std::isnan(b)) || std::abs(a - b) <= tolerance * std::max(1.0, std::abs(b));
    return same ? "" : where + ": got " + std::to_string(a) + ", expected " + std::to_string(b);
  };
  const auto number = [](const FeatureValue& v) -> std::optional<double> {
    if (const auto* i = std::get_if<int64_t>(&v)) return static_cast<double>(*i);
    if (const auto* d = std::get_if<double>(&v)) return *d;
    const auto* a = std::get_if<MultiArray>(&v);
    return a != nullptr && a->count() == 1 ? std::optional(a->at(0)) : std::nullopt;
  };
  if (number(expected) && number(got)) return compared(*number(got), *number(expected), "the number");
  if (const auto* text = std::get_if<std::string>(&expected)) {
    const auto* other = std::get_if<std::string>(&got);
    return other != nullptr && *other == *text ? "" : "got " + describe(got) + ", expected '" + *text + "'";
  }
  if (const auto* d = std::get_if<Dictionary>(&expected)) {
    const auto* other = std::get_if<Dictionary>(&got);
    if (other == nullptr) return "got " + describe(got) + ", expected a dictionary";
    if (other->strings.size() != d->strings.size() || other->ints.size() != d->ints.size()) return "other keys";
    for (const auto& [key, value] : d->strings)
      if (const std::string s = other->strings.contains(key) ? compared(other->strings.at(key), value, key) : key;
          !s.empty())
        return s;
    for (const auto& [key, value] : d->ints)
      if (const std::string s =
              other->ints.contains(key) ? compared(other->ints.at(key), value, std::to_string(key)) : "a key";
          !s.empty())
        return s;
    return "";
  }
  const auto* a = std::get_if<MultiArray>(&got);
  const auto* b = std::get_if<MultiArray>(&expected);
  if (a == nullptr || b == nullptr || a->count() != b->count())
    return "got " + describe(got) + ", expected " + describe(expected);
  for (int64_t i = 0; i < a->count(); ++i)
    if (const std::string s = compared(a->at(i), b->at(i), "element " + std::to_string(i)); !s.empty()) return s;
  return "";
}

}  // namespace moka::test
