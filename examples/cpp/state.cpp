// SPDX-License-Identifier: Apache-2.0
// A stateful model: every prediction adds its input to a state and returns the sum so far.
//
//   state [MODEL]                   without MODEL: an accumulator in MIL text

#include <cstdio>
#include <string>

#include "moka/model.h"

namespace {

const char* const kAccumulator = R"(program(1.3)
{
    func main<ios18>(state<tensor<fp16, [3]>> total, tensor<fp16, [3]> x) {
        tensor<fp16, [3]> before = read_state(input = total)[name = string("before")];
        tensor<fp16, [3]> sum = add(x = before, y = x)[name = string("sum")];
        write_state(data = sum, input = total)[name = string("after")];
    } -> (sum);
}
)";

void print(const std::string& name, const moka::MultiArray& array) {
  std::printf("%s:", name.c_str());
  for (int64_t i = 0; i < array.count() && i < 8; ++i) std::printf(" %g", array.at(i));
  std::printf("\n");
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const moka::Model model = argc > 1 ? moka::Model::load(argv[1]) : moka::Model::from_mil(kAccumulator);
    moka::State state = model.new_state();
    moka::PredictionOptions options;
    options.state = &state;
    for (uint64_t step = 1; step <= 3; ++step) {
      const moka::Features outputs = model.predict(moka::random_inputs(model.function(), step), options);
      for (const auto& [name, value] : outputs)
        if (const auto* array = std::get_if<moka::MultiArray>(&value)) print(name, *array);
    }
    for (const std::string& name : state.names()) print("state " + name, state.read(name));
  } catch (const moka::Exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
}
