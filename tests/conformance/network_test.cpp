#include <gtest/gtest.h>

#include "conformance/network_util.h"

namespace moka::conformance {
namespace {

constexpr int kNetworks = 120;

/// Random networks give the same results in every column.
TEST(Networks, ColumnsAgree) {
  const RandomPrograms programs(kNetworks);
  int wrong = 0;
  for (int i = 0; i < programs.count && wrong < programs.kMostWrong; ++i) {
    SeededChoices choices(cat(programs.seed, "network ", i));
    const Case c = random_network(choices);
    const std::string differs = network_disagreement(c);
    EXPECT_EQ(differs, "") << "network " << i << "\n" << c.program;
    wrong += !differs.empty();
  }
}

}  // namespace
}  // namespace moka::conformance
