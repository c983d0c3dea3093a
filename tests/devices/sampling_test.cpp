// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <limits>

#include "devices/graph_util.h"

/// Sampling at positions, repeating, and the place of the largest element.
namespace moka::devices_test {
namespace {

using namespace ir;

constexpr float kInf = std::numeric_limits<float>::infinity();

TEST(CpuResample, EveryModeAndPosition) {
  for (const char* sampling : {"bilinear", "nearest"})
    for (const char* padding : {"constant", "border", "reflection", "symmetric"})
      for (const char* range : {"unnormalized", "normalized_minus_one_to_one", "normalized_zero_to_one"})
        for (bool align : {false, true}) {
          SCOPED_TRACE(cat(sampling, " ", padding, " ", range, " ", align));
          Graph g;
          const float reach = range == std::string("unnormalized") ? 20.0f : 1.5f;
          Tensor at = g.random({2, 9, 31, 2}, -reach, reach);
          for (size_t i = 0; i < static_cast<size_t>(at.count()); i += 3)
            at.mut<float>()[i] = std::round(at.mut<float>()[i]);
          at.mut<float>()[7] = std::nanf("");
          at.mut<float>()[10] = kInf;
          at.mut<float>()[12] = -1e30f;
          Tensor x = g.random({2, 5, 11, 13});
          x.mut<float>()[3 * 13 + 4] = kInf;
          expect_same(g, {g.op("resample", {{"x", g.input_of(x)},
                                            {"coordinates", g.input_of(at)},
                                            {"sampling_mode", sampling},
                                            {"padding_mode", padding},
                                            {"padding_value", 0.75f},
                                            {"coordinates_mode", range},
                                            {"align_corners", align}})});
        }
}

TEST(CpuTile, EveryAxisAndType) {
  for (const Ints& repeats : {Ints{1, 1, 1}, {3, 1, 1}, {1, 5, 1}, {1, 1, 7}, {2, 3, 4}, {4, 1, 3}})
    for (DType t : {DType::fp32, DType::int32, DType::boolean}) {
      SCOPED_TRACE(cat(t, " ", repeats[0], " ", repeats[1], " ", repeats[2]));
      Graph g;
      Value* x = g.input({2, 3, 5}, 0, 9);
      if (t != DType::fp32)
        x = g.op("cast", {{"x", x}, {"dtype", t == DType::boolean ? "bool" : std::string(to_string(t))}});
      const auto r = expect_same(
          g, {g.op("tile", {{"x", x}, {"reps", Tensor::i32({repeats[0], repeats[1], repeats[2]})}})}, 0, true);
      EXPECT_TRUE(r.has("cpu.tile")) << r.kernels;
    }
}

TEST(CpuReduceArg, AnyAxis) {
  for (const char* name : {"reduce_argmax", "reduce_argmin"})
    for (int axis : {0, 1, 2}) {
      SCOPED_TRACE(cat(name, " ", axis));
      Graph g;
      Tensor x = g.random({7, 11, 600});
      for (size_t i = 0; i < static_cast<size_t>(x.count()); i++) x.mut<float>()[i] = std::round(4 * x.mut<float>()[i]);
      for (size_t i = 0; i < 40; i++) x.mut<float>()[i * 1151] = i % 3 == 0 ? std::nanf("") : i % 3 == 1 ? kInf : -kInf;
      expect_same(g, {g.op(name, {{"x", g.input_of(x)}, {"axis", axis}})});
    }
}

}  // namespace
}  // namespace moka::devices_test
