// SPDX-License-Identifier: Apache-2.0
#include "base/error.h"

#include <gtest/gtest.h>

namespace moka {
namespace {

TEST(Errors, KeepTheDeviceThatFailedFirst) {
  Error e = fail(ErrorCode::device_lost, "operation 'device 'b'' failed");
  EXPECT_EQ(e.device(), "");
  e = std::move(e).of_device("a");
  e = std::move(e).in("region 0").of_device("c");
  EXPECT_EQ(e.device(), "a");
  EXPECT_EQ(e.to_string(), "region 0: operation 'device 'b'' failed");
}

TEST(Errors, NameAPlaceOnce) {
  const auto in_conv = [](Error e) { return std::move(e).in("operation 'a'").to_string(); };
  EXPECT_EQ(in_conv(fail(ErrorCode::malformed, "operation 'a', parameter 'x': no")),
            "operation 'a', parameter 'x': no");
  EXPECT_EQ(in_conv(fail(ErrorCode::malformed, "no").in("operation 'a'")), "operation 'a': no");
  EXPECT_EQ(in_conv(fail(ErrorCode::malformed, "operation 'ab': no")), "operation 'a': operation 'ab': no");
  EXPECT_EQ(in_conv(fail(ErrorCode::malformed, "operation 'a's input")), "operation 'a': operation 'a's input");
}

}  // namespace
}  // namespace moka
