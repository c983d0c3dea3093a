#pragma once

#include <optional>
#include <string_view>

namespace moka {

/// The number of processors that this process may use, at least 1: those it is bound to, at most what the quota of its
/// control group allows (a container's --cpus). Determined by the first call.
int processors();

/// The number of processors, rounded up, that Linux's cpu.max grants: "QUOTA PERIOD" in microseconds. Nullopt: no
/// limit.
std::optional<int> processors_of_quota(std::string_view cpu_max);

}  // namespace moka
