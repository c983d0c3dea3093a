// SPDX-License-Identifier: Apache-2.0
#include "moka/rates.h"

#include <algorithm>
#include <ctime>

#include "api/internal.h"
#include "api/path.h"
#include "base/processors.h"
#include "kernel/device.h"
#include "runtime/cache_file.h"
#include "runtime/rates.h"

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

std::string utc_now() {
  const std::time_t now = std::time(nullptr);
  std::tm utc{};
  gmtime_r(&now, &utc);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &utc);
  return text;
}

/// The rates of one machine for a number of threads, and their file.
class RatesFile {
 public:
  RatesFile(std::string path, std::span<const kernel::Device* const> devices, int threads) : path_(std::move(path)) {
    std::copy_if(devices.begin(), devices.end(), std::back_inserter(hosts_),
                 [](const auto* d) { return d->is_host(); });
    machine_ = {hosts_.empty() ? std::string() : hosts_.front()->identity(), std::string(kernel::build()), threads};
    if (path_.empty()) return;
    auto text = runtime::read_cache_file(path_);
    if (!text.ok() && text.error().code() == ErrorCode::not_found) return;
    if (Status s = read(std::move(text)); !s.ok())
      remark_ = cat("rates '", path_, "' are not used: ", s.error().to_string());
  }

  const runtime::KnownUnit* find(const kernel::Device& d) const {
    for (const runtime::KnownUnit& u : known_)
      if (u.device == d.name() && u.identity == d.identity()) return &u;
    return nullptr;
  }
  /// Measures again. A disturbed measurement replaces no other one. Returns whether it was disturbed.
  Result<bool> measure(const kernel::Device& d, runtime::Waited waited) {
    const runtime::MeasuredUnit measured =
        MOKA_TRY_IN(runtime::measure_unit(d, hosts_, machine_.threads, waited), cat("device '", d.name(), "'"));
    if (const auto* old = find(d); measured.disturbed && old != nullptr && !old->disturbed) return true;
    std::erase_if(known_, [&](const runtime::KnownUnit& u) { return u.device == d.name(); });
    known_.push_back({std::string(d.name()), d.identity(), measured.rates, utc_now(), measured.disturbed});
    return measured.disturbed;
  }
  /// The file holds rounded numbers. Rounding here makes this load plan with the same numbers as later loads.
  Status save() {
    auto before = runtime::read_cache_file(path_);
    const std::string text = runtime::merged_rates(before.ok() ? *before : std::string(), machine_, known_);
    known_ = MOKA_TRY(runtime::parse_rates(text, machine_));
    return path_.empty() ? Status() : runtime::replace_cache_file(path_, OutputKind::rates, text);
  }
  const std::string& path() const { return path_; }
  const std::string& remark() const { return remark_; }

 private:
  Status read(Result<std::string> text) {
    known_ = MOKA_TRY(runtime::parse_rates(MOKA_TRY(std::move(text)), machine_));
    return {};
  }
  std::string path_, remark_;
  std::vector<const kernel::Device*> hosts_;
  runtime::RatesMachine machine_;
  std::vector<runtime::KnownUnit> known_;
};

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
  const RatesFile file(*path, devices, threads);
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
  RatesFile known(out.file, devices.list, threads > 0 ? threads : processors());
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
  return api::machine_rates(api::native(file), api::measurable(device), threads, true);
}

MachineRates read_rates(const std::string& file, int threads, const std::string& device) {
  return api::machine_rates(api::native(file), api::measurable(device), threads, false);
}

}  // namespace moka
