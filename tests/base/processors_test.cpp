// SPDX-License-Identifier: Apache-2.0
#include "base/processors.h"

#include <gtest/gtest.h>
#include <sched.h>

namespace moka {
namespace {

TEST(Processors, OfAQuotaAreRoundedUp) {
  EXPECT_EQ(processors_of_quota("200000 100000\n"), 2);
  EXPECT_EQ(processors_of_quota("150000 100000\n"), 2);
  EXPECT_EQ(processors_of_quota("50000 100000"), 1);
  EXPECT_EQ(processors_of_quota("1000 100000"), 1);
}

TEST(Processors, NoQuotaIsNoLimit) {
  for (const char* text :
       {"max 100000\n", "", "max", "7", "7 ", "200000 0", "0 100000", "-5 100000", "nan 1", "1e300 1", "x y"})
    EXPECT_EQ(processors_of_quota(text), std::nullopt) << text;
}

TEST(Processors, AreNotMoreThanTheProcessMayUse) {
  cpu_set_t allowed;
  ASSERT_EQ(sched_getaffinity(0, sizeof allowed, &allowed), 0);
  EXPECT_GE(processors(), 1);
  EXPECT_LE(processors(), CPU_COUNT(&allowed));
}

}  // namespace
}  // namespace moka
