// SPDX-License-Identifier: Apache-2.0
#include "ir/permutation.h"

#include <gtest/gtest.h>

namespace moka::ir {
namespace {

TEST(Permutations, ComposeInTheOrderOfTheOperations) {
  // numpy: transpose(transpose(zeros((2, 3, 5)), (1, 2, 0)), (0, 2, 1)).shape is (3, 2, 5), the sizes of axes 1, 0, 2.
  EXPECT_EQ(composed({1, 2, 0}, {0, 2, 1}), (Permutation{1, 0, 2}));
  EXPECT_EQ(composed({1, 2, 0}, {1, 0}), std::nullopt);
  EXPECT_TRUE(undoes({1, 2, 0}, {2, 0, 1}));
  EXPECT_FALSE(undoes({1, 2, 0}, {1, 2, 0}));
  EXPECT_TRUE(is_identity({0, 1, 2}));
  EXPECT_FALSE(is_identity({0, 2, 1}));
}

}  // namespace
}  // namespace moka::ir
