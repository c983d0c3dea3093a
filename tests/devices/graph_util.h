// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "ir/program.h"
#include "plan/plan.h"
#include "runtime/frame.h"

namespace moka::devices_test {

/// A small function of random inputs and constants, to run on the CPU device and on the reference device.
class Graph {
 public:
  explicit Graph(ir::Opset opset = ir::Opset::ios17, unsigned seed = 1);

  ir::Value* input(const ir::Shape& shape, float low = -1, float high = 1);
  ir::Value* input_of(ir::Tensor value);
  ir::Tensor random(const ir::Shape& shape, float low = -1, float high = 1);
  ir::Value* constant(ir::Tensor value);
  ir::Value* op(std::string_view name, std::vector<ir::NamedArg> args);
  std::vector<ir::Value*> ops(std::string_view name, std::vector<ir::NamedArg> args);

  ir::Function& function() { return function_; }
  const std::vector<ir::Tensor>& inputs() const { return inputs_; }
  int threads = 2;

 private:
  ir::Function function_;
  ir::Builder builder_;
  std::vector<ir::Tensor> inputs_;
  std::mt19937 random_;
};

/// How a list of devices runs a function.
struct Run {
  std::shared_ptr<const plan::Plan> plan;
  std::vector<ir::Tensor> outputs;
  std::shared_ptr<plan::ConstantPool> constants;
  std::string kernels;  ///< kernels in the order of the steps: "cpu.conv.onednn convert reference ..."

  /// Whether `text` occurs in `kernels`.
  bool has(std::string_view text) const { return kernels.find(text) != std::string::npos; }
};

/// The first step of an operation of this type, which a kernel computes. There must be one.
const plan::KernelCall& step_of(const Run& r, std::string_view op);

/// {a, b, rest...}
ir::Shape shape_of(int64_t a, int64_t b, const std::vector<int64_t>& rest);
/// A tensor of random bits. Its element type has at most 8 bits.
ir::Tensor random_bytes(ir::DType dtype, const ir::Shape& shape, unsigned seed);

plan::PlanOptions options(bool cpu, int threads);
Result<Run> run(const ir::Function& f, std::span<const ir::Tensor> inputs, const plan::PlanOptions& o, int times = 1);
Result<Run> run(const ir::Function& f, std::span<const ir::Tensor> inputs, bool cpu, int threads = 2, int times = 1);
/// Compares element by element, with a tolerance relative to max(1, largest expected magnitude).
void expect_near(const ir::Tensor& got, const ir::Tensor& expected, double tolerance, const std::string& what);

/// The largest and the root mean square difference, divided by the largest expected magnitude.
struct RelativeError {
  double largest, rms;
};
RelativeError relative_error(const ir::Tensor& got, const ir::Tensor& expected);
/// Expects the first output of `got` to differ from the reference device's by at most these errors.
void expect_error_below(Graph& g, const Run& got, double largest, double rms);

/// Sets the epilogue of y's operation and, if `addend`, a random addend. Returns y, which may be null.
ir::Value* with_epilogue(Graph& g, ir::Value* y, const std::vector<ir::Epilogue>& epilogue, bool addend);
/// Lists of epilogues that kernels apply to their results, the empty one included.
std::vector<std::vector<ir::Epilogue>> sample_epilogues();

/// Both devices must give the same within `tolerance` relative to max(1, largest expected magnitude). Unless
/// `anywhere`, every kernel must be the CPU's.
Run expect_same(Graph& g, std::vector<ir::Value*> outputs, double tolerance = 1e-5, bool anywhere = false);

/// Predicts one output with its operation pinned to `kernel`, which must not refuse it.
Run run_by(std::string_view kernel, Graph& g, ir::Value* output);
/// Compares one output whose operation is pinned to `kernel`.
Run expect_same_by(std::string_view kernel, Graph& g, ir::Value* output, double tolerance = 1e-5);

/// One, two and three threads on the CPU must give the same bits of `output` (fp32). With one thread a kernel named
/// `kernel` must run. `what` describes the case in messages.
void expect_same_bits(Graph& g, ir::Value* output, std::string_view kernel, const std::string& what);

}  // namespace moka::devices_test
