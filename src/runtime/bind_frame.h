// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "runtime/fitted_frame.h"
#include "runtime/sessions.h"

namespace moka::runtime {

/// PlanOptions::frame_bytes with which a device may unpack the frame; 0: the host had better do it.
size_t frame_room_for(const FittedFrame& value);

/// Sets input `i` of type `type` to planes of the part of a frame that its placement says: crops, resizes and converts
/// it in one pass. A device that unpacks frames gets it as it is, one that unpacks pixels gets rounded ones.
Status bind_frame(const FittedFrame& value, const ir::Type& type, std::string_view name, size_t i, Session& s);

}  // namespace moka::runtime
