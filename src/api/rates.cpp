#include "moka/rates.h"

#include <algorithm>
#include <ctime>
#include <map>
#include <tuple>

#include "api/internal.h"
#include "base/processors.h"
#include "kernel/unit_name.h"
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

/// Disturbed rates hold for so many seconds: on a machine that is always busy, few processes measure.
constexpr std::time_t kDisturbedHold = 3600;

std::string utc_ago(std::time_t seconds) {
  const std::time_t then = std::time(nullptr) - seconds;
  std::tm utc{};
  gmtime_r(&then, &utc);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &utc);
  return text;
}

/// The rates of one machine for a number of threads, and their file.
class RatesFile {
 public:
  RatesFile(std::string path, std::span<const kernel::Device* const> devices, int threads) : path_(std::move(path)) {
    std::copy_if(devices.begin(), devices.end(), std::back_inserter(hosts_),
                 [](const auto* d) { return d->memory() == nullptr && d->unit() == kernel::ComputeUnit::cpu; });
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
    held_units().erase(key_of(d));
    if (const auto* old = find(d); measured.disturbed && old != nullptr && !old->disturbed) return true;
    std::erase_if(known_, [&](const runtime::KnownUnit& u) { return u.device == d.name(); });
    known_.push_back({std::string(d.name()), d.identity(), measured.rates, utc_ago(0), measured.disturbed});
    return measured.disturbed;
  }
  /// The disturbed rates of a device that this process has planned by. It goes on with them, so that its plans stay the
  /// same.
  const runtime::KnownUnit* held(const kernel::Device& d) const {
    const auto it = held_units().find(key_of(d));
    return it == held_units().end() ? nullptr : &it->second;
  }
  void hold(const kernel::Device& d) {
    if (const runtime::KnownUnit* u = find(d); u != nullptr && u->disturbed) held_units().try_emplace(key_of(d), *u);
  }
  /// The file holds rounded numbers. Rounding here makes this load plan with the same numbers as later loads.
  Status save() {
    auto before = runtime::read_cache_file(path_);
    const std::string text = runtime::merged_rates(before.ok() ? *before : std::string(), machine_, known_);
    known_ = MOKA_TRY(runtime::parse_rates(text, machine_));
    return path_.empty() ? Status() : runtime::replace_cache_file(path_, text);
  }
  const std::string& path() const { return path_; }
  const std::string& remark() const { return remark_; }

 private:
  using Key = std::tuple<std::string, std::string, std::string, int>;  ///< file, device, identity, threads
  static std::map<Key, runtime::KnownUnit>& held_units() {
    static auto& units = *new std::map<Key, runtime::KnownUnit>;
    return units;
  }
  Key key_of(const kernel::Device& d) const { return {path_, std::string(d.name()), d.identity(), machine_.threads}; }

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
                     int threads, runtime::Waited waited) {
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
  std::lock_guard lock(measuring);
  RatesFile file(*path, devices, threads);
  out.remark = file.remark();
  bool is_new = false;
  for (const kernel::Device* d : units) {
    const runtime::KnownUnit* u = file.find(*d);
    if (file.held(*d) != nullptr || (u != nullptr && !(u->disturbed && u->date < utc_ago(kDisturbedHold)))) continue;
    const trace::Span span(trace::Lane::activity, "measure rates");
    if (auto disturbed = file.measure(*d, waited); !disturbed.ok()) {
      out.remark = disturbed.error().to_string();
      return out;
    }
    is_new = true;
  }
  if (is_new)
    if (Status s = file.save(); !s.ok()) out.remark = s.error().to_string();
  auto rates = std::make_shared<kernel::Rates>();
  rates->source = *path;
  for (const kernel::Device* d : units) {
    file.hold(*d);
    const runtime::KnownUnit* u = file.held(*d);
    if (u != nullptr && out.remark.empty())
      out.remark = cat("other work disturbed the measurement of device '", d->name(), "' on ", u->date,
                       "; a process that starts an hour later measures its rates again");
    if (u == nullptr) u = file.find(*d);
    if (u != nullptr) rates->units[std::string(d->name())] = u->rates;
  }
  out.rates = std::move(rates);
  return out;
}

MachineRates machine_rates(const std::string& file, const Devices& devices, int threads, bool measures,
                           runtime::Waited waited) {
  MachineRates out;
  out.remarks = devices.remarks;
  out.file = unwrap(rates_file(file));
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
    for (const kernel::Device* d : units) known.hold(*d);
  }
  for (const kernel::Device* d : units) {
    UnitRates r{std::string(d->name()), std::string(name_of(d->unit())), d->description()};
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

Devices cpu_and_gpus() {
  ModelConfiguration all;
  all.compute_units = ComputeUnits::cpu_and_gpu;
  return unwrap(devices_for(all));
}

}  // namespace
}  // namespace api

MachineRates measure_rates(const std::string& file, int threads) {
  std::lock_guard lock(api::measuring);
  return api::machine_rates(file, api::cpu_and_gpus(), threads, true);
}

MachineRates read_rates(const std::string& file, int threads) {
  return api::machine_rates(file, api::cpu_and_gpus(), threads, false);
}

}  // namespace moka
