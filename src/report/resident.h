// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

/// The resident memory of this process, in bytes.
namespace moka::reporting {

/// 0: the system does not report it.
uint64_t resident_memory();
/// The highest size since the last reset, or since the process began. 0: the system does not report it.
uint64_t peak_memory();
/// Makes the highest size the present one. Returns whether the system did.
bool reset_peak_memory();
/// Returns memory to the system that was freed, so that the resident size is that of what is in use.
void return_freed_memory();

}  // namespace moka::reporting
