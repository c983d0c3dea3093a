// SPDX-License-Identifier: Apache-2.0
// Passes a picture to a model with an image input and prints the five most likely classes.
//
//   image_in MODEL PICTURE.png

#include <png.h>

#include <algorithm>
#include <cstdio>
#include <exception>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "moka/model.h"

namespace {

/// The pixels of a PNG file: gray, or red, green and blue.
moka::Image read_png(const char* path, bool gray) {
  png_image png{};
  png.version = PNG_IMAGE_VERSION;
  if (png_image_begin_read_from_file(&png, path) == 0) throw std::runtime_error(std::string(path) + ": " + png.message);
  png.format = gray ? PNG_FORMAT_GRAY : PNG_FORMAT_RGB;
  moka::Image image(png.width, png.height, gray ? moka::PixelFormat::gray8 : moka::PixelFormat::rgb8);
  const png_color black{};
  if (png_image_finish_read(&png, &black, image.pixels.get(), static_cast<png_int_32>(image.row_bytes), nullptr) == 0)
    throw std::runtime_error(std::string(path) + ": " + png.message);
  return image;
}

/// The center of the picture in the model's size. Each pixel is the mean of the pixels that it covers.
moka::Image fitted(const moka::Image& from, int64_t width, int64_t height) {
  moka::Image to(width, height, from.format);
  const auto channels = static_cast<int64_t>(bytes_per_pixel(from.format));
  const double step = std::min(static_cast<double>(from.width) / static_cast<double>(width),
                               static_cast<double>(from.height) / static_cast<double>(height));
  const double left = (static_cast<double>(from.width) - step * static_cast<double>(width)) / 2;
  const double top = (static_cast<double>(from.height) - step * static_cast<double>(height)) / 2;
  const auto range = [step](double start, int64_t i, int64_t size) {
    const auto first = std::clamp<int64_t>(static_cast<int64_t>(start + step * static_cast<double>(i)), 0, size - 1);
    const auto last = static_cast<int64_t>(start + step * static_cast<double>(i + 1));
    return std::pair{first, std::clamp<int64_t>(last, first + 1, size)};
  };
  for (int64_t y = 0; y < height; ++y)
    for (int64_t x = 0; x < width; ++x) {
      const auto [y0, y1] = range(top, y, from.height);
      const auto [x0, x1] = range(left, x, from.width);
      for (int64_t c = 0; c < channels; ++c) {
        int64_t sum = 0;
        for (int64_t v = y0; v < y1; ++v)
          for (int64_t u = x0; u < x1; ++u) sum += from.pixels.get()[v * from.row_bytes + u * channels + c];
        to.pixels.get()[y * to.row_bytes + x * channels + c] = static_cast<uint8_t>(sum / ((y1 - y0) * (x1 - x0)));
      }
    }
  return to;
}

void print_best(const moka::Dictionary& classes) {
  std::vector<std::pair<double, std::string>> ranked;
  for (const auto& [name, probability] : classes.strings) ranked.emplace_back(probability, name);
  for (const auto& [number, probability] : classes.ints) ranked.emplace_back(probability, std::to_string(number));
  std::sort(ranked.rbegin(), ranked.rend());
  for (size_t i = 0; i < std::min<size_t>(5, ranked.size()); ++i)
    std::printf("  %5.1f%%  %s\n", 100 * ranked[i].first, ranked[i].second.c_str());
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return std::fprintf(stderr, "image_in MODEL PICTURE.png\n"), 2;
  try {
    const moka::Model model = moka::Model::load(argv[1]);
    const auto& inputs = model.function().inputs;
    const auto input =
        std::find_if(inputs.begin(), inputs.end(), [](const auto& i) { return i.type == moka::FeatureType::image; });
    if (input == inputs.end()) return std::fprintf(stderr, "%s: takes no image\n", argv[1]), 1;

    const moka::Image picture = read_png(argv[2], input->image.color == moka::ColorSpace::grayscale);
    const moka::Features outputs =
        model.predict({{input->name, fitted(picture, input->image.width, input->image.height)}});
    for (const auto& [name, value] : outputs) {
      std::printf("%s: %s\n", name.c_str(), moka::describe(value).c_str());
      if (const auto* classes = std::get_if<moka::Dictionary>(&value)) print_best(*classes);
    }
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
}
