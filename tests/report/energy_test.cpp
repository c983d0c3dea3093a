// SPDX-License-Identifier: Apache-2.0
#include "moka/energy.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "temporary_folder.h"

namespace moka {
namespace {

namespace fs = std::filesystem;

/// A folder like the kernel's, whose counters the test sets.
class Powercap {
 public:
  Powercap() { setenv("MOKA_POWERCAP", folder_.path().c_str(), 1); }
  ~Powercap() { unsetenv("MOKA_POWERCAP"); }
  void zone(const std::string& name, const std::string& called, uint64_t energy, uint64_t range = 1'000'000) {
    fs::create_directories(folder_.path() / name);
    write(name + "/name", called);
    write(name + "/max_energy_range_uj", std::to_string(range));
    set(name, energy);
  }
  void set(const std::string& name, uint64_t energy) { write(name + "/energy_uj", std::to_string(energy)); }
  void write(const std::string& file, const std::string& text) {
    std::ofstream(folder_.path() / file, std::ios::trunc) << text << "\n";
  }

 private:
  test::TemporaryFolder folder_;
};

std::string text_of(const Energy& energy) {
  std::string out;
  for (const EnergyPart& p : energy.parts) out += p.name + " " + std::to_string(p.joules) + "; ";
  return out;
}

TEST(EnergyMeter, CountsPackagesAndTheirMemory) {
  Powercap machine;
  machine.zone("intel-rapl:0", "package-0", 100'000);
  machine.zone("intel-rapl:0:0", "core", 50'000);
  machine.zone("intel-rapl:0:1", "dram", 7'000);
  machine.zone("intel-rapl:1", "package-1", 200'000);
  machine.zone("intel-rapl:2", "psys", 900'000);
  machine.zone("dtpm", "package-9", 1);
  EnergyMeter meter;
  machine.set("intel-rapl:0", 350'000);
  machine.set("intel-rapl:0:0", 60'000);
  machine.set("intel-rapl:0:1", 17'000);
  machine.set("intel-rapl:2", 950'000);
  const Energy energy = meter.taken();
  EXPECT_EQ(text_of(energy), "package-0 0.250000; dram of package-0 0.010000; package-1 0.000000; ");
  EXPECT_NEAR(energy.joules(), 0.26, 1e-9);
}

TEST(EnergyMeter, CountersBeginAgain) {
  Powercap machine;
  machine.zone("intel-rapl:0", "package-0", 900'000);
  EnergyMeter meter;
  machine.set("intel-rapl:0", 300'000);  // 100,000 to the end of the range, and 300,000
  EXPECT_EQ(text_of(meter.taken()), "package-0 0.400000; ");
  machine.set("intel-rapl:0", 400'000);
  EXPECT_EQ(text_of(meter.taken()), "package-0 0.500000; ");
}

TEST(EnergyMeter, SaysWhatIsMissing) {
  {
    Powercap machine;
    machine.zone("intel-rapl:0", "package-0", 0);
    machine.write("intel-rapl:0/energy_uj", "none");
    const Energy energy = EnergyMeter().taken();
    EXPECT_TRUE(energy.parts.empty());
    ASSERT_FALSE(energy.missing.empty());
    EXPECT_EQ(energy.missing[energy.missing.size() - 1].rfind("package-0: ", 0), 0u) << energy.missing.back();
  }
  setenv("MOKA_POWERCAP", "/nowhere", 1);
  const Energy energy = EnergyMeter().taken();
  unsetenv("MOKA_POWERCAP");
  ASSERT_FALSE(energy.missing.empty());
  EXPECT_EQ(energy.missing.back(), "the processor: there is no /nowhere, as in most virtual machines");
}

}  // namespace
}  // namespace moka
