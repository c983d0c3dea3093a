// SPDX-License-Identifier: Apache-2.0
#include "measuring/ranges.h"

#include <algorithm>
#include <cmath>

#include "boundary/errors.h"
#include "compress/activations.h"
#include "measuring/forms.h"
#include "measuring/predict.h"

namespace moka::measuring {
namespace {

class Ranges {
 public:
  void add(const Features& inputs) {
    for (const auto& [name, value] : inputs) {
      if (const auto* array = std::get_if<MultiArray>(&value)) add(name, *array);
      if (const auto* image = std::get_if<Image>(&value)) add(name, *image);
    }
  }

  void add(std::string_view name, const MultiArray& array) {
    if (array.count() == 0) return;
    if (array.type() == DataType::float32 && array.is_contiguous()) return add_all(name, array.as<float>());
    const MultiArray wide = array.converted(DataType::float64);
    add_all(name, wide.as<double>());
  }

  const compress::ValueRanges& found() const { return found_; }

 private:
  void add(std::string_view name, const Image& image) {
    if (image.format == PixelFormat::gray_float16) return add(name, converted(image, PixelFormat::gray_float32));
    const size_t pixel = bytes_per_pixel(image.format);
    const bool floats = image.format == PixelFormat::gray_float32;
    std::vector<uint8_t> colors;
    for (int64_t y = 0; y < image.height; ++y) {
      const uint8_t* row = image.pixels.get() + y * image.row_bytes;
      const auto width = static_cast<size_t>(image.width);
      if (floats) {
        add_all(name, std::span(reinterpret_cast<const float*>(row), width));
        continue;
      }
      colors.clear();
      for (size_t i = 0; i < width * pixel; ++i)
        if (pixel != 4 || i % 4 < 3) colors.push_back(row[i]);  // without alpha
      add_all(name, colors);
    }
  }

  template <class Values>
  void add_all(std::string_view name, const Values& values) {
    auto least = values[0], greatest = values[0];
    bool is_number = true;
    for (const auto value : values) {
      is_number = is_number && value == value;
      least = std::min(least, value);
      greatest = std::max(greatest, value);
    }
    add(name, is_number ? static_cast<double>(least) : -INFINITY);
    add(name, is_number ? static_cast<double>(greatest) : INFINITY);
  }

  void add(std::string_view name, double value) {
    const auto [it, is_new] = found_.emplace(name, compress::ValueRange{value, value});
    it->second = {std::min(it->second.least, value), std::max(it->second.greatest, value)};
  }

  compress::ValueRanges found_;
};

/// Without passes and shared memory, so that every operation of the program has a result to look at.
Model unchanged_program(const ModelSource& source, ModelConfiguration configuration) {
  configuration.optimize = configuration.reuse_buffers = false;
  return source.load(configuration);
}

}  // namespace

std::vector<CompressedActivation> quantize_activations(format::ModelSource& source,
                                                       const ActivationCompression& activations,
                                                       const std::function<ModelSource(format::ModelSource)>& wrapped) {
  if (activations.inputs.empty())
    throw Exception(ErrorKind::invalid_argument, "activations: expected inputs to measure ranges on, got none");
  const Model model = unchanged_program(wrapped(source), activations.configuration);
  Ranges ranges;
  const Intermediate add = [&](std::string_view, std::string_view value, const MultiArray& array) {
    ranges.add(value, array);
  };
  size_t done = 0;
  for (const Features& inputs : activations.inputs) {
    if (activations.progress) activations.progress(done++, activations.inputs.size());
    ranges.add(inputs);
    with_new_state(model, [&](const PredictionOptions& options) { return model.intermediates(inputs, add, options); });
  }
  compress::Activations rules{activations.symmetric, activations.is_signed, {}};
  rules.keeps = [&](std::string_view name, std::string_view type) {
    return std::any_of(activations.unchanged.begin(), activations.unchanged.end(),
                       [&](const std::string& pattern) { return applies(pattern, name, type); });
  };
  std::vector<CompressedActivation> out;
  for (const compress::QuantizedValue& v :
       boundary::unwrap(compress::quantize_activations(source, ranges.found(), rules)))
    out.push_back({v.name, v.range.least, v.range.greatest, v.scale, v.zero_point});
  return out;
}

}  // namespace moka::measuring
