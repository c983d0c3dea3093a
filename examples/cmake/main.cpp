// SPDX-License-Identifier: Apache-2.0
#include <Plane.hpp>
#include <cstdio>
#include <cstdlib>

/// The height of a plane over two numbers: 2 a + 3 b + 1.
int main(int argc, char** argv) {
  const float a = argc > 1 ? std::strtof(argv[1], nullptr) : 0, b = argc > 2 ? std::strtof(argv[2], nullptr) : 0;
  try {
    const Plane model;  // Plane.mlmodelc, which lies beside this program
    std::printf("%g\n", model.prediction(moka::MultiArray::of(std::vector<float>{a, b}, {2})).y());
  } catch (const moka::Exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
}
