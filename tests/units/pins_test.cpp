// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <functional>

#include "units/units_util.h"
#include "units/vulkan_driver.h"

namespace moka::test {
namespace {

TEST(Pins, AreParsedLineByLine) {
  const auto pins = parse_pins("# all\n*=cpu\n\n  type:conv = gpu # but these\nscope:enc=reference\n");
  ASSERT_EQ(pins.size(), 3u);
  EXPECT_EQ(pins[1].operations, "type:conv");
  EXPECT_EQ(pins[1].device, "gpu");
  EXPECT_EQ(pins[2].operations, "scope:enc");
  expect_error(ErrorKind::invalid_argument, {"line 2", "expected OPERATIONS=DEVICE", "'conv'"},
               [] { parse_pins("a=cpu\nconv\n"); });
  expect_error(ErrorKind::invalid_argument, {"line 1", "'=cpu'"}, [] { parse_pins("=cpu"); });
}

TEST(Pins, ByNameTypeAndScope) {
  EXPECT_EQ(devices_of(load_chain({{"enc_b", "reference"}}).compute_plan()),
            "enc_a:cpu enc_b:reference encoder:cpu dec_a:cpu dec_b:cpu");
  EXPECT_EQ(devices_of(load_chain({{"enc_*", "reference"}}).compute_plan()),
            "enc_a:reference enc_b:reference encoder:cpu dec_a:cpu dec_b:cpu");
  EXPECT_EQ(devices_of(load_chain({{"type:exp", "reference"}}).compute_plan()),
            "enc_a:reference enc_b:cpu encoder:cpu dec_a:reference dec_b:cpu");
  // A letter after "enc" does not end it, so "encoder" is another scope.
  EXPECT_EQ(devices_of(load_chain({{"scope:enc", "reference"}}).compute_plan()),
            "enc_a:reference enc_b:reference encoder:cpu dec_a:cpu dec_b:cpu");
}

TEST(Pins, TheLastThatFitsCounts) {
  EXPECT_EQ(devices_of(load_chain({{"*", "reference"}, {"*_b", "cpu"}}).compute_plan()),
            "enc_a:reference enc_b:cpu encoder:reference dec_a:reference dec_b:cpu");
}

TEST(Pins, BringADeviceWithAMemoryOfItsOwn) {
  const Model m = load_chain({{"dec_*", "simulator"}});
  const ComputePlan plan = m.compute_plan();
  EXPECT_NE(devices_of(plan).find("dec_a:simulator dec_b:simulator"), std::string::npos) << devices_of(plan);
  const Features in = m.random_inputs(), expected = load_chain({}).predict(in), got = m.predict(in);
  const auto a = values(expected.array("dec_b")), b = values(got.array("dec_b"));
  for (size_t i = 0; i < a.size(); i++) EXPECT_NEAR(a[i], b[i], 1e-4 * std::max(1.0, std::fabs(a[i])));
}

TEST(Pins, BringSeveralDevicesOfOneKind) {
  const Model m = load_chain({{"enc_*", "simulator"}, {"encoder", "simulator"}, {"dec_*", "simulator1"}});
  const ComputePlan plan = m.compute_plan();
  EXPECT_EQ(devices_of(plan), "enc_a:simulator enc_b:simulator encoder:simulator dec_a:simulator1 dec_b:simulator1");
  ASSERT_EQ(plan.regions.size(), 2u);
  EXPECT_EQ(plan.regions[0].device, "simulator");
  EXPECT_EQ(plan.regions[1].device, "simulator1");
  std::string crossings;
  for (const PlannedOperation& o : plan.operations)
    if (o.type == "transfer" && o.note.find(" from simulator to simulator1") != std::string::npos)
      crossings += o.name + " ";
  EXPECT_EQ(crossings, "encoder ");
  ModelConfiguration reference;
  reference.device = "reference";
  const Features in = m.random_inputs(), expected = load_chain({}, reference).predict(in), got = m.predict(in);
  for (const char* name : {"enc_a", "enc_b", "encoder", "dec_a", "dec_b"})
    EXPECT_EQ(values(got.array(name)), values(expected.array(name))) << name;
}

TEST(Pins, ThatAreRefusedAreRemarksOrErrors) {
  const std::string text =
      program("tensor<fp32, [8]> x",
              "tensor<fp32, [8]> noise = random_normal(shape = tensor<int32, [1]>([8]))[name = "
              "string(\"noise\")];\ntensor<fp32, [8]> y = add(x = noise, y = x)[name = string(\"y\")];\n",
              "y");
  ModelConfiguration c;
  c.pins = {{"*", "simulator"}};
  EXPECT_EQ(
      remark_of(Model::from_mil(text, c).compute_plan(), "pins"),
      "device 'simulator' refuses 1 operation that is pinned to it, 'noise' (random_normal): simulator.reference: "
      "state that the host keeps");
  c.strict = true;
  expect_error(
      ErrorKind::unsupported,
      {"'noise' (random_normal) is pinned to device 'simulator', which refuses it", "state that the host keeps"},
      [&] { Model::from_mil(text, c); });
}

/// What the one pin of a configuration matches, or the error of loading with it.
struct Used {
  size_t matched = 0;
  std::string note, devices;
};

Used used(const std::function<Model(const ModelConfiguration&)>& load, const std::string& operations,
          bool strict = false) {
  ModelConfiguration c;
  c.pins = {{operations, "reference"}};
  c.strict = strict;
  try {
    const ComputePlan plan = load(c).compute_plan();
    EXPECT_EQ(plan.pins.size(), 1u);
    EXPECT_EQ(plan.pins[0].operations, operations);
    EXPECT_EQ(plan.pins[0].device, "reference");
    EXPECT_EQ(remark_of(plan, "pins"), plan.pins[0].note);
    return {plan.pins[0].matched, plan.pins[0].note, devices_of(plan)};
  } catch (const Exception& e) {
    EXPECT_EQ(e.kind(), ErrorKind::not_found);
    return {0, e.what(), {}};
  }
}

Model chain(const ModelConfiguration& c) { return load_chain(c.pins, c); }

/// A neural network: convolution "edges", activation "positive", pooling "mean", innerProduct "scores", softmax
/// "softmax".
Model shapes(const ModelConfiguration& c) {
  return Model::load(std::string(MOKA_GOLDEN) + "/../../examples/models/shapes.mlmodel", c);
}

class PinsThatMatchNothing : public ::testing::Test {
 protected:
  void SetUp() override {
    set_warning_handler([this](const std::string& text) { warnings.push_back(text); });
  }
  void TearDown() override { set_warning_handler(nullptr); }
  std::vector<std::string> warnings;
};

TEST_F(PinsThatMatchNothing, AreErrorsIfStrictOrRemarks) {
  const std::string types = " The model has the types 'exp', 'sigmoid', 'tanh'";
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"zz", "pin 'zz=reference' matches no operation"},
      {"zz*", "pin 'zz*=reference' matches no operation"},
      {"enc_c", "pin 'enc_c=reference' matches no operation; did you mean 'enc_a'?"},
      {"scope:decoder", "pin 'scope:decoder=reference' matches no operation; did you mean 'scope:encoder'?"},
      {"sigmoid", "pin 'sigmoid=reference' matches no operation; did you mean 'type:sigmoid'?"},
      {"type:Sigmoid", "pin 'type:Sigmoid=reference' matches no operation; did you mean 'type:sigmoid'?" + types},
      {"type:tahn", "pin 'type:tahn=reference' matches no operation; did you mean 'type:tanh'?" + types},
      {"type:conv",
       "pin 'type:conv=reference' matches no operation; the model has the types 'exp', 'sigmoid', 'tanh'"}};
  for (const auto& [operations, text] : cases) {
    warnings.clear();
    EXPECT_EQ(used(chain, operations).note, text);
    EXPECT_EQ(warnings, std::vector<std::string>{text});
    EXPECT_EQ(used(chain, operations, true).note, text);
  }
  EXPECT_EQ(used(chain, "type:exp", true).matched, 2u);
  EXPECT_EQ(
      used(shapes, "type:inner_product", true).note,
      "pin 'type:inner_product=reference' matches no operation; did you mean 'type:innerProduct'? The model has "
      "the types 'activation', 'classify', 'convolution', 'innerProduct', 'mul', 'pooling', 'reshape', 'softmax'");
}

TEST_F(PinsThatMatchNothing, SayWhatBecameOfFusedAndFoldedOperations) {
  const std::string fused =
      " matches no operation of the optimized program: 'positive' was fused into 'edges', whose own pins count";
  for (const bool strict : {false, true}) {
    EXPECT_EQ(used(shapes, "type:activation", strict).note, "pin 'type:activation=reference'" + fused);
    EXPECT_EQ(used(shapes, "type:relu", strict).note, "pin 'type:relu=reference'" + fused);
  }
  const std::string text =
      program("tensor<fp32, [4]> x",
              "tensor<fp32, [4]> two = const()[name = string(\"two\"), val = tensor<fp32, [4]>([2, 2, 2, 2])];\n"
              "tensor<fp32, [4]> four = add(x = two, y = two)[name = string(\"four\")];\n"
              "tensor<fp32, [4]> y = pow(x = x, y = four)[name = string(\"y\")];\n",
              "y");
  const auto folded = [&](const ModelConfiguration& c) { return Model::from_mil(text, c); };
  EXPECT_EQ(
      used(folded, "four").note,
      "pin 'four=reference' matches no operation of the optimized program: 'four' was folded into constants, made "
      "part of another operation, or is not needed");
}

TEST(Pins, OfTypesAndNamesOfLayersMatchWhatLayersBecame) {
  const std::string edges = "edges:reference mean:cpu scores:cpu softmax:cpu classify:reference";
  EXPECT_EQ(used(shapes, "type:convolution", true).devices, edges);
  EXPECT_EQ(used(shapes, "type:conv", true).devices, edges);
  EXPECT_EQ(used(shapes, "edges", true).devices, edges);
  const std::string scores = "edges:cpu mean:cpu scores:reference softmax:cpu classify:reference";
  EXPECT_EQ(used(shapes, "type:innerProduct", true).devices, scores);
  EXPECT_EQ(used(shapes, "type:linear", true).devices, scores);
  EXPECT_EQ(used(shapes, "type:pooling", true).devices,
            "edges:cpu mean:reference scores:cpu softmax:cpu classify:reference");
  // A fused layer takes a pin of its name with it.
  const Used positive = used(shapes, "positive", true);
  EXPECT_EQ(positive.devices, edges);
  EXPECT_EQ(positive.matched, 1u);
  EXPECT_EQ(positive.note, "pin 'positive=reference': 'positive' was fused into 'edges', which goes with it");
}

TEST(Pins, OfATypeMatchWhatPassesMadeOfIt) {
  const auto einsum = [](const ModelConfiguration& c) {
    return Model::from_mil(
        program("tensor<fp32, [2, 3]> a, tensor<fp32, [4, 3]> b",
                "tensor<fp32, [2, 4]> y = einsum(equation = string(\"ij,kj->ik\"), values = (a, b))[name = "
                "string(\"y\")];\n",
                "y"),
        c);
  };
  for (const char* operations : {"type:einsum", "type:matmul", "y"})
    EXPECT_EQ(used(einsum, operations, true).devices, "y_product:reference") << operations;
}

TEST(Pins, ThatLaterOnesOverruleSayFor) {
  const ComputePlan plan = load_chain({{"*", "reference"}, {"enc_*", "cpu"}}).compute_plan();
  ASSERT_EQ(plan.pins.size(), 2u);
  EXPECT_EQ(plan.pins[0].matched, 5u);
  EXPECT_EQ(plan.pins[0].decided, 3u);
  EXPECT_EQ(plan.pins[1].matched, 2u);
  EXPECT_EQ(plan.pins[1].decided, 2u);
}

TEST(Pins, NameDevicesThatExist) {
  expect_error(ErrorKind::not_found, {"pin 'enc_a'", "expected one of", "'cpu'", "'neuralEngine'", "got 'tpu'"}, [] {
    load_chain({{"enc_a", "tpu"}});
  });
  if (has_vulkan_driver())
    expect_error(ErrorKind::not_found, {"'vulkan'", "'gpu'"}, [] { load_chain({{"enc_a", "tpu"}}); });
}

TEST(Pins, OfAllOperationsLeaveAViewWhereItsInputIs) {
  // The device refuses random_normal, so its reshape stays on the host.
  const Model m = Model::from_mil(
      program("tensor<fp32, [8]> x",
              "tensor<fp32, [8]> n = random_normal(shape = tensor<int32, [1]>([8]))[name = string(\"n\")];\n"
              "tensor<fp32, [2, 4]> y = reshape(x = n, shape = tensor<int32, [2]>([2, 4]))[name = string(\"y\")];\n"
              "tensor<fp32, [8]> z = exp(x = x)[name = string(\"z\")];\n",
              "y, z"),
      [] {
        ModelConfiguration c;
        c.device = "simulator";
        return c;
      }());
  const ComputePlan plan = m.compute_plan();
  ASSERT_EQ(plan.regions.size(), 1u);
  EXPECT_EQ(plan.regions[0].operations, 1u);
  EXPECT_EQ(plan.regions[0].upload_bytes, 32u);
}

}  // namespace
}  // namespace moka::test
