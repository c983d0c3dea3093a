// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace moka {

/// The time now in UTC: "2026-11-29T18:00:00Z".
std::string utc_now();

}  // namespace moka
