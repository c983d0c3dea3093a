// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <string>
#include <vector>

#include "devices/vulkan/context.h"
#include "devices/vulkan/device.h"
#include "devices/vulkan/queue.h"
#include "ir/program.h"
#include "kernel/stored.h"

namespace moka::vulkan_test {

/// A function whose operations run as one region on the Vulkan device and one by one on the reference. The test lays
/// out everything itself: inputs are uploaded, constants that a kernel reads at run time are written first, and layouts
/// are converted when a kernel asks for another one.
class Region {
 public:
  /// With `half` every value of the program is computed in float16, and inputs and constants are numbers of float16.
  explicit Region(bool half = false, ir::Opset opset = ir::Opset::ios17);

  /// Runs on this card of the driver instead of the best one.
  void on(const kernel::Device& card) { device_ = &card; }
  /// Results take over the memory of inputs at their last use, where kernels allow it.
  void share_in_place() { in_place_ = true; }
  /// The submission tells of its commands.
  void show() { is_shown_ = true; }
  ir::Tensor random(const ir::Shape& shape, float low = -1, float high = 1);
  ir::Value* input(ir::Tensor value);
  ir::Value* input(const ir::Shape& shape, float low = -1, float high = 1) { return input(random(shape, low, high)); }
  ir::Value* constant(ir::Tensor value);
  /// A constant that a model holds as `s`.
  ir::Value* stored(kernel::StoredConstant s);
  ir::Value* op(std::string_view name, std::vector<ir::NamedArg> args);
  std::vector<ir::Value*> ops(std::string_view name, std::vector<ir::NamedArg> args);

  struct Result {
    std::vector<ir::Tensor> got, expected;
    std::vector<std::string> kernels;
    devices::gpu::Counters counters;
    std::vector<kernel::ShownCommand> shown;  ///< with show()
    std::vector<kernel::CommandTime> times;   ///< of the last run, with show()
    std::string refusal;                      ///< refusal of the first operation that the device does not take
  };
  /// Runs the region `times` times and returns the last results.
  Result run(const std::vector<ir::Value*>& outputs, int times = 2);
  /// Expects both to agree: float32 within `tolerance` of the largest magnitude, and float16 with an additional
  /// tolerance for its rounding.
  Result expect_same(const std::vector<ir::Value*>& outputs, double tolerance = 1e-4);

 private:
  bool half_, in_place_ = false, is_shown_ = false;
  const kernel::Device* device_ = &devices::vulkan::device();
  ir::Function function_;
  ir::Builder builder_;
  std::vector<ir::Tensor> inputs_;
  std::map<const ir::Value*, kernel::StoredConstant> stored_;
  std::mt19937 random_;
};

/// What the card can do.
inline const devices::gpu::Features& card() { return devices::vulkan::device().features(); }

/// Integers that cover every value of `dtype`, as in stored weights.
ir::Tensor codes(ir::DType dtype, const ir::Shape& shape);

/// Skips the test where there is no driver.
#define MOKA_NEEDS_VULKAN() \
  if (auto found = ::moka::devices::vulkan::Context::probe(); !found.ok()) GTEST_SKIP() << found.error().message()
/// Skips a test of pipelines for several sizes of kernels where shaders of tiles run.
#define MOKA_NEEDS_BLOCKS()                       \
  if (::moka::vulkan_test::card().shares_tiles()) \
  GTEST_SKIP() << "shaders of tiles specialize on the kernel's sizes, so these pipelines differ"

}  // namespace moka::vulkan_test
