// SPDX-License-Identifier: Apache-2.0
// Passes a picture to a model with an image input and prints the five most likely classes.
//
//   image_in MODEL PICTURE      a .png, .jpg or .webp file

#include <algorithm>
#include <cstdio>
#include <exception>
#include <string>
#include <utility>
#include <vector>

#include "moka/files.h"
#include "moka/model.h"

namespace {

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

    // The center of the picture in the size and the colors that the model takes.
    moka::ReadingOptions options;
    options.fit = moka::ImageFit::center_crop;
    const moka::Features outputs = model.predict({{input->name, moka::read_feature(*input, argv[2], options)}});
    for (const auto& [name, value] : outputs) {
      std::printf("%s: %s\n", name.c_str(), moka::describe(value).c_str());
      if (const auto* classes = std::get_if<moka::Dictionary>(&value)) print_best(*classes);
    }
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
}
