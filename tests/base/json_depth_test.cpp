// SPDX-License-Identifier: Apache-2.0
#include "base/json_depth.h"

#include <gtest/gtest.h>

#include <string>

namespace moka {
namespace {

TEST(JsonDepth, CountsListsAndObjects) {
  EXPECT_FALSE(json_nests_deeper("", 0));
  EXPECT_FALSE(json_nests_deeper("1", 0));
  EXPECT_TRUE(json_nests_deeper("[]", 0));
  EXPECT_FALSE(json_nests_deeper("[{}, {}, [1]]", 2));
  EXPECT_TRUE(json_nests_deeper("[{\"a\": [1]}]", 2));
  EXPECT_TRUE(json_nests_deeper(std::string(100000, '['), 64));
}

TEST(JsonDepth, IgnoresTheContentsOfStrings) {
  EXPECT_FALSE(json_nests_deeper(R"({"[[[[": "{{{{"})", 1));
  EXPECT_FALSE(json_nests_deeper(R"({"a\"[[": 1})", 1));
  EXPECT_TRUE(json_nests_deeper(R"({"a\\": [[1]]})", 2));
  EXPECT_FALSE(json_nests_deeper("\"[[[", 0));
  EXPECT_FALSE(json_nests_deeper("\"\\", 0));
}

}  // namespace
}  // namespace moka
