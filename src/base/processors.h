// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string_view>

namespace moka {

/// The number of processors that this process may use, at least 1: those in its affinity mask, limited by the quota of
/// its control group (a container's --cpus). The first call determines it.
int processors();

/// The number of processors, rounded up, that Linux's cpu.max ("QUOTA PERIOD" in microseconds) grants. nullopt: no
/// limit.
std::optional<int> processors_of_quota(std::string_view cpu_max);

}  // namespace moka
