// SPDX-License-Identifier: Apache-2.0
#include <filesystem>
#include <fstream>

#include "api/internal.h"
#include "moka/rates.h"
#include "temporary_folder.h"
#include "units/units_util.h"

namespace moka::test {
namespace {

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

std::vector<const kernel::Device*> gpu_and_reference(const Gpu& gpu) {
  std::vector<const kernel::Device*> devices{&gpu};
  for (const kernel::Device* d : api::all_devices())
    if (d->name() == "reference") devices.push_back(d);
  return devices;
}

TEST_F(RatesOf, AUnitAreEstimatesUntilTheyAreMeasured) {
  const MeasuredGpu gpu;
  const auto devices = gpu_and_reference(gpu);
  ModelConfiguration c;
  c.rates = file;
  const api::ModelRates before = api::rates_for(c, devices, 1);
  EXPECT_EQ(before.rates, nullptr);
  EXPECT_EQ(before.remark + before.note, "");
  EXPECT_FALSE(std::filesystem::exists(file));
  const MachineRates measured = api::machine_rates(file, {devices, {}, {}}, 1, true, never_waits);
  const api::ModelRates after = api::rates_for(c, devices, 1);
  ASSERT_NE(after.rates, nullptr);
  EXPECT_EQ(after.rates->source, file);
  EXPECT_EQ(after.rates->units.at("gpu0").measured.fp32, measured.units[0].fp32);
  EXPECT_EQ(after.remark + after.note, "");
}

/// Another GPU, which the file does not have.
class UnknownGpu final : public Gpu {
 public:
  UnknownGpu() : Gpu("") {}
  std::string_view name() const override { return "gpu1"; }
  std::string identity() const override { return "gpu1 1.0"; }
};

TEST_F(RatesOf, AUnitThatTheFileLacksAreEstimatesAsANoteTells) {
  const MeasuredGpu gpu;
  const UnknownGpu unknown;
  auto devices = gpu_and_reference(gpu);
  api::machine_rates(file, {devices, {}, {}}, 1, true, never_waits);
  devices.insert(devices.begin(), &unknown);
  ModelConfiguration c;
  c.rates = file;
  const api::ModelRates rates = api::rates_for(c, devices, 1);
  EXPECT_EQ(rates.rates->units.size(), 1u);
  EXPECT_EQ(rates.note, "the rates of 'gpu1' are estimates: '" + file + "' has none; 'moka rates' measures them");
  EXPECT_EQ(rates.remark, "");
}

TEST_F(RatesOf, AUnitThatOtherWorkDisturbedAreUsedAsARemarkTells) {
  const MeasuredGpu gpu;
  const auto devices = gpu_and_reference(gpu);
  api::machine_rates(file, {devices, {}, {}}, 1, true, always_waits);
  ModelConfiguration c;
  c.rates = file;
  const api::ModelRates rates = api::rates_for(c, devices, 1);
  EXPECT_GT(rates.rates->units.at("gpu0").measured.fp32, 0);
  EXPECT_TRUE(rates.remark.starts_with("other work disturbed the measurement of device 'gpu0' on 20")) << rates.remark;
  EXPECT_TRUE(rates.remark.ends_with("; 'moka rates' measures it again")) << rates.remark;
}

TEST_F(RatesOf, AMachineThatOtherWorkDisturbsReplaceNoOthers) {
  const MeasuredGpu gpu;
  const api::Devices devices{gpu_and_reference(gpu), {}, {}};
  const auto measured = [&](runtime::Waited waited) { return api::machine_rates(file, devices, 1, true, waited); };
  const MachineRates disturbed = measured(always_waits);
  ASSERT_EQ(disturbed.units.size(), 1u);
  EXPECT_TRUE(disturbed.units[0].disturbed);
  EXPECT_GT(disturbed.units[0].fp32, 0);
  EXPECT_TRUE(disturbed.remarks.empty());
  const MachineRates good = measured(never_waits);
  EXPECT_FALSE(good.units[0].disturbed);
  const MachineRates kept = measured(always_waits);
  EXPECT_EQ(
      kept.remarks,
      (std::vector<std::string>{"other work disturbed the measurement of device 'gpu0'; its earlier rates stay"}));
  EXPECT_FALSE(kept.units[0].disturbed);
  for (const MachineRates& r : {kept, api::machine_rates(file, devices, 1, false)}) {
    EXPECT_EQ(r.units[0].fp32, good.units[0].fp32);
    EXPECT_EQ(r.units[0].date, good.units[0].date);
  }
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
