// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <tuple>

#include "conformance/case_util.h"

namespace moka::conformance {
namespace {

const std::vector<Case>& cases() {
  static const std::vector<Case> all = load_cases(MOKA_GOLDEN_FOLDER);
  return all;
}

struct Param {
  const Case* c;
  Column column;
  std::string name;
};

void PrintTo(const Param& p, std::ostream* out) { *out << p.name; }

std::vector<Param> params() {
  std::vector<Param> out;
  std::set<std::string> taken;
  for (const Case& c : cases())
    for (const Column& column : columns()) {
      std::string name = column.name + "_" + c.op + "_" + c.name;
      for (char& ch : name)
        if (!std::isalnum(static_cast<unsigned char>(ch))) ch = '_';
      while (!taken.insert(name).second) name += "x";
      out.push_back({&c, column, name});
    }
  return out;
}

class Conformance : public testing::TestWithParam<Param> {};

TEST_P(Conformance, Matches) {
  const Case& c = *GetParam().c;
  const Column& column = GetParam().column;
  const auto got = column.run(c);
  ASSERT_TRUE(got.ok()) << got.error().to_string() << "\n" << c.program;
  ASSERT_EQ(got.value().size(), c.outputs.size()) << c.program;
  for (size_t i = 0; i < c.outputs.size(); ++i) {
    const Named& expected = c.outputs[i];
    const std::string differs = difference(got.value()[i], expected.tensor,
                                           std::max(column.least_tolerance, tolerance_of(c, expected.tensor.dtype())));
    EXPECT_EQ(differs, "") << "output '" << expected.name << "'\n" << c.program;
  }
  if (!column.exact) return;
  const auto reference = columns()[0].run(c);
  ASSERT_TRUE(reference.ok()) << reference.error().to_string();
  for (size_t i = 0; i < c.outputs.size(); ++i)
    EXPECT_TRUE(got.value()[i] == reference.value()[i])
        << "output '" << c.outputs[i].name << "' has other bits than the reference column";
}

INSTANTIATE_TEST_SUITE_P(Golden, Conformance, testing::ValuesIn(params()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace moka::conformance
