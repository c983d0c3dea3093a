// Gives a picture to a model that takes an image, and prints the five classes that it finds most likely.
//
//   image_in MODEL PICTURE          .png, .jpg or .webp

#include <algorithm>
#include <cstdio>
#include <exception>
#include <string>
#include <utility>
#include <vector>

#include "io/picture.h"
#include "io/resize.h"
#include "moka/model.h"

namespace {

/// The picture cropped to the size that the model wants, borrowed by the image: no pixel is copied.
moka::Image borrowed(moka::io::Picture& picture, bool gray) {
  return {picture.pixels.data(), static_cast<int64_t>(picture.width), static_cast<int64_t>(picture.height),
          gray ? moka::PixelFormat::gray8 : moka::PixelFormat::rgb8};
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
  if (argc != 3) return std::fprintf(stderr, "image_in MODEL PICTURE\n"), 2;
  try {
    const moka::Model model = moka::Model::load(argv[1]);
    const auto& inputs = model.function().inputs;
    const auto input =
        std::find_if(inputs.begin(), inputs.end(), [](const auto& i) { return i.type == moka::FeatureType::image; });
    if (input == inputs.end()) return std::fprintf(stderr, "%s: takes no image\n", argv[1]), 1;

    const bool gray = input->image.color == moka::ColorSpace::grayscale;
    moka::io::Picture picture =
        moka::io::with_channels(moka::io::fit(moka::io::read_picture(argv[2]), static_cast<size_t>(input->image.width),
                                              static_cast<size_t>(input->image.height), moka::io::Fit::center_crop),
                                gray ? 1 : 3);
    const moka::Features outputs = model.predict({{input->name, borrowed(picture, gray)}});
    for (const auto& [name, value] : outputs) {
      std::printf("%s: %s\n", name.c_str(), moka::describe(value).c_str());
      if (const auto* classes = std::get_if<moka::Dictionary>(&value)) print_best(*classes);
    }
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
}
