// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <string_view>

/// Speeds of the units of this machine: measured once (runtime/rates.h), or a conservative table.
namespace moka::kernel {

/// Speeds that make kernel costs comparable across units.
struct WorkRates {
  double fp32 = 0, fp16 = 0;  ///< operations per second in large matrix products; a multiply-add counts as two
  double bytes = 0;           ///< bytes per second that elementwise operations read and write
};

struct UnitRates {
  WorkRates measured;             ///< zeros: not measured
  WorkRates estimated;            ///< the same speeds according to the kernels' own cost estimates
  double launch = 20e-6;          ///< seconds per submission
  double latency = 10e-6;         ///< seconds of an empty transfer
  double bytes_per_second = 8e9;  ///< speed of transfers; the default is that of a card on a bus

  /// Factor that corrects a kernel's estimated cost. `is_product`: arithmetic limits the operation, otherwise memory
  /// does.
  double scale(bool is_product, bool is_half) const {
    const double WorkRates::*const what = !is_product ? &WorkRates::bytes
                                          : is_half   ? &WorkRates::fp16
                                                      : &WorkRates::fp32;
    return measured.*what > 0 && estimated.*what > 0 ? estimated.*what / measured.*what : 1;
  }
};

struct Rates {
  std::string source = "table";                         ///< or the file with the rates
  std::map<std::string, UnitRates, std::less<>> units;  ///< by device name

  UnitRates of(std::string_view device) const {
    const auto it = units.find(device);
    return it == units.end() ? UnitRates{} : it->second;
  }
};

/// Whether arithmetic rather than memory limits operations of this type.
bool is_product(std::string_view op);

}  // namespace moka::kernel
