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

}  // namespace
}  // namespace moka
