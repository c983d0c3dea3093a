#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "ops/operation_util.h"

// Results that are easily lost: exact ones, those of infinities and NaN, and tiny ones.
namespace moka::ops {
namespace {

using namespace ir;
using test::call;

constexpr float kInf = std::numeric_limits<float>::infinity(), kNan = std::numeric_limits<float>::quiet_NaN();

std::vector<double> values(const Tensor& t) {
  std::vector<double> v;
  for (int64_t i = 0; i < t.count(); i++) v.push_back(load_f64(t.view(), i));
  return v;
}

/// numpy: np.trunc of exact fractions, low + (high - low) * k / n.
TEST(Values, ResizedIntegersAreTruncatedExactly) {
  auto resized = [](const Tensor& x, int64_t n, const char* mode) {
    return values(call("resize", {{"x", x},
                                  {"shape", Tensor::i32({n})},
                                  {"resized_dims", Tensor::scalar_i64(DType::uint32, 1)},
                                  {"sampling_mode", mode}}));
  };
  EXPECT_EQ(resized(Tensor::i32({-9, -2}), 8, "ALIGN_CORNERS"), (std::vector<double>{-9, -8, -7, -6, -5, -4, -3, -2}));
  for (int64_t n = 2; n < 200; n++) {
    const int64_t low = -1000000007, step = 9973;
    std::vector<double> line;
    for (int64_t i = 0; i < n; i++) line.push_back(static_cast<double>(low + i * step));
    EXPECT_EQ(resized(Tensor::i32({low, low + (n - 1) * step}), n, "ALIGN_CORNERS"), line) << n;
  }
  EXPECT_EQ(resized(Tensor::i32({0, 2}), 4, "UNALIGN_CORNERS"), (std::vector<double>{0, 0, 1, 2}));
  EXPECT_EQ(resized(Tensor::i32({0, -1}), 1001, "ALIGN_CORNERS")[999], 0);
}

}  // namespace
}  // namespace moka::ops
