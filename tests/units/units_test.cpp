// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <cstdlib>
#include <filesystem>

#include "api/internal.h"
#include "kernel/device.h"
#include "moka/rates.h"
#include "units/units_util.h"
#include "units/vulkan_driver.h"

namespace moka::test {
namespace {

TEST(Units, CpuOnlyNeverUsesAnotherUnit) {
  ModelConfiguration c;
  c.compute_units = ComputeUnits::cpu_only;
  expect_error(ErrorKind::not_found, {"pin 'enc_a'", "device 'simulator' is not among the compute units"}, [&] {
    load_chain({{"enc_a", "simulator"}}, c);
  });
  for (const PlannedOperation& o : load_chain({}, c).compute_plan().operations)
    for (const UnitBid& b : o.bids) EXPECT_EQ(b.unit, "cpu");
}

TEST(Units, CpuAndGpuAsksTheGpuOrSaysWhyThereIsNone) {
  ModelConfiguration c;
  c.compute_units = ComputeUnits::cpu_and_gpu;
  c.rates = "off";
  const ComputePlan plan = load_chain({}, c).compute_plan();
  bool is_asked = false;
  for (const PlannedOperation& o : plan.operations)
    for (const UnitBid& b : o.bids) is_asked |= b.unit == "gpu";
  const std::string remark = remark_of(plan, "devices");
  EXPECT_NE(is_asked, remark.starts_with("device 'vulkan' is not used: no GPU") ||
                          remark.ends_with(" is a software driver, which computes on the CPU"))
      << remark;
}

TEST(Units, WithoutADriverANamedGpuLeavesEverythingToTheCpu) {
  ModelConfiguration c;
  c.device = "vulkan";
  c.rates = "off";
  const std::string text =
      program("tensor<fp32, [2, 4]> x",
              "tensor<fp32, [2, 4]> y = exp(x = x)[name = string(\"y\")];\n"
              "tensor<fp32, [8]> z = reshape(x = y, shape = tensor<int32, [1]>([8]))[name = string(\"z\")];\n",
              "z");
  const Model m = Model::from_mil(text, c);
  const ComputePlan plan = m.compute_plan();
  const std::string remark = remark_of(plan, "devices");
  const Features in{{"x", counted({2, 4}, 1)}};
  EXPECT_NEAR(values(m.predict(in).array("z"))[4], 2.7182818, 1e-5);
  if (!remark.starts_with("device 'vulkan' is not used: no GPU")) return;
  EXPECT_EQ(devices_of(plan), "y:cpu");
  EXPECT_TRUE(plan.regions.empty());
  c.strict = true;
  expect_error(ErrorKind::unsupported, {"device 'vulkan' is not used: no GPU"}, [&] { Model::from_mil(text, c); });
}

TEST(Units, WithoutADriverInANewProcess) {
  // The loader searches for drivers only once, and finds none if these variables name no file.
  const std::string command = cat("VK_ICD_FILENAMES=/nonexistent VK_DRIVER_FILES=/nonexistent ",
                                  std::filesystem::read_symlink("/proc/self/exe").string(),
                                  " --gtest_filter=Units.WithoutADriverANamedGpu* >/dev/null 2>&1");
  EXPECT_EQ(std::system(command.c_str()), 0);
}

/// The devices in addition to a GPU, in the order in which they are asked, and the remarks on absent ones.
std::pair<std::string, std::vector<std::string>> asked(const Gpu& gpu, const ModelConfiguration& c) {
  std::vector<const kernel::Device*> all;
  for (const kernel::Device* d : api::all_devices())
    if (d->name() != "vulkan") all.push_back(d);
  all.push_back(&gpu);
  const auto found = api::devices_for(c, all);
  if (!found.ok()) return {found.error().to_string(), {}};
  std::string names;
  for (const kernel::Device* d : found->list) names += cat(names.empty() ? "" : " ", d->name());
  return {names, found->remarks};
}

TEST(Units, AllAsksAGpuThatIsHardware) {
  using Answer = std::pair<std::string, std::vector<std::string>>;
  ModelConfiguration c;
  EXPECT_EQ(asked(Gpu(""), c), (Answer{"gpu0 cpu reference", {}}));
  c.compute_units = ComputeUnits::cpu_only;
  EXPECT_EQ(asked(Gpu(""), c), (Answer{"cpu reference", {}}));
  c.compute_units = ComputeUnits::cpu_and_neural_engine;
  EXPECT_EQ(asked(Gpu(""), c), (Answer{"neural_engine cpu reference", {}}));
}

/// Not the best card of its driver.
class OtherGpu final : public Gpu {
 public:
  OtherGpu() : Gpu("") {}
  std::string_view name() const override { return "gpu1"; }
  int rank() const override { return -1; }
};

TEST(Units, FurtherCardsOfADriverAreNamed) {
  const OtherGpu second;
  Gpu first("");
  first.add(second);
  ModelConfiguration c;
  EXPECT_EQ(asked(first, c).first, "gpu0 cpu reference");
  c.device = "gpu";
  EXPECT_EQ(asked(first, c).first, "gpu0 cpu reference");
  c.device = "gpu1";
  EXPECT_EQ(asked(first, c).first, "gpu1 cpu reference");
  c.device = "gpu2";
  EXPECT_EQ(
      asked(first, c).first,
      "device: expected one of 'neural_engine', 'gpu0', 'gpu1', 'cpu', 'reference', 'neuralEngine', 'gpu', got 'gpu2'");
  c.device = {};
  c.pins = {{"conv*", "gpu1"}};
  EXPECT_EQ(asked(first, c).first, "gpu1 gpu0 cpu reference");
}

TEST(Units, NoneIsADriverThatComputesOnTheCpu) {
  using Answer = std::pair<std::string, std::vector<std::string>>;
  const std::string why = "pixels is a software driver, which computes on the CPU";
  const Gpu gpu(why, why);
  const Answer left{"cpu reference",
                    {"device 'gpu0' is used only when it is named, as the device or in a pin: " + why}};
  const Answer used{"gpu0 cpu reference", {}};
  for (const ComputeUnits units : {ComputeUnits::all, ComputeUnits::cpu_and_gpu}) {
    ModelConfiguration c;
    c.compute_units = units;
    EXPECT_EQ(asked(gpu, c), left);
    // The unit's name does not name the driver.
    c.pins = {{"conv*", "gpu"}};
    EXPECT_EQ(asked(gpu, c), left);
    c.strict = true;
    EXPECT_EQ(asked(gpu, c).first, left.second[0]);
    c.pins.push_back({"conv1", "gpu0"});
    EXPECT_EQ(asked(gpu, c), used);
    c.pins = {};
    c.device = "gpu0";
    EXPECT_EQ(asked(gpu, c), used);
    c.device = "gpu";
    EXPECT_EQ(asked(gpu, c).first, left.second[0]);
    c.strict = false;
    EXPECT_EQ(asked(gpu, c), left);
  }
  EXPECT_EQ(gpu.unit_name(), "cpu");
  EXPECT_EQ(Gpu("").unit_name(), "gpu");
}

TEST(Units, CpuAndGpuAsksAGpuThatAllDoesNotFind) {
  ModelConfiguration c;
  EXPECT_EQ(asked(Gpu("no GPU under /dev"), c).first, "cpu reference");
  c.compute_units = ComputeUnits::cpu_and_gpu;
  EXPECT_EQ(asked(Gpu("no GPU under /dev"), c).first, "gpu0 cpu reference");
}

TEST(Units, PlansCallASoftwareDriverTheCpu) {
  MOKA_NEEDS_VULKAN_DRIVER();
  ModelConfiguration c;
  c.device = "vulkan";
  c.rates = "off";
  const ComputePlan plan = load_chain({}, c).compute_plan();
  const MachineRates rates = read_rates("off", 1, "vulkan");
  ASSERT_EQ(rates.units.back().device, "vulkan");
  const bool is_software = rates.units.back().description.ends_with(", a software driver");
  EXPECT_EQ(rates.units.back().unit, is_software ? "cpu" : "gpu");
  // Without a name only hardware is measured.
  EXPECT_EQ(read_rates("off", 1).units.back().device == "vulkan", !is_software);
  for (const PlannedOperation& o : plan.operations)
    for (const UnitBid& b : o.bids) EXPECT_EQ(b.unit, is_software || b.device == "cpu" ? "cpu" : "gpu") << b.device;
}

TEST(Units, PlansSayWhatEachUnitCostsAndWhyTheCutLiesThere) {
  ModelConfiguration c;
  const Model m = Model::from_mil(
      program("tensor<fp32, [1, 4, 8, 8]> x",
              program_op("a", "exp", "x") + program_op("b", "tanh", "a") + program_op("c", "sigmoid", "b"), "c"),
      [&] {
        c.pins = {{"b", "simulator"}, {"a", "cpu"}, {"c", "cpu"}};
        c.rates = "off";
        return c;
      }());
  const ComputePlan plan = m.compute_plan();
  ASSERT_EQ(plan.regions.size(), 1u);
  EXPECT_EQ(plan.regions[0].device, "simulator");
  EXPECT_EQ(plan.regions[0].operations, 1u);
  EXPECT_EQ(plan.regions[0].upload_bytes, 1024u);
  EXPECT_EQ(plan.regions[0].download_bytes, 1024u);
  EXPECT_GT(plan.regions[0].launch, 0);
  EXPECT_TRUE(std::isinf(plan.regions[0].saves));
  EXPECT_GT(plan.cost.transfers, 0);
  EXPECT_EQ(plan.rates, "table");
  std::vector<std::string> reasons;
  for (const PlannedOperation& o : plan.operations) {
    if (o.type == "transfer") {
      EXPECT_EQ(o.bytes, 1024u);
      reasons.push_back(o.name + ": " + o.reason);
    }
    if (o.name != "b" || o.kernel.empty()) continue;
    EXPECT_EQ(o.region, 0);
    std::vector<std::string> bids;
    for (const auto& bid : o.bids)
      if (bid.device != "vulkan") bids.push_back(bid.device + " " + bid.unit);  // where the machine has a GPU
    EXPECT_EQ(bids, (std::vector<std::string>{"cpu cpu", "simulator gpu"}));
    EXPECT_EQ(o.chosen_by, "pin");
  }
  EXPECT_EQ(reasons, (std::vector<std::string>{"a: 'a' (exp) is pinned", "b: 'c' (sigmoid) is pinned"}));
}

TEST(Units, NothingIsTransferredThatCostsMoreThanItSaves) {
  // One operation is pinned to the device. Its neighbors stay on the host if a transfer costs less than the move would
  // save.
  const ComputePlan plan = load_chain({{"encoder", "simulator"}}).compute_plan();
  for (const PlannedOperation& o : plan.operations)
    if (o.type == "transfer") {
      EXPECT_FALSE(o.reason.empty()) << o.name;
    }
}

}  // namespace
}  // namespace moka::test
