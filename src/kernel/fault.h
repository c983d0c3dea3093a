// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernel/device.h"

/// Marks errors with the device that caused them when several devices compute one model.
namespace moka::kernel {

inline std::string place_of(const Device& device) { return cat("device '", device.name(), "'"); }

/// The error as one of the device, with the context `place`, which names it.
inline Error&& failed_on(const Device& device, Error&& error, std::string_view place) {
  return std::move(std::move(error).of_device(device.name())).in(place);
}
inline Error&& failed_on(const Device& device, Error&& error) {
  return failed_on(device, std::move(error), place_of(device));
}

}  // namespace moka::kernel

/// As MOKA_TRY_IN, for what a device does. Optional third argument: a context that names the device.
#define MOKA_TRY_ON(expr, device, ...)                                                                                 \
  ({                                                                                                                   \
    auto moka_result_ = (expr);                                                                                        \
    if (!moka_result_.ok())                                                                                            \
      return std::move(::moka::kernel::failed_on(device, std::move(moka_result_).error() __VA_OPT__(, ) __VA_ARGS__)); \
    std::move(moka_result_).value();                                                                                   \
  })
