// SPDX-License-Identifier: Apache-2.0
#include <fstream>
#include <sstream>

#include "devices/graph_util.h"

namespace moka::devices_test {
namespace {

using namespace ir;

/// Bytes of executable memory that belong to no file.
size_t generated_code() {
  std::ifstream maps("/proc/self/maps");
  size_t bytes = 0;
  for (std::string line; std::getline(maps, line);) {
    std::istringstream in(line);
    std::string range, rights, offset, device, inode, name;
    in >> range >> rights >> offset >> device >> inode >> name;
    const size_t dash = range.find('-');
    if (rights.find('x') == std::string::npos || inode != "0" || name.starts_with("[")) continue;
    bytes += std::stoull(range.substr(dash + 1), nullptr, 16) - std::stoull(range.substr(0, dash), nullptr, 16);
  }
  return bytes;
}

/// A volume of few input and output channels becomes a matrix product of oneDNN, whose code is generated once in a
/// process.
TEST(GeneratedCode, IsMadeWhilePlanning) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        Graph g;
        Value* x = g.input({1, 3, 8, 16, 16});
        Value* y = g.op("conv", {{"x", x},
                                 {"weight", g.random({7, 3, 3, 7, 7})},
                                 {"strides", Tensor::i32({1, 2, 2})},
                                 {"pad_type", "same"}});
        g.function().body().set_outputs({y});
        const auto planned = run(g.function(), g.inputs(), true, 1, 0);
        const size_t before = generated_code();
        const auto predicted = run(g.function(), g.inputs(), true, 1, 1);
        const bool by_onednn = planned.ok() && predicted.ok() && predicted->kernels.find("gemm") != std::string::npos;
        std::exit(!by_onednn ? 2 : before == 0 ? 3 : generated_code() != before ? 4 : 0);
      },
      testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace moka::devices_test
