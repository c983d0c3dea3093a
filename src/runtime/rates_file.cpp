// SPDX-License-Identifier: Apache-2.0
#include "runtime/rates_file.h"

#include <algorithm>
#include <iterator>

#include "base/utc.h"
#include "runtime/cache_file.h"

namespace moka::runtime {

RatesFile::RatesFile(std::string path, std::span<const kernel::Device* const> devices, std::string build, int threads)
    : path_(std::move(path)) {
  std::copy_if(devices.begin(), devices.end(), std::back_inserter(hosts_), [](const auto* d) { return d->is_host(); });
  machine_ = {hosts_.empty() ? std::string() : hosts_.front()->identity(), std::move(build), threads};
  if (path_.empty()) return;
  auto text = read_cache_file(path_);
  if (!text.ok() && text.error().code() == ErrorCode::not_found) return;
  if (Status s = read(std::move(text)); !s.ok())
    remark_ = cat("rates '", path_, "' are not used: ", s.error().to_string());
}

const KnownUnit* RatesFile::find(const kernel::Device& d) const {
  for (const KnownUnit& u : known_)
    if (u.device == d.name() && u.identity == d.identity()) return &u;
  return nullptr;
}

Result<bool> RatesFile::measure(const kernel::Device& d, Waited waited) {
  const MeasuredUnit measured =
      MOKA_TRY_IN(measure_unit(d, hosts_, machine_.threads, waited), cat("device '", d.name(), "'"));
  if (const auto* old = find(d); measured.disturbed && old != nullptr && !old->disturbed) return true;
  std::erase_if(known_, [&](const KnownUnit& u) { return u.device == d.name(); });
  known_.push_back({std::string(d.name()), d.identity(), measured.rates, utc_now(), measured.disturbed});
  return measured.disturbed;
}

Status RatesFile::save() {
  auto before = read_cache_file(path_);
  const std::string text = merged_rates(before.ok() ? *before : std::string(), machine_, known_);
  known_ = MOKA_TRY(parse_rates(text, machine_));
  return path_.empty() ? Status() : replace_cache_file(path_, OutputKind::rates, text);
}

Status RatesFile::read(Result<std::string> text) {
  known_ = MOKA_TRY(parse_rates(MOKA_TRY(std::move(text)), machine_));
  return {};
}

}  // namespace moka::runtime
