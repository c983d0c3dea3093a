// SPDX-License-Identifier: Apache-2.0
#include <set>
#include <thread>

#include "api/api_util.h"
#include "models_folder.h"

namespace moka::test {
namespace {

/// Two branches over one product. `a` and `b` need one branch each, `both` needs both.
Model two_branches(int threads = 1, bool optimize = true) {
  ModelConfiguration c;
  c.threads = threads;
  c.optimize = optimize;
  return Model::from_mil(program("tensor<fp32, [2, 3]> x",
                                 R"(tensor<fp32, [2, 3]> shared = mul(x = x, y = x)[name = string("shared")];
    tensor<fp32, [2, 3]> a = exp(x = shared)[name = string("for_a")];
    tensor<fp32, [2, 3]> b = sqrt(x = shared)[name = string("for_b")];
    tensor<fp32, [2, 3]> both = add(x = a, y = b)[name = string("for_both")];)",
                                 "a, b, both"),
                         c);
}

std::set<std::string> run_by(const Model& m, const std::vector<std::string>& outputs) {
  std::set<std::string> names;
  for (const PlannedOperation& p : m.compute_plan({}, 0, outputs).operations) {
    names.insert(p.name);
    names.insert(p.fused.begin(), p.fused.end());
  }
  return names;
}

TEST(Outputs, OnlyWhatIsWantedRuns) {
  for (bool optimize : {true, false}) {
    const Model m = two_branches(1, optimize);
    EXPECT_EQ(run_by(m, {}), (std::set<std::string>{"shared", "for_a", "for_b", "for_both"}));
    EXPECT_EQ(run_by(m, {"a"}), (std::set<std::string>{"shared", "for_a"}));
    EXPECT_EQ(run_by(m, {"b"}), (std::set<std::string>{"shared", "for_b"}));
    EXPECT_EQ(run_by(m, {"b", "a"}), (std::set<std::string>{"shared", "for_a", "for_b"}));
    std::set<std::string> seen;
    PredictionOptions options;
    options.outputs = {"a"};
    m.intermediates(
        random_inputs(m.function()),
        [&](std::string_view op, std::string_view, const MultiArray&) { seen.emplace(op); }, options);
    EXPECT_FALSE(seen.contains("for_b"));
  }
}

TEST(Outputs, TheValuesAreThoseOfAll) {
  const Model m = two_branches();
  const Features in = random_inputs(m.function()), all = m.predict(in);
  for (const std::vector<std::string>& wanted :
       {std::vector<std::string>{"a"}, {"b"}, {"both"}, {"both", "a"}, {"a", "b", "both"}, {"a", "a"}}) {
    PredictionOptions options;
    options.outputs = wanted;
    const Features some = m.predict(in, options);
    EXPECT_EQ(some.size(), std::set<std::string>(wanted.begin(), wanted.end()).size());
    for (const std::string& name : wanted) EXPECT_EQ(values(some.array(name)), values(all.array(name))) << name;
    Features backed{{wanted[0], MultiArray(DataType::float32, {2, 3})}};
    const void* room = backed.array(wanted[0]).data();
    m.predict(in, backed, options);
    EXPECT_EQ(backed.array(wanted[0]).data(), room);
    EXPECT_EQ(values(backed.array(wanted[0])), values(all.array(wanted[0])));
  }
}

TEST(Outputs, UnknownNamesAreRefused) {
  const Model m = two_branches();
  PredictionOptions options;
  options.outputs = {"a", "c"};
  expect_error(ErrorKind::invalid_argument, {"output 'c'", "'a', 'b', 'both'"},
               [&] { m.predict(random_inputs(m.function()), options); });
}

/// The new value of a state is not an output.
TEST(Outputs, StatesAreWrittenWhoeverIsWanted) {
  const Model m = Model::from_mil(program("state<tensor<fp32, [2]>> kept, tensor<fp32, [2]> x",
                                          R"(tensor<fp32, [2]> old = read_state(input = kept)[name = string("old")];
    tensor<fp32, [2]> sum = add(x = old, y = x)[name = string("sum")];
    tensor<fp32, [2]> now = coreml_update_state(state = kept, value = sum)[name = string("now")];
    tensor<fp32, [2]> other = exp(x = x)[name = string("other")];)",
                                          "now, other"));
  State s = m.new_state();
  PredictionOptions options{&s, {"other"}};
  const Features in{{"x", MultiArray::of(std::vector<float>{1, 2}, {2})}};
  for (int i = 0; i < 3; i++) EXPECT_EQ(m.predict(in, options).size(), 1u);
  EXPECT_EQ(values(s.read("kept")), (std::vector<double>{3, 6}));
  State copied = s.copy();
  m.predict(in, options);
  EXPECT_EQ(values(copied.read("kept")), (std::vector<double>{3, 6}));
  EXPECT_EQ(values(s.read("kept")), (std::vector<double>{4, 8}));
}

/// More selections of outputs than are kept, from several threads.
TEST(Outputs, ManySelectionsAtOnce) {
  std::string body, names;
  for (int i = 0; i < 5; i++) {
    const std::string n = std::to_string(i);
    body += "tensor<fp32, [2]> y" + n + " = add(x = x, y = fp32(" + n + "))[name = string(\"op" + n + "\")];\n";
    names += (i == 0 ? "y" : ", y") + n;
  }
  const Model m = Model::from_mil(program("tensor<fp32, [2]> x", body, names));
  const Features in{{"x", MultiArray::of(std::vector<float>{1, 2}, {2})}};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; t++)
    threads.emplace_back([&, t] {
      for (int n = 1; n < 31; n++) {
        const int mask = (n * 7 + t) % 31 + 1;
        PredictionOptions options;
        for (int i = 0; i < 5; i++)
          if (mask >> i & 1) options.outputs.push_back("y" + std::to_string(i));
        const Features out = m.predict(in, options);
        EXPECT_EQ(out.size(), options.outputs.size());
        for (int i = 0; i < 5; i++)
          if (mask >> i & 1) {
            EXPECT_EQ(out.array("y" + std::to_string(i)).at(0), 1 + i);
          }
      }
    });
  for (auto& t : threads) t.join();
}

TEST(Outputs, RealModelsShareTheirPackedWeights) {
  MOKA_NEEDS_MODELS(folder);
  const Model m = Model::load((*folder / "basic_pitch/nmp.mlpackage").string());
  const Features in = random_inputs(m.function(), 3), all = m.predict(in);
  const size_t packed = m.compute_plan(in).packed_bytes;
  for (const FeatureDescription& f : m.function().outputs) {
    PredictionOptions options;
    options.outputs = {f.name};
    EXPECT_EQ(values(m.predict(in, options).array(f.name)), values(all.array(f.name))) << f.name;
    const ComputePlan plan = m.compute_plan(in, 0, options.outputs);
    EXPECT_LE(plan.operations.size(), m.compute_plan(in).operations.size());
    EXPECT_LT(plan.packed_bytes, packed / 4) << f.name;
  }
}

}  // namespace
}  // namespace moka::test
