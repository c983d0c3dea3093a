// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "json.h"
#include "moka/recording.h"

/// How recordings of devices are printed.
namespace moka::cli {

/// The setting of `units`, or of `otherwise` where it lacks that. Throws UsageError where it has no plan of either.
const RecordedSetting& recorded_plan(const DeviceRecording& recording, const std::string& path, ComputeUnits units,
                                     ComputeUnits otherwise);

/// Core ML's placement beside the plan's. `all`: also where they agree.
std::string placement_text(const Placement& placement, const DeviceRecording& recording, const RecordedSetting& setting,
                           bool all);
/// Where the preview of `unit` was wrong, by rule.
std::string preview_text(const Placement& placement, const DeviceRecording& recording, const RecordedSetting& setting,
                         const std::string& unit);
/// "recording": both.
void add_placement(const Placement& placement, const DeviceRecording& recording, const RecordedSetting& setting,
                   Json& json);

std::string comparison_text(const RecordingComparison& comparison, const DeviceRecording& first,
                            const DeviceRecording& second);
Json to_json(const RecordingComparison& comparison, const DeviceRecording& first, const DeviceRecording& second);

}  // namespace moka::cli
