// SPDX-License-Identifier: Apache-2.0
// Predicts several shapes of one input. Each shape is planned on first use, and its plan is kept.
//
//   flexible_shape [MODEL INPUT]    without MODEL: sums over the last dimension, any number of rows

#include <algorithm>
#include <cstdio>
#include <string>

#include "moka/model.h"
#include "moka/program.h"

namespace {

moka::Model row_sums() {
  moka::ProgramBuilder b;
  auto x = b.input("x", moka::DataType::float32, {-1, 4});
  b.output(b.op("reduce_sum", {{"x", x}, {"axes", std::vector<int>{-1}}, {"keep_dims", false}}, "sums"));
  return b.build();
}

std::string text(const std::vector<int64_t>& shape) {
  std::string out;
  for (int64_t size : shape) out += (out.empty() ? "" : " x ") + std::to_string(size);
  return out;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const moka::Model model = argc > 1 ? moka::Model::load(argv[1]) : row_sums();
    const std::string wanted = argc > 2 ? argv[2] : model.function().inputs.at(0).name;
    for (const moka::FeatureDescription& input : model.function().inputs) {
      std::printf("%s takes %s\n", input.name.c_str(), input.formatted_type().c_str());
      if (input.name != wanted || input.array.ranges.empty()) continue;
      for (int64_t growth : {0, 1, 4}) {
        std::vector<int64_t> shape;
        for (const moka::SizeRange& range : input.array.ranges) {
          const int64_t least = std::max<int64_t>(range.lower, 1);
          const bool room = range.upper < 0 || least + growth <= range.upper;
          shape.push_back(room ? least + growth : least);
        }
        moka::Features inputs = moka::random_inputs(model.function());
        inputs[input.name] = moka::MultiArray(input.array.type, shape);
        for (const auto& [name, value] : model.predict(inputs))
          std::printf("  %s gives %s: %s\n", text(shape).c_str(), name.c_str(), moka::describe(value).c_str());
      }
    }
  } catch (const moka::Exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
}
