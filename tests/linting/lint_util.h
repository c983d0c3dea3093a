// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "moka/lint.h"
#include "moka/program.h"

namespace moka::lint_test {

constexpr auto kError = lint::Level::error, kWarning = lint::Level::warning, kNote = lint::Level::note;

using Value = ProgramBuilder::Value;
using Arguments = std::vector<ProgramBuilder::Argument>;

MultiArray array(const std::vector<float>& numbers, std::vector<int64_t> shape);
/// `count` numbers between -1 and 1 times `scale`, the same in each call.
MultiArray noise(std::vector<int64_t> shape, float scale = 1, unsigned seed = 1);
/// An image input of RGB pixels.
FeatureDescription image(const std::string& name, int64_t width, int64_t height);
/// x as float16, from a float32 input [1, n].
Value half_input(ProgramBuilder& b, const std::string& name, std::vector<int64_t> shape);
/// y as the float32 output "y".
void float_output(ProgramBuilder& b, Value y, const std::string& name = "y");

/// A network of one layer relu of 8 numbers.
ModelSource network(const std::string& input, const std::string& output);

/// A saved model, which the destructor removes.
class Saved {
 public:
  explicit Saved(const ModelSource& source, const std::string& name = "Net");
  ~Saved();
  std::string path;

 private:
  std::string folder_;
};

/// The findings as "level rule place".
std::vector<std::string> found(const ModelSource& source, const lint::Options& options = {});
lint::Report report(const ModelSource& source, const lint::Options& options = {});

/// Whether a rule reports a place with this level, as evidence of a test.
testing::AssertionResult finds(const lint::Report& report, const std::string& rule, const std::string& place,
                               lint::Level level);

}  // namespace moka::lint_test
