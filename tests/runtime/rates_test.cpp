// SPDX-License-Identifier: Apache-2.0
#include "runtime/rates.h"

#include <gtest/gtest.h>

namespace moka::runtime {
namespace {

const RatesMachine kMyMachine{"a processor", "build 1", 2};

KnownUnit unit(const std::string& device, double fp32) {
  KnownUnit u{device, device + " 1.0", {}, "2026-11-24T12:00:00Z"};
  u.rates.measured = {fp32, 2 * fp32, 1e10};
  u.rates.estimated = {1e11, 1e11, 2e10};
  u.rates.launch = 5e-5;
  u.rates.latency = 2e-6;
  u.rates.bytes_per_second = 1.2e10;
  return u;
}

std::vector<KnownUnit> parsed(const std::string& text, const RatesMachine& machine = kMyMachine) {
  auto units = parse_rates(text, machine);
  EXPECT_TRUE(units.ok()) << text;
  return units.ok() ? *units : std::vector<KnownUnit>{};
}

TEST(Rates, WhatIsWrittenIsRead) {
  const auto units = parsed(merged_rates("", kMyMachine, std::vector{unit("gpu", 1.23e11)}));
  ASSERT_EQ(units.size(), 1u);
  EXPECT_EQ(units[0].identity, "gpu 1.0");
  EXPECT_FALSE(units[0].disturbed);
  EXPECT_DOUBLE_EQ(units[0].rates.measured.fp32, 1.23e11);
  EXPECT_DOUBLE_EQ(units[0].rates.estimated.bytes, 2e10);
  EXPECT_DOUBLE_EQ(units[0].rates.launch, 5e-5);
  EXPECT_EQ(units[0].date, "2026-11-24T12:00:00Z");
}

TEST(Rates, TheFileTellsWhichWereDisturbed) {
  KnownUnit disturbed = unit("gpu", 1.23e11);
  disturbed.disturbed = true;
  const auto units = parsed(merged_rates("", kMyMachine, std::vector{unit("cpu", 1e10), disturbed}));
  ASSERT_EQ(units.size(), 2u);
  EXPECT_FALSE(units[0].disturbed);
  EXPECT_TRUE(units[1].disturbed);
}

TEST(Rates, UnitsAreReplacedAndOtherMachinesStay) {
  const RatesMachine other{"another processor", "build 1", 2};
  std::string text = merged_rates("", other, std::vector{unit("gpu", 1e12)});
  text = merged_rates(text, kMyMachine, std::vector{unit("cpu", 1e10), unit("gpu", 1e11)});
  text = merged_rates(text, kMyMachine, std::vector{unit("gpu", 3e11)});
  const auto mine = parsed(text);
  ASSERT_EQ(mine.size(), 2u);
  EXPECT_DOUBLE_EQ(mine[1].rates.measured.fp32, 3e11);
  EXPECT_EQ(parsed(text, other).size(), 1u);
  EXPECT_TRUE(parsed(text, {"a processor", "build 2", 2}).empty());
  EXPECT_TRUE(parsed(text, {"a processor", "build 1", 4}).empty());
}

TEST(Rates, TransfersAreWhatComputingAndSubmittingLeave) {
  kernel::UnitRates rates;
  // 8 ms for 64 MB there and back, of which a submission takes 1 ms and computing 3 ms; 7 further inputs take 70 us.
  set_transfer_rates(rates, {64e6, 8e-3, 3e-3, 1e-3, 1.07e-3, 8});
  EXPECT_NEAR(rates.latency, 10e-6, 1e-12);
  EXPECT_NEAR(rates.launch, 980e-6, 1e-12);
  EXPECT_NEAR(rates.bytes_per_second, 32e9, 1);
}

TEST(Rates, TransfersThatCannotBeToldFromNoiseKeepTheTablesRate) {
  const double table = kernel::UnitRates{}.bytes_per_second;
  kernel::UnitRates rates;
  // A hundredth of the time is left, none, and less than none.
  for (const double computing : {6.92e-3, 7e-3, 7.5e-3}) {
    set_transfer_rates(rates, {64e6, 8e-3, computing, 1e-3, 1e-3, 8});
    EXPECT_EQ(rates.bytes_per_second, table) << computing;
  }
  EXPECT_EQ(rates.latency, 0.1e-6);
}

TEST(Rates, EveryCutAndEveryHostileNumberIsAnError) {
  const std::string text = merged_rates("", kMyMachine, std::vector{unit("gpu", 1e11)});
  for (size_t n = 0; n + 2 < text.size(); n += 7) EXPECT_FALSE(parse_rates(text.substr(0, n), kMyMachine).ok()) << n;
  for (const char* bad : {"-1", "1e999", "\"fast\"", "null", "[1]"}) {
    std::string broken = text;
    const std::string key = "\"transferBytesPerSecond\": ";
    const size_t at = broken.find(key) + key.size();
    broken.replace(at, broken.find(',', at) - at, bad);
    EXPECT_FALSE(parse_rates(broken, kMyMachine).ok()) << bad;
  }
}

TEST(Rates, ScaleTheKernelsOwnCosts) {
  const kernel::UnitRates r = unit("gpu", 5e10).rates;
  EXPECT_DOUBLE_EQ(r.scale(true, false), 2);  // estimated at 1e11, measured at 5e10
  EXPECT_DOUBLE_EQ(r.scale(true, true), 1);
  EXPECT_DOUBLE_EQ(r.scale(false, false), 2);
  EXPECT_DOUBLE_EQ(kernel::UnitRates{}.scale(true, false), 1);
  EXPECT_TRUE(kernel::is_product("conv"));
  EXPECT_TRUE(kernel::is_product("matmul"));
  EXPECT_FALSE(kernel::is_product("relu"));
}

}  // namespace
}  // namespace moka::runtime
