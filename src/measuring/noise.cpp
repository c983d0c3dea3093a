// SPDX-License-Identifier: Apache-2.0
#include "measuring/noise.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "base/bytes.h"
#include "measuring/predict.h"

namespace moka::measuring {
namespace {

constexpr double kInfinite = std::numeric_limits<double>::infinity();

struct Sums {
  double signal = 0, noise = 0;

  void add(double value, double reference) {
    if (!std::isfinite(value) || !std::isfinite(reference)) {
      if (value != reference && !(std::isnan(value) && std::isnan(reference))) noise = kInfinite;
      return;
    }
    signal += reference * reference;
    noise += (value - reference) * (value - reference);
  }
  double share() const { return noise == 0 ? 0 : signal == 0 ? kInfinite : noise / signal; }
};

bool is_float(DataType type) {
  return type == DataType::float16 || type == DataType::float32 || type == DataType::float64;
}

double share_of(const MultiArray& value, const MultiArray& reference) {
  if (value.shape() != reference.shape()) return kInfinite;
  const bool as_it_is = value.type() == DataType::float32 && value.is_contiguous() &&
                        reference.type() == DataType::float32 && reference.is_contiguous();
  Sums sums;
  if (as_it_is) {
    const auto v = value.as<float>(), r = reference.as<float>();
    for (size_t i = 0; i < v.size(); ++i) sums.add(v[i], r[i]);
    return sums.share();
  }
  const MultiArray one = value.converted(DataType::float64), two = reference.converted(DataType::float64);
  const auto v = one.as<double>(), r = two.as<double>();
  for (size_t i = 0; i < v.size(); ++i) sums.add(v[i], r[i]);
  return sums.share();
}

double share_of(const Image& value, const Image& reference) {
  if (value.width != reference.width || value.height != reference.height || value.format != reference.format)
    return kInfinite;
  if (value.format == PixelFormat::gray_float16)
    return share_of(converted(value, PixelFormat::gray_float32), converted(reference, PixelFormat::gray_float32));
  const size_t pixel = bytes_per_pixel(value.format);
  const bool floats = value.format == PixelFormat::gray_float32;
  Sums sums;
  for (int64_t y = 0; y < value.height; ++y) {
    const uint8_t *v = value.pixels.get() + y * value.row_bytes, *r = reference.pixels.get() + y * reference.row_bytes;
    for (size_t i = 0; i < static_cast<size_t>(value.width) * pixel; ++i) {
      if (floats && i % sizeof(float) == 0)
        sums.add(*reinterpret_cast<const float*>(v + i), *reinterpret_cast<const float*>(r + i));
      else if (!floats && i % 4 < (pixel == 4 ? 3 : 4))  // without alpha
        sums.add(v[i], r[i]);
    }
  }
  return sums.share();
}

template <class Keys>
double share_of(const Keys& value, const Keys& reference) {
  Sums sums;
  if (value.size() != reference.size()) return kInfinite;
  for (const auto& [key, number] : reference) {
    const auto it = value.find(key);
    if (it == value.end()) return kInfinite;
    sums.add(it->second, number);
  }
  return sums.share();
}

}  // namespace

std::optional<double> noise_share(const FeatureValue& value, const FeatureValue& reference) {
  if (value.index() != reference.index()) return kInfinite;
  if (const auto* array = std::get_if<MultiArray>(&reference)) {
    if (!is_float(array->type())) return std::nullopt;
    return share_of(std::get<MultiArray>(value), *array);
  }
  if (const auto* image = std::get_if<Image>(&reference)) return share_of(std::get<Image>(value), *image);
  if (const auto* keys = std::get_if<Dictionary>(&reference)) {
    const auto& other = std::get<Dictionary>(value);
    return keys->string_keys ? share_of(other.strings, keys->strings) : share_of(other.ints, keys->ints);
  }
  if (const auto* number = std::get_if<double>(&reference)) {
    Sums sums;
    sums.add(std::get<double>(value), *number);
    return sums.share();
  }
  return std::nullopt;
}

double signal_to_noise(double share) { return share == 0 ? kInfinite : -10 * std::log10(share); }

OutputNoise::OutputNoise(const Model& model, std::vector<Features> inputs) : inputs_(std::move(inputs)) {
  bool has_numbers = false;
  for (const Features& input : inputs_) {
    answers_.push_back(predict_once(model, input));
    for (const auto& [name, value] : answers_.back()) has_numbers = has_numbers || noise_share(value, value);
  }
  if (!has_numbers)
    throw Exception(ErrorKind::unsupported,
                    "errors are measured on outputs of floating-point numbers, and the model has none");
}

std::vector<double> OutputNoise::shares(const Model& model, std::span<const size_t> which) const {
  std::vector<double> out;
  for (const size_t i : which) {
    const Features answers = predict_once(model, inputs_[i]);
    double most = 0;
    for (const auto& [name, reference] : answers_[i])
      if (const auto share = noise_share(answers.at(name), reference)) most = std::max(most, *share);
    out.push_back(most);
  }
  return out;
}

double OutputNoise::worst_share(const Model& model) const {
  std::vector<size_t> all(count());
  std::iota(all.begin(), all.end(), size_t{0});
  const std::vector<double> found = shares(model, all);
  return *std::max_element(found.begin(), found.end());
}

}  // namespace moka::measuring
