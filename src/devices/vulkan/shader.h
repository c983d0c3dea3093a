// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "devices/gpu/code.h"

namespace moka::devices::vulkan {

/// A variant of a file in shaders/, compiled when the project is built: "binary_f32".
struct Shader : gpu::Code {
  std::span<const uint32_t> code;
};

/// All shaders. The build writes the list.
std::span<const Shader> shaders();
/// nullptr if no shader has that name.
const Shader* find_shader(std::string_view name);

}  // namespace moka::devices::vulkan
