#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "api/api_util.h"
#include "api/internal.h"
#include "devices/simulator/device.h"
#include "kernel/hardware.h"
#include "moka/rates.h"
#include "temporary_folder.h"
#include "units/vulkan_driver.h"

namespace moka::api {
std::vector<const kernel::Device*> all_devices();
}

namespace moka::test {
namespace {

std::string program_op(const std::string& name, const std::string& type, const std::string& x) {
  return "tensor<fp32, [1, 4, 8, 8]> " + name + " = " + type + "(x = " + x + ")[name = string(\"" + name + "\")];\n";
}

/// A chain of operations that no pass fuses, because their results are outputs.
const std::string kChain = program("tensor<fp32, [1, 4, 8, 8]> x",
                                   program_op("enc_a", "exp", "x") + program_op("enc_b", "tanh", "enc_a") +
                                       program_op("encoder", "sigmoid", "enc_b") +
                                       program_op("dec_a", "exp", "encoder") + program_op("dec_b", "tanh", "dec_a"),
                                   "enc_a, enc_b, encoder, dec_a, dec_b");

Model load(std::vector<Pin> pins, ModelConfiguration c = {}) {
  c.pins = std::move(pins);
  return Model::from_mil(kChain, c);
}

/// "name:device ..." for the operations of the plan.
std::string devices(const ComputePlan& plan) {
  std::string out;
  for (const PlannedOperation& o : plan.operations)
    if (!o.kernel.empty()) out += (out.empty() ? "" : " ") + o.name + ":" + o.device;
  return out;
}

std::string remark_of(const ComputePlan& plan, const std::string& pass) {
  for (const PassRemark& r : plan.remarks)
    if (r.pass == pass) return r.text;
  return {};
}

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
  EXPECT_EQ(devices(load({{"enc_b", "reference"}}).compute_plan()),
            "enc_a:cpu enc_b:reference encoder:cpu dec_a:cpu dec_b:cpu");
  EXPECT_EQ(devices(load({{"enc_*", "reference"}}).compute_plan()),
            "enc_a:reference enc_b:reference encoder:cpu dec_a:cpu dec_b:cpu");
  EXPECT_EQ(devices(load({{"type:exp", "reference"}}).compute_plan()),
            "enc_a:reference enc_b:cpu encoder:cpu dec_a:reference dec_b:cpu");
  // A letter after "enc" does not end it, so "encoder" is another scope.
  EXPECT_EQ(devices(load({{"scope:enc", "reference"}}).compute_plan()),
            "enc_a:reference enc_b:reference encoder:cpu dec_a:cpu dec_b:cpu");
}

TEST(Pins, TheLastThatFitsCounts) {
  EXPECT_EQ(devices(load({{"*", "reference"}, {"*_b", "cpu"}}).compute_plan()),
            "enc_a:reference enc_b:cpu encoder:reference dec_a:reference dec_b:cpu");
}

TEST(Pins, BringADeviceWithAMemoryOfItsOwn) {
  const Model m = load({{"dec_*", "simulator"}});
  const ComputePlan plan = m.compute_plan();
  EXPECT_NE(devices(plan).find("dec_a:simulator dec_b:simulator"), std::string::npos) << devices(plan);
  const Features in = m.random_inputs(), expected = load({}).predict(in), got = m.predict(in);
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
    load({{"zz", "cpu"}});
  });
  EXPECT_EQ(remark_of(load({{"zz*", "cpu"}}).compute_plan(), "devices"),
            "'zz*', pinned to device 'cpu', names no operation");
  expect_error(ErrorKind::not_found, {"pin 'enc_a'", "expected one of", "'cpu'", "'neuralEngine'", "got 'tpu'"}, [] {
    load({{"enc_a", "tpu"}});
  });
  if (has_vulkan_driver()) expect_error(ErrorKind::not_found, {"'vulkan'", "'gpu'"}, [] { load({{"enc_a", "tpu"}}); });
}

TEST(Units, CpuOnlyNeverUsesAnotherUnit) {
  ModelConfiguration c;
  c.compute_units = ComputeUnits::cpu_only;
  expect_error(ErrorKind::not_found, {"pin 'enc_a'", "device 'simulator' is not among the compute units"}, [&] {
    load({{"enc_a", "simulator"}}, c);
  });
  for (const PlannedOperation& o : load({}, c).compute_plan().operations)
    for (const UnitBid& b : o.bids) EXPECT_EQ(b.unit, "cpu");
}

TEST(Units, CpuAndGpuAsksTheGpuOrSaysWhyThereIsNone) {
  ModelConfiguration c;
  c.compute_units = ComputeUnits::cpu_and_gpu;
  c.rates = "off";
  const ComputePlan plan = load({}, c).compute_plan();
  bool is_asked = false;
  for (const PlannedOperation& o : plan.operations)
    for (const UnitBid& b : o.bids) is_asked |= b.unit == "gpu";
  EXPECT_NE(is_asked, remark_of(plan, "devices").starts_with("device 'vulkan' is not used: no GPU"));
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
  EXPECT_EQ(devices(plan), "y:cpu");
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

/// A GPU with the simulator's memory and kernels.
class Gpu : public kernel::Device, public kernel::Hardware {
 public:
  explicit Gpu(std::string named_only) : named_only_(std::move(named_only)) {}
  std::string_view name() const override { return "gpu0"; }
  std::string description() const override { return "a GPU of a test"; }
  kernel::ComputeUnit unit() const override { return kernel::ComputeUnit::gpu; }
  int rank() const override { return 40; }
  std::string named_only() const override { return named_only_; }
  std::span<const kernel::KernelDef> kernels() const override { return devices::simulator::device().kernels(); }
  const kernel::Memory* memory() const override { return devices::simulator::device().memory(); }

 private:
  std::string named_only_;
};

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

TEST(Units, AllLeavesOutADriverThatComputesOnTheCpu) {
  using Answer = std::pair<std::string, std::vector<std::string>>;
  const Gpu gpu("pixels computes on the CPU");
  ModelConfiguration c;
  EXPECT_EQ(asked(gpu, c),
            (Answer{"cpu reference", {"device 'gpu0' is used only when it is named: pixels computes on the CPU"}}));
  c.compute_units = ComputeUnits::cpu_and_gpu;
  EXPECT_EQ(asked(gpu, c), (Answer{"gpu0 cpu reference", {}}));
  c.compute_units = ComputeUnits::all;
  c.pins = {{"conv*", "gpu"}};
  EXPECT_EQ(asked(gpu, c), (Answer{"gpu0 cpu reference", {}}));
  c.pins = {};
  c.device = "gpu0";
  EXPECT_EQ(asked(gpu, c), (Answer{"gpu0 cpu reference", {}}));
}

TEST(Units, PlansSayWhatEachUnitCostsAndWhyTheCutLiesThere) {
  ModelConfiguration c;
  const Model m = Model::from_mil(
      program("tensor<fp32, [1, 4, 8, 8]> x",
              program_op("a", "exp", "x") + program_op("b", "tanh", "a") + program_op("c", "sigmoid", "b"), "c"),
      [&] {
        c.pins = {{"b", "simulator"}, {"a", "cpu"}, {"c", "cpu"}};
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
    ASSERT_EQ(o.bids.size(), 2u);
    EXPECT_EQ(o.bids[0].device + " " + o.bids[0].unit, "cpu cpu");
    EXPECT_EQ(o.bids[1].device + " " + o.bids[1].unit, "simulator gpu");
    EXPECT_EQ(o.chosen_by, "pin");
  }
  EXPECT_EQ(reasons, (std::vector<std::string>{"a: 'a' (exp) is pinned", "b: 'c' (sigmoid) is pinned"}));
}

TEST(Units, NothingIsTransferredThatCostsMoreThanItSaves) {
  // One operation is pinned to the device. Its neighbors stay on the host if a transfer costs less than the move would
  // save.
  const ComputePlan plan = load({{"encoder", "simulator"}}).compute_plan();
  for (const PlannedOperation& o : plan.operations)
    if (o.type == "transfer") {
      EXPECT_FALSE(o.reason.empty()) << o.name;
    }
}

class RatesOf : public ::testing::Test {
 protected:
  TemporaryFolder folder;
  std::string file = folder / "rates.json";
};

TEST_F(RatesOf, ThisMachineAreMeasuredOnceAndKept) {
  const MachineRates measured = measure_rates(file, 1);
  ASSERT_FALSE(measured.units.empty());
  EXPECT_EQ(measured.units[0].device, "cpu");
  EXPECT_GT(measured.units[0].fp32, 1e8);
  EXPECT_LT(measured.units[0].fp32, 1e14);
  EXPECT_GT(measured.units[0].bytes, 1e8);
  const MachineRates known = read_rates(file, 1);
  ASSERT_EQ(known.units.size(), measured.units.size());
  for (size_t i = 0; i < known.units.size(); i++) {
    EXPECT_EQ(known.units[i].fp32, measured.units[i].fp32);
    EXPECT_EQ(known.units[i].bytes, measured.units[i].bytes);
    EXPECT_EQ(known.units[i].launch, measured.units[i].launch);
  }
  // Another number of threads counts as another machine.
  EXPECT_EQ(read_rates(file, 2).units[0].fp32, 0);
}

/// The same GPU with rates of its own. It only multiplies matrices, so measuring it takes little time.
class MeasuredGpu final : public Gpu {
 public:
  MeasuredGpu() : Gpu("") {}
  std::string identity() const override { return "gpu0 1.0"; }
  std::span<const kernel::KernelDef> kernels() const override {
    static const kernel::KernelDef defs[] = {
        {"gpu0.matmul", {"matmul"}, devices::simulator::device().kernels()[0].match, true}};
    return defs;
  }
  Result<std::unique_ptr<kernel::Queue>> open_queue() const override {
    return devices::simulator::device().open_queue();
  }
};

double never_waits(runtime::Waiting) { return 0; }
double always_waits(runtime::Waiting) {
  static double seconds = 0;
  return seconds += 60;
}

TEST_F(RatesOf, AUnitThatOtherWorkDisturbedHoldForOneProcess) {
  const MeasuredGpu gpu;
  std::vector<const kernel::Device*> devices{&gpu};
  for (const kernel::Device* d : api::all_devices())
    if (d->name() == "reference") devices.push_back(d);
  ModelConfiguration c;
  c.rates = file;
  const auto speed = [](const api::ModelRates& r) { return r.rates->units.at("gpu0").measured.fp32; };
  const api::ModelRates first = api::rates_for(c, devices, 1, always_waits);
  EXPECT_NE(first.remark.find("other work disturbed the measurement of device 'gpu0'"), std::string::npos);
  EXPECT_GT(speed(first), 0);
  const api::ModelRates again = api::rates_for(c, devices, 1, never_waits);
  EXPECT_EQ(speed(again), speed(first));
  EXPECT_EQ(again.remark, first.remark);
  // Another process knows the file only, and measures again after an hour.
  std::ifstream in(file);
  std::string text{std::istreambuf_iterator<char>(in), {}};
  c.rates = folder / "copy.json";
  std::ofstream(c.rates) << text;
  EXPECT_EQ(speed(api::rates_for(c, devices, 1, never_waits)), speed(first));
  const size_t year = text.find("\"20");
  ASSERT_NE(year, std::string::npos);
  text.replace(year, 3, "\"19");
  c.rates = folder / "old.json";
  std::ofstream(c.rates) << text;
  const api::ModelRates later = api::rates_for(c, devices, 1, never_waits);
  EXPECT_EQ(later.remark, "");
  EXPECT_EQ(speed(api::rates_for(c, devices, 1, always_waits)), speed(later));
}

TEST_F(RatesOf, ADamagedFileAreNotUsed) {
  std::ofstream(file) << "{\"format\": \"moka unit rates\", \"version\": 1, \"machines\": [";
  const MachineRates known = read_rates(file, 1);
  ASSERT_FALSE(known.remarks.empty());
  EXPECT_NE(known.remarks.back().find("are not used: "), std::string::npos) << known.remarks.back();
  EXPECT_EQ(known.units[0].fp32, 0);
}

}  // namespace
}  // namespace moka::test
