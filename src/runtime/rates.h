// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <span>
#include <string>

#include "kernel/device.h"
#include "kernel/rates.h"
#include "runtime/waited.h"

/// Measured rates of this machine's units, and the file that remembers them: JSON, a section for each machine and
/// build.
namespace moka::runtime {

/// The machine and the build that rates are measured for.
struct RatesMachine {
  std::string processor, build;
  int threads = 1;
};

struct MeasuredUnit {
  kernel::UnitRates rates;
  bool disturbed = false;  ///< other work on the machine took processors while some part of it was measured
};

/// Times of small programs on a device with its own memory, in seconds, from which set_transfer_rates computes the
/// overhead of a submission and the bandwidth of transfers.
struct TransferTimes {
  double bytes = 0;      ///< of a large tensor
  double large = 0;      ///< an elementwise operation on it, which is uploaded and downloaded
  double computing = 0;  ///< the part of `large` that computes; 0: not known
  double one = 0;        ///< an operation on one input of one element
  double several = 0;    ///< an operation on `inputs` such inputs
  int inputs = 2;
};
/// Sets `launch`, `latency` and `bytes_per_second`. `bytes_per_second` keeps the rate of the table if the transfer of
/// the large tensor takes less time than the measurements vary by.
void set_transfer_rates(kernel::UnitRates& rates, const TransferTimes& times);

/// Measures products, elementwise operations on tensors larger than the caches, and transfers. Takes a second or two.
/// An operation that the device refuses keeps the table's rate. `hosts`: devices in host memory, for the rest of the
/// plan. Errors: those of a prediction.
Result<MeasuredUnit> measure_unit(const kernel::Device& device, std::span<const kernel::Device* const> hosts,
                                  int threads, Waited waited = seconds_waited);

/// A device by its name and identity.
struct KnownUnit {
  std::string device, identity;
  kernel::UnitRates rates;
  std::string date{};      ///< when they were measured, UTC: "2026-11-24T12:00:00Z"
  bool disturbed = false;  ///< as MeasuredUnit's: a later process measures them again
};
/// The units of `machine` in the text of a file. Errors: malformed, unsupported (a newer version).
Result<std::vector<KnownUnit>> parse_rates(std::string_view text, const RatesMachine& machine);
/// The text of the file `before` with these units for `machine`; other sections stay. `before` may be empty or damaged.
std::string merged_rates(std::string_view before, const RatesMachine& machine, std::span<const KnownUnit> units);

/// The user's file: $XDG_CACHE_HOME/moka/rates.json, or in ~/.cache. Error not_found: neither is set.
Result<std::string> default_rates();

}  // namespace moka::runtime
