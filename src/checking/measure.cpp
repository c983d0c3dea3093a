// SPDX-License-Identifier: Apache-2.0
#include "checking/measure.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "checking/text.h"
#include "moka/conversion.h"

namespace moka {

double OutputError::snr() const {
  if (noise == 0) return std::numeric_limits<double>::infinity();
  return signal > 0 ? 10 * std::log10(signal / noise) : -std::numeric_limits<double>::infinity();
}

double OutputError::agreement(int64_t k) const {
  if (ranks.empty()) return -1;
  const auto good = std::count_if(ranks.begin(), ranks.end(), [&](double r) { return r < static_cast<double>(k); });
  return static_cast<double>(good) / static_cast<double>(ranks.size());
}

namespace checking {
namespace {

/// Texts and whole numbers that are equal or not.
std::vector<std::string> labels_of(const FeatureValue& value) {
  if (const auto* text = std::get_if<std::string>(&value)) return {*text};
  if (const auto* number = std::get_if<int64_t>(&value)) return {std::to_string(*number)};
  if (const auto* texts = std::get_if<StringSequence>(&value)) return *texts;
  std::vector<std::string> out;
  if (const auto* numbers = std::get_if<Int64Sequence>(&value))
    for (const int64_t n : *numbers) out.push_back(std::to_string(n));
  return out;
}

std::vector<std::string> keys_of(const FeatureValue& value) {
  std::vector<std::string> keys;
  if (const auto* dictionary = std::get_if<Dictionary>(&value)) {
    for (const auto& entry : dictionary->strings) keys.push_back(entry.first);
    for (const auto& entry : dictionary->ints) keys.push_back(std::to_string(entry.first));
  }
  return keys;
}

Numbers numbers_of_image(const Image& image) {
  if (image.format == PixelFormat::gray_float16) return numbers_of_image(converted(image, PixelFormat::gray_float32));
  Numbers out;
  const auto row = [&](int64_t y) { return image.pixels.get() + y * image.row_bytes; };
  if (image.format == PixelFormat::gray_float32) {
    out.shape = {1, image.height, image.width};
    for (int64_t y = 0; y < image.height; ++y) {
      const auto* pixels = reinterpret_cast<const float*>(row(y));
      out.values.insert(out.values.end(), pixels, pixels + image.width);
    }
    return out;
  }
  const auto bytes = static_cast<int64_t>(bytes_per_pixel(image.format));
  const int64_t channels = bytes == 1 ? 1 : 3;
  out.shape = {channels, image.height, image.width};
  for (int64_t c = 0; c < channels; ++c) {
    const int64_t at = image.format == PixelFormat::bgra8 ? 2 - c : c;
    for (int64_t y = 0; y < image.height; ++y)
      for (int64_t x = 0; x < image.width; ++x) out.values.push_back(row(y)[x * bytes + at]);
  }
  return out;
}

/// Whether arrays of these shapes have the same elements in the same order. Dimensions of 1 do not count.
bool same_layout(const std::vector<int64_t>& a, const std::vector<int64_t>& b) {
  const auto squeezed = [](std::vector<int64_t> shape) {
    std::erase(shape, 1);
    return shape;
  };
  return squeezed(a) == squeezed(b);
}

/// Keeps the squares of elements up to `largest` within the range of doubles.
void scale_for(OutputError& to, double largest) {
  int exponent = 0;
  if (largest > 0) std::frexp(largest, &exponent);
  if (largest == 0 || exponent <= to.exponent) return;
  to.signal = std::ldexp(to.signal, 2 * (to.exponent - exponent));
  to.noise = std::ldexp(to.noise, 2 * (to.exponent - exponent));
  to.exponent = exponent;
}

double rank_of_best(const std::vector<double>& values, const std::vector<double>& reference) {
  const auto best = static_cast<size_t>(std::max_element(reference.begin(), reference.end()) - reference.begin());
  return static_cast<double>(std::count_if(values.begin(), values.end(), [&](double v) { return v > values[best]; }));
}

}  // namespace

bool has_numbers(const FeatureValue& value) {
  return std::holds_alternative<MultiArray>(value) || std::holds_alternative<Image>(value) ||
         std::holds_alternative<Dictionary>(value) || std::holds_alternative<double>(value);
}

Numbers numbers_of(const FeatureValue& value) {
  if (const auto* number = std::get_if<double>(&value)) return {{}, {*number}};
  if (const auto* image = std::get_if<Image>(&value)) return numbers_of_image(*image);
  if (const auto* dictionary = std::get_if<Dictionary>(&value)) {
    Numbers out;
    for (const auto& entry : dictionary->strings) out.values.push_back(entry.second);
    for (const auto& entry : dictionary->ints) out.values.push_back(entry.second);
    out.shape = {static_cast<int64_t>(out.values.size())};
    return out;
  }
  if (const auto* array = std::get_if<MultiArray>(&value)) {
    const MultiArray doubles = array->converted(DataType::float64);
    const auto all = doubles.as<double>();
    return {array->shape(), {all.begin(), all.end()}};
  }
  return {};
}

void add_error(OutputError& to, const FeatureValue& value, const FeatureValue& reference, bool classes) {
  if (!has_numbers(value) || !has_numbers(reference)) {
    const auto one = labels_of(value), two = labels_of(reference);
    if (has_numbers(value) || has_numbers(reference) || one.size() != two.size()) {
      to.faults.push_back(cat(describe_in_full(value), ", the reference has ", describe_in_full(reference)));
      return;
    }
    to.labels += static_cast<int64_t>(one.size());
    for (size_t i = 0; i < one.size(); ++i) to.same += one[i] == two[i];
    return;
  }
  if (keys_of(value) != keys_of(reference) && std::holds_alternative<Dictionary>(value) &&
      std::holds_alternative<Dictionary>(reference)) {
    to.faults.push_back("the keys differ from the reference's");
    return;
  }
  const Numbers one = numbers_of(value), two = numbers_of(reference);
  if (one.values.size() != two.values.size() || !same_layout(one.shape, two.shape)) {
    to.faults.push_back(cat("shape ", shape_text(one.shape), ", the reference has ", shape_text(two.shape)));
    return;
  }
  const auto largest = [](const std::vector<double>& values) {
    double out = 0;
    for (const double v : values)
      if (std::isfinite(v)) out = std::max(out, std::abs(v));
    return out;
  };
  const double peak = largest(two.values);
  scale_for(to, std::max(largest(one.values), peak));
  const double scale = std::ldexp(1, -to.exponent);
  to.elements += static_cast<int64_t>(one.values.size());
  for (size_t i = 0; i < one.values.size(); ++i) {
    const double v = one.values[i], r = two.values[i];
    if (!std::isfinite(v) || !std::isfinite(r)) {
      to.unlike += !(v == r || (std::isnan(v) && std::isnan(r)));
      continue;
    }
    const double error = std::abs(v - r);
    const double scaled = r * scale, scaled_error = v * scale - scaled;
    to.signal += scaled * scaled;
    to.noise += scaled_error * scaled_error;
    to.absolute = std::max(to.absolute, error);
    if (error > 0) to.relative = std::max(to.relative, error / std::max(std::abs(r), peak / 1000));
  }
  if (classes && !one.values.empty()) to.ranks.push_back(rank_of_best(one.values, two.values));
}

}  // namespace checking
}  // namespace moka
