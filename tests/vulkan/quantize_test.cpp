// SPDX-License-Identifier: Apache-2.0
#include "vulkan/region_util.h"

namespace moka::vulkan_test {
namespace {

using namespace ir;

TEST(Quantization, ToBytesAndBack) {
  MOKA_NEEDS_VULKAN();
  for (const char* dtype : {"int8", "uint8"}) {
    for (bool along : {false, true}) {
      Region g;
      const bool is_signed = std::string_view(dtype) == "int8";
      Tensor zero = *Tensor::zeros(is_signed ? DType::int8 : DType::uint8, along ? Shape{5} : Shape{});
      for (int64_t i = 0; i < zero.count(); i++) store_i64(zero.view(), i, 3 + i);
      std::vector<NamedArg> args = {
          {"scale", g.constant(along ? g.random({5}, 0.01f, 0.02f) : Tensor::scalar(DType::fp32, 0.0125f))},
          {"zero_point", g.constant(std::move(zero))}};
      if (along) args.push_back({"axis", -2});
      auto with = [&](NamedArg first) {
        std::vector<NamedArg> all = args;
        all.insert(all.begin(), std::move(first));
        return all;
      };
      auto to_bytes = with({"input", g.input({2, 5, 33}, -2, 2)});
      to_bytes.push_back({"output_dtype", dtype});
      Value* bytes = g.op("quantize", std::move(to_bytes));
      g.expect_same({bytes, g.op("dequantize", with({"input", bytes}))}, 1e-6);
    }
  }
}

TEST(Quantization, InOneStep) {
  MOKA_NEEDS_VULKAN();
  for (bool half : {false, true}) {
    Region g(half);
    Value* x = g.input({3, 41}, -2, 2);
    g.expect_same({g.op("moka_fake_quantize", {{"x", x}, {"scale", 0.01f}, {"zero_point", -5}, {"dtype", "int8"}})});
  }
}

}  // namespace
}  // namespace moka::vulkan_test
