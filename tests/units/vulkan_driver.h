// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <algorithm>

#include "moka/moka.hpp"

namespace moka::test {

/// Whether this machine has a driver for the device vulkan, which may be a software driver. Without one, a model that
/// names the device reports it.
inline bool has_vulkan_driver() {
  ModelConfiguration c;
  c.device = "vulkan";
  c.rates = "off";
  const Model m = Model::from_mil(
      "program(1.3)\n{\nfunc main<ios18>(tensor<fp32, [1]> x) {\n"
      "tensor<fp32, [1]> y = relu(x = x)[name = string(\"y\")];\n} -> (y);\n}\n",
      c);
  const auto remarks = m.compute_plan().remarks;
  return std::none_of(remarks.begin(), remarks.end(),
                      [](const PassRemark& r) { return r.text.starts_with("device 'vulkan' is not used: "); });
}

}  // namespace moka::test

#define MOKA_NEEDS_VULKAN_DRIVER() \
  if (!::moka::test::has_vulkan_driver()) GTEST_SKIP() << "this machine has no driver for the device vulkan"
