// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "moka/edit.h"
#include "moka/program.h"

namespace moka::edit_test {

MultiArray array(const std::vector<float>& numbers, std::vector<int64_t> shape);
std::vector<float> numbers(const FeatureValue& value);

/// An input of the models below. It and their results are exact in float16.
inline const std::vector<float> kX = {1, -2, 3, 0.5f};
inline const MultiArray kInput = array(kX, {1, 4});

/// The numbers of one output.
std::vector<float> predict(const ModelSource& source, const Features& inputs, const std::string& output);

/// The message of the Exception that `call` throws, and nothing when it throws none.
template <class F>
std::string message_of(const F& call) {
  try {
    call();
  } catch (const Exception& e) {
    return e.what();
  }
  return {};
}

/// float32 x [1, 4] -> linear (weight, 3 outputs) -> "middle" -> relu -> "y" [1, 3].
ModelSource program(const std::string& opset = "ios16");
/// Computes the same as `program`, step by step.
std::vector<float> middle_of(const std::vector<float>& x);
std::vector<float> relu(std::vector<float> x);

/// A network: x [4] -> innerProduct "dense" -> "middle" -> relu "last" -> y [3], with the weights of `program`.
ModelSource network();

}  // namespace moka::edit_test
