// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <map>
#include <string>

#include "conformance/grid_util.h"

namespace moka::conformance {
namespace {

using namespace ir;

constexpr int kCandidates = 60;  // candidates per version
constexpr int kAttempts = 120;   // attempts to correct a candidate
constexpr int kEnough = 12;      // accepted programs per version

/// Accepted programs of one operation.
std::map<std::string, int>& accepted() {
  static std::map<std::string, int> counts;
  return counts;
}

/// Why an operation is skipped; empty: it is tested.
std::string left_out(const OpVersion& v) {
  if (!v.reference) return "no reference kernel: run by the executor, or a constant";
  if (has(v.traits, Trait::random)) return "each draw is another one";
  static const std::map<std::string, std::string> kOthers = {
      {"make_list", "its only result is a list"},
      {"list_write", "its only result is a list"},
      {"list_scatter", "its only result is a list"},
      {"write_state", "it has no result"},
  };
  const auto it = kOthers.find(v.def->name);
  return it == kOthers.end() ? "" : it->second;
}

std::vector<const OpVersion*> versions() {
  std::vector<const OpVersion*> out;
  for (const OpDef& def : ops::table().defs())
    for (const OpVersion& v : def.versions)
      if (left_out(v).empty()) out.push_back(&v);
  return out;
}

std::string name_of(const OpVersion& v) { return cat(v.def->name, "_", to_string(v.since)); }

class Grid : public testing::TestWithParam<const OpVersion*> {};

/// Random programs of the operation give the same result in every column.
TEST_P(Grid, ColumnsAgree) {
  const OpVersion& v = *GetParam();
  const RandomPrograms programs(kCandidates);
  int made = 0, ran = 0, wrong = 0;
  for (int i = 0; i < programs.count && (ran < kEnough || programs.more) && wrong < programs.kMostWrong; ++i) {
    SeededChoices choices(cat(programs.seed, name_of(v), " ", i));
    const auto c = random_case(v, choices, kAttempts);
    if (!c.ok()) {
      EXPECT_NE(c.error().code(), ErrorCode::internal) << c.error().to_string();
      continue;
    }
    ++made;
    bool failed = false;
    const std::string differs = disagreement(v, *c, failed);
    EXPECT_EQ(differs, "") << "candidate " << i << "\n" << c->program;
    wrong += !differs.empty();
    ran += !failed;
  }
  accepted()[v.def->name] += ran;
  RecordProperty("programs", made);
}

INSTANTIATE_TEST_SUITE_P(Operations, Grid, testing::ValuesIn(versions()),
                         [](const auto& info) { return name_of(*info.param); });

TEST(OperationTable, EveryEntryIsFoundByTheNameOfItsOperation) {
  const auto entries = ops::all();
  const auto defs = ops::table().defs();
  ASSERT_EQ(entries.size(), defs.size());
  for (size_t i = 0; i < entries.size(); i++) {
    EXPECT_EQ(entries[i].name, defs[i].name);
    EXPECT_EQ(ops::table().find(defs[i].name), &defs[i]);
    for (const OpVersion& v : defs[i].versions) EXPECT_EQ(v.def, &defs[i]);
  }
  EXPECT_EQ(ops::table().find(""), nullptr);
  EXPECT_EQ(ops::table().find("zzz"), nullptr);
  EXPECT_EQ(ops::table().find("conv_"), nullptr);
}

/// A quotient that is 50.5 in float16 and 50.51 in float32, where float16 is computed.
TEST(Columns, TiesOfFloat16) {
  Case c;
  c.program = R"(program(1.0)
{
    func main<ios17>(tensor<fp16, [1]> x) {
            tensor<uint8, [1]> y = quantize(input = x, output_dtype = string("uint8"), scale = fp16(-0x1.28p-5))[name = string("y")];
        } -> (y);
})";
  Tensor x = *Tensor::zeros(DType::fp16, Shape{1});
  store_f64(x.view(), 0, -1.8251953125);
  c.inputs = {{"x", x}};
  const auto declared = columns()[0].run(c), widened = widened_reference(c);
  ASSERT_TRUE(declared.ok() && widened.ok());
  EXPECT_EQ(load_i64((*declared)[0].view(), 0), 50);
  EXPECT_EQ(load_i64((*widened)[0].view(), 0), 51);
  bool failed = false;
  EXPECT_EQ(disagreement(**ops::table().resolve("quantize", Opset::ios17), c, failed), "");
}

/// Terms of thousands whose sum is 1: their order decides the fifth digit. A difference that no order explains still
/// counts.
TEST(Columns, TermsThatCancel) {
  Case c;
  c.program = R"(program(1.0)
{
    func main<ios17>(tensor<fp32, [1, 6]> x) {
            tensor<fp32, [1, 1]> y = linear(weight = tensor<fp32, [1, 6]>([[0x1.ffcp+0, -0x1p+1, 0x1.23p-1, 0x1.ffcp+0, -0x1p+1, 0x1.1p-3]]), x = x)[name = string("y")];
        } -> (y);
})";
  Tensor x = *Tensor::zeros(DType::fp32, Shape{1, 6});
  const float values[] = {1000, 999.5f, 0.3f, -1000, -999.75f, 1.7f};
  std::copy_n(values, 6, x.mut<float>().begin());
  c.inputs = {{"x", x}};
  bool failed = false;
  EXPECT_EQ(disagreement(**ops::table().resolve("linear", Opset::ios17), c, failed), "");
}

/// Runs last, because environments are torn down after all tests.
class Coverage : public testing::Environment {
 public:
  void TearDown() override {
    size_t all = 0, reached = 0;
    std::string below;
    for (const auto& [op, count] : accepted()) {
      ++all;
      if (count >= 5)
        ++reached;
      else
        below += cat(" ", op, "(", count, ")");
    }
    // A filter selected some tests, or fewer programs were asked for.
    if (all < 100 || RandomPrograms(kCandidates).count < kCandidates) return;
    std::printf("%zu of %zu operations have at least 5 random programs; below:%s\n", reached, all, below.c_str());
    EXPECT_EQ(reached, all);
  }
};
const auto* const kCoverage = testing::AddGlobalTestEnvironment(new Coverage);

}  // namespace
}  // namespace moka::conformance
