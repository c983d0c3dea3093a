// SPDX-License-Identifier: Apache-2.0
// Loads a model, fills its inputs with random numbers, predicts, and prints the outputs.
//
//   load_and_predict [MODEL]        without MODEL: a small network built in code

#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include "moka/model.h"
#include "moka/program.h"

namespace {

moka::Model small_network() {
  std::vector<float> numbers(3 * 4);
  for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = 0.1f * static_cast<float>(i);
  moka::ProgramBuilder b;
  auto x = b.input("x", moka::DataType::float32, {1, 4});
  auto scores = b.op("linear", {{"x", x}, {"weight", moka::MultiArray::of(numbers, {3, 4})}});
  b.output(b.op("softmax", {{"x", scores}, {"axis", -1}}, "probabilities"));
  return b.build();
}

void print(const std::string& name, const moka::FeatureValue& value) {
  std::printf("%s: %s", name.c_str(), moka::describe(value).c_str());
  if (const auto* array = std::get_if<moka::MultiArray>(&value))
    for (int64_t i = 0; i < std::min<int64_t>(array->count(), 6); ++i) std::printf(" %g", array->at(i));
  std::printf("\n");
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const moka::Model model = argc > 1 ? moka::Model::load(argv[1]) : small_network();
    const moka::Features inputs = moka::random_inputs(model.function());
    for (const auto& [name, value] : inputs) print(name, value);
    for (const auto& [name, value] : model.predict(inputs)) print(name, value);
  } catch (const moka::Exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
}
