#pragma once

#include <optional>
#include <string_view>

namespace moka {

/// Processors that this process may use, when it was first asked: those that it is bound to, and not more than its
/// control group has time for (a container's --cpus). At least 1.
int processors();

/// The number of processors, rounded up, that Linux' cpu.max grants: "QUOTA PERIOD" in microseconds. Nullopt: no limit.
std::optional<int> processors_of_quota(std::string_view cpu_max);

}  // namespace moka
