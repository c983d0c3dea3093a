// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <moka/moka.hpp>

int main() {
  moka::ProgramBuilder b;
  auto x = b.input("x", moka::DataType::float32, {2});
  b.output(b.op("add", {{"x", x}, {"y", 1.0f}}, "y"));
  moka::Model model = b.build();
  auto y = model.predict({{"x", moka::MultiArray::of(std::vector<float>{1, 2}, {2})}});
  std::printf("%g\n", y.array("y").at(1));
}
