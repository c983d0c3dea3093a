#pragma once

#include "kernel/kernel.h"

/// Marks errors with the device that caused them when several devices compute one model: the context or the message
/// says "device 'name'".
namespace moka::kernel {

inline std::string place_of(const Device& device) { return cat("device '", device.name(), "'"); }

inline bool is_from(const Device& device, const Error& error) {
  return error.to_string().find(place_of(device)) != std::string::npos;
}

}  // namespace moka::kernel
