// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "json.h"
#include "moka/trace.h"
#include "text.h"

namespace moka::cli {

/// A table for each lane: count, total, minimum, average and maximum. `by`: the property that a row stands for, "name",
/// "model", "device" or "kernel".
std::string summary_text(const TraceSummary& summary, std::string_view by);
/// {"seconds", "unfinished", "groups", "counters"}; docs/seeing.md describes the members.
Json summary_json(const TraceSummary& summary);

}  // namespace moka::cli
