// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "conformance/gradient_util.h"
#include "conformance/network_util.h"
#include "ir/text_printer.h"

namespace moka::conformance {
namespace {

constexpr int kDifferentiated = 300, kColumnsOfGradients = 100;

/// The gradients of all cases in double precision, against central differences.
TEST(Gradients, CentralDifferences) {
  std::map<std::string, Compared> by_op;
  for (const Case& c : load_cases(MOKA_GOLDEN_FOLDER)) {
    const auto wrong = gradient_error(c, 12, {}, by_op[c.op]);
    if (wrong.ok())
      EXPECT_EQ(*wrong, "") << c.op << " " << c.name << "\n" << c.program;
    else
      EXPECT_EQ(wrong.error().code(), ErrorCode::unsupported)
          << c.op << " " << c.name << ": " << wrong.error().to_string();
  }
  for (const ir::OpDef& d : ops::table().defs()) {
    const auto it = by_op.find(d.name);
    if (!d.gradient || d.is_step() || it == by_op.end()) continue;
    EXPECT_GT(it->second.elements, 2 * it->second.steps) << d.name;
  }
}

/// The same for random networks, whose weights share values, branches and loops.
TEST(Gradients, CentralDifferencesOfNetworks) {
  const RandomPrograms programs(kDifferentiated);
  constexpr GradientBound kBound{1e-6, 1e-8};
  Compared compared;
  int wrong = 0;
  for (int i = 0; i < programs.count && wrong < programs.kMostWrong; ++i) {
    SeededChoices choices(cat(programs.seed, "gradient ", i));
    const Case c = random_network(choices);
    const auto differs = gradient_error(c, 2, kBound, compared);
    const std::string text = differs.ok() ? *differs : differs.error().to_string();
    EXPECT_EQ(text, "") << "network " << i << "\n" << c.program;
    wrong += !text.empty();
  }
  EXPECT_GT(compared.elements, static_cast<size_t>(3 * programs.count));
  EXPECT_GT(compared.elements, 50 * compared.steps);
}

/// The gradients of random networks with parameters are the same in every column, within the rounding of float32.
TEST(Gradients, ColumnsOfNetworksAgree) {
  const RandomPrograms programs(kColumnsOfGradients);
  int wrong = 0, ran = 0;
  for (int i = 0; i < programs.count && wrong < programs.kMostWrong; ++i) {
    SeededChoices choices(cat(programs.seed, "gradient column ", i));
    Case c = random_network(choices);
    // Gradients are written in the newest opset, which is that of the whole text. Passes take rounded numbers of
    // float16 for those that they stand for.
    if (c.program.find("main<ios18>") == std::string::npos || c.program.find("fp16") != std::string::npos) continue;
    const auto d = differentiated(c, true, Weights::parameters);
    ASSERT_TRUE(d.ok()) << d.error().to_string() << "\n" << c.program;
    if (!d->has_value()) continue;
    const ir::Function& f = *(*d)->program.functions[0];
    c.program = ir::print_text((*d)->program);
    c.inputs.clear();
    for (size_t k = 0; k < (*d)->inputs.size(); ++k)
      c.inputs.push_back({f.body().inputs()[k]->name, (*d)->inputs[k].tensor});
    const std::string differs = network_disagreement(c);
    EXPECT_EQ(differs, "") << "network " << i << "\n" << c.program;
    wrong += !differs.empty();
    ran++;
  }
  EXPECT_GT(ran, programs.count / 40);
}

}  // namespace
}  // namespace moka::conformance
