// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

#include "devices/gpu/code.h"

namespace moka::devices::vulkan {

/// What a shader declares: its workgroup, specialization constants, push constants and storage buffers, with the names
/// of its source if it kept them. Damaged code tells what stands before the damage.
gpu::CodeFacts facts_of_spirv(std::span<const uint32_t> code);

}  // namespace moka::devices::vulkan
