// SPDX-License-Identifier: Apache-2.0
#include "moka/verify.h"

#include <gtest/gtest.h>

#include <cmath>
#include <stdexcept>

#include "moka/difference.h"

namespace moka {
namespace {

Model scaled(const std::string& input, const std::string& factor) {
  return Model::from_mil("program(1.3)\n{\n  func main<ios18>(tensor<fp32, [1, 4]> " + input +
                         ") {\n    tensor<fp32, [1, 4]> y = mul(x = " + input + ", y = fp32(" + factor +
                         "))[name = string(\"y\")];\n  } -> (y);\n}\n");
}

MultiArray row(std::vector<float> values) { return MultiArray::of(values, {1, static_cast<int64_t>(values.size())}); }

/// Computes with a function of one item.
class Computed : public Reference {
 public:
  using Compute = std::function<Features(const Features&)>;
  Computed(const Model& model, Compute compute) : function_(model.function()), compute_(std::move(compute)) {}
  std::string name() const override { return "computed"; }
  const std::vector<FeatureDescription>& inputs() const override { return function_.inputs; }
  const std::vector<FeatureDescription>& outputs() const override { return function_.outputs; }
  std::vector<Features> predict(const std::vector<Features>& items,
                                const std::function<void(size_t)>& advance) override {
    std::vector<Features> out;
    for (const Features& item : items) {
      out.push_back(compute_(item));
      advance(out.size());
    }
    return out;
  }

 private:
  FunctionDescription function_;
  Compute compute_;
};

std::string message_of(const std::function<void()>& act) {
  try {
    act();
  } catch (const Exception& e) {
    EXPECT_EQ(e.kind(), ErrorKind::invalid_argument);
    return e.what();
  }
  return "no exception";
}

TEST(Verify, AnotherModel) {
  const Model model = scaled("x", "2");
  const auto other = model_reference(scaled("a", "2"), "other");
  std::vector<std::string> told;
  VerifyOptions options;
  options.runs = 2;
  options.progress = [&](const VerifyProgress& p) {
    told.push_back(std::string(p.side) + " " + std::to_string(p.done) + "/" + std::to_string(p.total));
  };
  const Verification same = verify_model(model, *other, options);
  EXPECT_TRUE(same.passed());
  EXPECT_EQ(same.reference, "other");
  EXPECT_EQ(same.min_snr, 80);
  EXPECT_TRUE(same.is_default);
  ASSERT_EQ(same.shapes.size(), 1u);
  EXPECT_EQ(same.shapes[0].predictions, 2);
  EXPECT_EQ(told, (std::vector<std::string>{"model 0/2", "model 1/2", "model 2/2", "reference 0/2", "reference 1/2",
                                            "reference 2/2"}));
  for (const std::string side : {"model", "reference"}) {
    options.progress = [&](const VerifyProgress& p) {
      if (p.side == side) throw Exception(ErrorKind::data, "a mistake of " + side);
    };
    try {
      verify_model(model, *other, options);
      ADD_FAILURE() << side;
    } catch (const Exception& e) {
      EXPECT_EQ(e.what(), "a mistake of " + side);
    }
  }
  const Verification unlike = verify_model(model, *model_reference(scaled("x", "4"), "twice"));
  ASSERT_EQ(unlike.failures.size(), 1u);
  EXPECT_NEAR(unlike.shapes[0].outputs[0].snr(), 20 * std::log10(2), 1e-9);
  EXPECT_EQ(unlike.failures[0].substr(0, 48), "output 'y': 6.0 dB, expected at least 80.0 dB (x");
}

TEST(Verify, ARecording) {
  const Model model = scaled("x", "2");
  const Recording recording{"numbers", {{{"x", row({1, 2, 3, 4})}}}, {{{"y", row({2, 4, 6, 9})}}}};
  VerifyOptions options;
  options.max_error = 0.5;
  const auto reference = recorded_reference(recording, model.function());
  const Verification found = verify_model(model, *reference, options);
  EXPECT_EQ(found.shapes[0].outputs[0].absolute, 1);
  ASSERT_EQ(found.failures.size(), 2u);
  EXPECT_EQ(found.failures[1], "output 'y': the largest error is 1, allowed is 0.5");
  options.inputs.assign(2, {{"x", row({1, 2, 3, 4})}});
  EXPECT_EQ(
      message_of([&] { verify_model(model, *reference, options); }),
      "numbers: it has the answers of 1 prediction, but 2 are compared; give the inputs that they were computed from");
  EXPECT_EQ(message_of([&] {
              recorded_reference({"none", {}, {}}, model.function());
            }),
            "none: no outputs; names that are not inputs of the model are outputs");
}

TEST(Verify, WhatAReferenceThrows) {
  const Model model = scaled("x", "2");
  Computed refuses(model, [](const Features&) -> Features { throw Exception(ErrorKind::io, "gone"); });
  const Verification found = verify_model(model, refuses);
  EXPECT_EQ(found.shapes[0].fault, "the reference: gone");
  EXPECT_FALSE(found.passed());
  Computed ends(model, [](const Features&) -> Features { throw std::logic_error("a mistake"); });
  EXPECT_THROW(verify_model(model, ends), std::logic_error);
}

TEST(Verify, Mistakes) {
  const Model model = scaled("x", "2");
  const auto other = model_reference(scaled("a", "2"), "other");
  const auto with = [&](const auto& change) {
    VerifyOptions options;
    change(options);
    return message_of([&] { verify_model(model, *other, options); });
  };
  EXPECT_EQ(with([](auto& o) { o.map = {{"q", "a"}}; }), "map of 'q': the model has no input or output of that name");
  EXPECT_EQ(with([](auto& o) { o.map = {{"x", "b"}}; }), "map of 'x': the reference has no input 'b'; it has 'a'");
  EXPECT_EQ(with([](auto& o) {
              o.ranges = {{"q", {0, 1}}};
            }),
            "range of 'q': the model has no array input of that name; it takes 'x'");
  // Nothing that is compared would pass.
  for (const int64_t runs : {0, -1}) {
    const std::string refusal = "runs: expected at least 1, got " + std::to_string(runs);
    EXPECT_EQ(with([&](auto& o) { o.runs = runs; }), refusal);
    DiffOptions how;
    how.runs = runs;
    EXPECT_EQ(message_of([&] { diff_values(model, model, {}, how); }), refusal);
    how.inputs.push_back({{"x", row({1, 2, 3, 4})}});
    EXPECT_EQ(diff_values(model, model, {}, how).predictions, 1);
  }
}

TEST(Difference, TheFirstValue) {
  const Model a = scaled("x", "2"), b = scaled("x", "3");
  const Features inputs{{"x", row({1, -2, 3, 4})}};
  const ValueComparison found = compare_values(a, inputs, b, inputs);
  ASSERT_TRUE(found.first);
  const ComparedValue& first = found.values[*found.first];
  EXPECT_EQ(first.value, "y");
  EXPECT_EQ(first.difference, 4);
  EXPECT_EQ(first.relative, 4.0 / 12);
  EXPECT_EQ(first.facts.least, -4);
  EXPECT_EQ(first.other_facts.most, 12);
}

}  // namespace
}  // namespace moka
