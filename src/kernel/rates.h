#pragma once

#include <map>
#include <string>
#include <string_view>

/// What the units of this machine do in a second: measured once (runtime/rates.h) or a conservative table.
namespace moka::kernel {

/// Work by which kernels are compared across units.
struct WorkRates {
  double fp32 = 0, fp16 = 0;  ///< operations a second in large products, a multiply-add counted as two
  double bytes = 0;           ///< a second that elementwise operations read and write
};

struct UnitRates {
  WorkRates measured;             ///< zeros: not measured
  WorkRates estimated;            ///< what the kernels' own costs say of the same work
  double launch = 20e-6;          ///< seconds of a submission
  double latency = 10e-6;         ///< seconds of a transfer of nothing
  double bytes_per_second = 8e9;  ///< of transfers: a card behind a bus

  /// What a kernel's cost is to be multiplied by. `is_product`: arithmetic decides it, else memory.
  double scale(bool is_product, bool is_half) const {
    const double WorkRates::*const what = !is_product ? &WorkRates::bytes
                                          : is_half   ? &WorkRates::fp16
                                                      : &WorkRates::fp32;
    return measured.*what > 0 && estimated.*what > 0 ? estimated.*what / measured.*what : 1;
  }
};

struct Rates {
  std::string source = "table";                         ///< or the file that they are from
  std::map<std::string, UnitRates, std::less<>> units;  ///< by the name of the device

  UnitRates of(std::string_view device) const {
    const auto it = units.find(device);
    return it == units.end() ? UnitRates{} : it->second;
  }
};

/// Whether arithmetic rather than memory decides the time of operations of this type.
bool is_product(std::string_view op);

}  // namespace moka::kernel
