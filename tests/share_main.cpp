// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

namespace {

/// FNV-1a: the same on every machine, so a test's name decides for good which share it belongs to.
uint64_t hash_of(std::string_view name) {
  uint64_t h = 0xcbf29ce484222325;
  for (const char c : name) h = (h ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return h;
}

/// "-" and the names of the tests outside of share `index` of `count`.
std::string others(unsigned index, unsigned count) {
  std::string names = "-";
  const testing::UnitTest& all = *testing::UnitTest::GetInstance();
  for (int s = 0; s < all.total_test_suite_count(); s++) {
    const testing::TestSuite& suite = *all.GetTestSuite(s);
    for (int i = 0; i < suite.total_test_count(); i++) {
      const std::string name = std::string(suite.name()) + "." + suite.GetTestInfo(i)->name();
      if ((hash_of(name) >> 32) % count != index) names += (names.size() > 1 ? ":" : "") + name;
    }
  }
  return names;
}

}  // namespace

/// MOKA_TEST_SHARE=K/N runs the tests whose names belong to share K of N, unless MOKA_TEST_ALL is set or a filter is
/// given.
int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  const char* share = std::getenv("MOKA_TEST_SHARE");
  if (share != nullptr && std::getenv("MOKA_TEST_ALL") == nullptr && testing::GTEST_FLAG(filter) == "*") {
    unsigned index = 0, count = 0;
    if (std::sscanf(share, "%u/%u", &index, &count) != 2 || index >= count) {
      std::fprintf(stderr, "MOKA_TEST_SHARE is '%s', not K/N with K below N\n", share);
      return 2;
    }
    testing::GTEST_FLAG(filter) = others(index, count);
  }
  return RUN_ALL_TESTS();
}
