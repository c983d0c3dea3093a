// SPDX-License-Identifier: Apache-2.0
#include "models/model_util.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "models_folder.h"

namespace moka::test {

namespace fs = std::filesystem;

std::vector<float> draw(uint64_t seed, size_t count, double low, double high) {
  std::vector<float> v(count);
  for (size_t i = 0; i < count; i++) {
    uint64_t z = seed + (i + 1) * 0x9E3779B97F4A7C15u;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    z ^= z >> 31;
    v[i] = static_cast<float>(low + (high - low) * (static_cast<double>(z >> 40) / 16777216.0));
  }
  return v;
}

namespace {

constexpr double kApart = std::numeric_limits<double>::infinity();

struct Scale {
  double worst = 0, largest = 1;
  void add(double a, double b) {
    if (std::isnan(a) != std::isnan(b)) worst = kApart;
    if (std::isnan(a) || a == b) return;
    worst = std::max(worst, std::abs(a - b));
    if (std::isfinite(b)) largest = std::max(largest, std::abs(b));
  }
};

template <class Map>
double map_difference(const Map& a, const Map& b) {
  if (a.size() != b.size()) return kApart;
  Scale s;
  for (const auto& [k, v] : b) {
    auto found = a.find(k);
    if (found == a.end()) return kApart;
    s.add(found->second, v);
  }
  return s.worst / s.largest;
}

}  // namespace

double difference(const FeatureValue& a, const FeatureValue& b) {
  if (a.index() != b.index()) return kApart;
  if (const auto* y = std::get_if<MultiArray>(&b)) {
    const auto& x = std::get<MultiArray>(a);
    if (x.shape() != y->shape() || x.type() != y->type()) return kApart;
    Scale s;
    for (int64_t i = 0; i < x.count(); i++) {
      s.largest = std::max(s.largest, std::isfinite(y->at(i)) ? std::abs(y->at(i)) : 0);
      s.add(x.at(i), y->at(i));
    }
    return s.worst / s.largest;
  }
  if (const auto* y = std::get_if<Dictionary>(&b)) {
    const auto& x = std::get<Dictionary>(a);
    return std::max(map_difference(x.strings, y->strings), map_difference(x.ints, y->ints));
  }
  if (const auto* y = std::get_if<double>(&b)) return std::abs(std::get<double>(a) - *y) / std::max(1.0, std::abs(*y));
  if (const auto* y = std::get_if<int64_t>(&b)) return std::get<int64_t>(a) == *y ? 0 : kApart;
  if (const auto* y = std::get_if<std::string>(&b)) return std::get<std::string>(a) == *y ? 0 : kApart;
  if (const auto* y = std::get_if<Image>(&b)) {
    const auto& x = std::get<Image>(a);
    if (x.width != y->width || x.height != y->height || x.format != y->format) return kApart;
    Scale s;
    for (int64_t i = 0; i < y->row_bytes * y->height; i++) s.add(x.pixels.get()[i], y->pixels.get()[i]);
    return s.worst / 255;
  }
  return 0;
}

double difference(const Features& a, const Features& b) {
  double worst = a.size() == b.size() ? 0 : kApart;
  for (const auto& [name, value] : b) {
    const FeatureValue* x = a.find(name);
    worst = std::max(worst, x == nullptr ? kApart : difference(*x, value));
  }
  return worst;
}

bool identical(const Features& a, const Features& b) {
  if (difference(a, b) != 0) return false;
  for (const auto& [name, value] : b)
    if (const auto* y = std::get_if<MultiArray>(&value)) {
      const MultiArray& x = a.array(name);
      if (std::memcmp(x.data(), y->data(), static_cast<size_t>(y->count()) * size_of(y->type())) != 0) return false;
    }
  return true;
}

Features sample_inputs(const Model& model, uint64_t seed) {
  Features in = random_inputs(model.function(), seed);
  for (auto& [name, value] : in)
    if (auto* d = std::get_if<Dictionary>(&value); d != nullptr && d->string_keys)
      d->strings = {{"good", 2}, {"terrible", 1}, {"movie", 1}};
  return in;
}

std::vector<fs::path> models_in(const fs::path& folder) {
  std::vector<fs::path> out;
  for (auto it = fs::recursive_directory_iterator(folder); it != fs::recursive_directory_iterator(); ++it) {
    const std::string e = it->path().extension().string();
    if (e == ".mlpackage" || e == ".mlmodelc") it.disable_recursion_pending();
    if (e == ".mlpackage" || e == ".mlmodelc" || e == ".mlmodel") out.push_back(it->path());
  }
  std::sort(out.begin(), out.end());
  return out;
}

std::vector<fs::path> published_models() {
  const auto folder = models_folder();
  return folder ? models_in(*folder) : std::vector<fs::path>{};
}

}  // namespace moka::test
