// SPDX-License-Identifier: Apache-2.0
// Predicts many inputs: as a batch, and one after another into the same output buffer.
//
//   batch [MODEL]                   without MODEL: an addition built in code

#include <chrono>
#include <cstdio>
#include <vector>

#include "moka/model.h"
#include "moka/program.h"

namespace {

moka::Model addition() {
  moka::ProgramBuilder b;
  auto x = b.input("x", moka::DataType::float32, {256});
  auto y = b.input("y", moka::DataType::float32, {256});
  b.output(b.op("add", {{"x", x}, {"y", y}}, "sum"));
  return b.build();
}

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const moka::Model model = argc > 1 ? moka::Model::load(argv[1]) : addition();
    std::vector<moka::Features> inputs;
    for (uint64_t seed = 1; seed <= 32; ++seed) inputs.push_back(moka::random_inputs(model.function(), seed));

    auto start = std::chrono::steady_clock::now();
    const std::vector<moka::Features> all = model.predict_batch(inputs);
    std::printf("%zu predictions at once: %.3f ms\n", all.size(), 1e3 * seconds_since(start));

    // The first prediction fills `outputs`, the others write into the same arrays.
    moka::Features outputs;
    start = std::chrono::steady_clock::now();
    for (const moka::Features& one : inputs) model.predict(one, outputs);
    std::printf("%zu into the same buffers: %.3f ms\n", inputs.size(), 1e3 * seconds_since(start));
  } catch (const moka::Exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
}
