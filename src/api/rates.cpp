// SPDX-License-Identifier: Apache-2.0
#include "moka/rates.h"

#include <algorithm>

#include "api/internal.h"
#include "base/output.h"
#include "base/processors.h"
#include "boundary/path.h"
#include "kernel/device.h"
#include "runtime/rates_file.h"

namespace moka {

namespace api {

namespace {

/// The file that ModelConfiguration::rates names; empty: none.
Result<std::string> rates_file(std::string file) {
  if (file.empty())
    if (const char* variable = std::getenv("MOKA_RATES"); variable != nullptr) file = variable;
  if (file == "off") return std::string();
  return file.empty() || file == "default" ? runtime::default_rates() : file;
}

/// Devices without an identity have no rates of their own.
bool is_measured(const kernel::Device& d) { return !d.identity().empty() && !d.kernels().empty(); }

std::mutex measuring;

}  // namespace

ModelRates rates_for(const ModelConfiguration& configuration, std::span<const kernel::Device* const> devices,
                     int threads) {
  ModelRates out;
  std::vector<const kernel::Device*> units;
  for (const kernel::Device* d : devices)
    if (d->memory() != nullptr && is_measured(*d)) units.push_back(d);
  if (units.empty()) return out;
  const auto host = std::find_if(devices.begin(), devices.end(),
                                 [](const auto* d) { return d->memory() == nullptr && is_measured(*d); });
  if (host != devices.end()) units.insert(units.begin(), *host);
  auto path = rates_file(configuration.rates);
  if (!path.ok()) {
    out.remark = path.error().to_string();
    return out;
  }
  if (path->empty()) return out;
  const runtime::RatesFile file(*path, devices, std::string(kernel::build()), threads);
  out.remark = file.remark();
  kernel::Rates rates;
  rates.source = *path;
  std::string unknown;
  for (const kernel::Device* d : units) {
    const runtime::KnownUnit* u = file.find(*d);
    if (u == nullptr) {
      unknown += cat(unknown.empty() ? "" : " and ", "'", d->name(), "'");
      continue;
    }
    rates.units[std::string(d->name())] = u->rates;
    if (u->disturbed && out.remark.empty())
      out.remark = cat("other work disturbed the measurement of device '", d->name(), "' on ", u->date,
                       "; 'moka rates' measures it again");
  }
  if (rates.units.empty()) return out;
  if (!unknown.empty())
    out.note = cat("the rates of ", unknown, " are estimates: '", *path, "' has none; 'moka rates' measures them");
  out.rates = std::make_shared<const kernel::Rates>(std::move(rates));
  return out;
}

MachineRates machine_rates(const std::string& file, const Devices& devices, int threads, bool measures,
                           runtime::Waited waited) {
  MachineRates out;
  out.remarks = devices.remarks;
  out.file = unwrap(rates_file(file));
  if (measures && !out.file.empty()) unwrap(check_output(out.file, OutputKind::rates));
  runtime::RatesFile known(out.file, devices.list, std::string(kernel::build()), threads > 0 ? threads : processors());
  if (!known.remark().empty()) out.remarks.push_back(known.remark());
  std::vector<const kernel::Device*> units;
  for (const kernel::Device* d : devices.list)
    if (is_measured(*d)) units.push_back(d);
  std::stable_partition(units.begin(), units.end(), [](const auto* d) { return d->memory() == nullptr; });
  if (measures) {
    for (const kernel::Device* d : units)
      if (unwrap(known.measure(*d, waited)) && !known.find(*d)->disturbed)
        out.remarks.push_back(
            cat("other work disturbed the measurement of device '", d->name(), "'; its earlier rates stay"));
    unwrap(known.save());
  }
  for (const kernel::Device* d : units) {
    UnitRates r{std::string(d->name()), std::string(d->unit_name()), d->description()};
    if (const runtime::KnownUnit* u = known.find(*d)) {
      r.fp32 = u->rates.measured.fp32;
      r.fp16 = u->rates.measured.fp16;
      r.bytes = u->rates.measured.bytes;
      r.date = u->date;
      r.disturbed = u->disturbed;
      r.launch = u->rates.launch;
      r.transfer = u->rates.latency;
      if (d->memory() != nullptr) r.transfer_bytes = u->rates.bytes_per_second;
    }
    out.units.push_back(std::move(r));
  }
  return out;
}

namespace {

/// The CPU, and the named device or each GPU.
Devices measurable(const std::string& device) {
  ModelConfiguration c;
  c.compute_units = device.empty() ? ComputeUnits::cpu_and_gpu : ComputeUnits::all;
  c.device = device;
  return unwrap(devices_for(c));
}

}  // namespace
}  // namespace api

MachineRates measure_rates(const std::string& file, int threads, const std::string& device) {
  std::lock_guard lock(api::measuring);
  return api::machine_rates(boundary::native(file), api::measurable(device), threads, true);
}

MachineRates read_rates(const std::string& file, int threads, const std::string& device) {
  return api::machine_rates(boundary::native(file), api::measurable(device), threads, false);
}

}  // namespace moka
