// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "report/measure.h"

namespace moka::reporting {

ReportMachine machine_of(const ModelConfiguration& configuration, Watch& watch) {
  const std::string& device = configuration.device;
  MachineRates rates = read_rates(configuration.rates, configuration.threads, device);
  const bool is_known = std::any_of(rates.units.begin(), rates.units.end(), [](const auto& u) { return u.fp32 > 0; });
  if (!is_known) {
    watch.begin("rates");
    rates = measure_rates("off", configuration.threads, device);
  }
  return {std::move(rates.units), is_known && !rates.file.empty() ? rates.file : "for this report"};
}

}  // namespace moka::reporting
