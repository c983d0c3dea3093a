#include <cmath>

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

TEST(Pins, ThatNameNothing) {
  expect_error(ErrorKind::not_found, {"operation 'zz', pinned to device 'cpu', is not in the optimized program"}, [] {
    load_chain({{"zz", "cpu"}});
  });
  EXPECT_EQ(remark_of(load_chain({{"zz*", "cpu"}}).compute_plan(), "devices"),
            "'zz*', pinned to device 'cpu', names no operation");
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
