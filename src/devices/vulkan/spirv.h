#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "devices/vulkan/context.h"
#include "devices/vulkan/shader.h"

/// Shaders that come from outside of the project, with registered operations.
namespace moka::devices::vulkan {

/// Why a shader cannot run on a driver: not SPIR-V, no compute shader "main", a capability that is not switched on, a
/// workgroup that is too large, a resource other than storage buffers 0 to `bindings` - 1 of set 0. "": it can.
std::string refusal_of_spirv(std::span<const uint32_t> code, int bindings, const Features& features);

/// SPIR-V of a compute shader in GLSL, compiled once per process by the program glslangValidator, or the one that
/// MOKA_GLSLANG names. Errors: unsupported without it, malformed with its first message, io.
Result<std::shared_ptr<const std::vector<uint32_t>>> compile_glsl(const std::string& source);

/// A shader of this code that lives as long as the process, as pipelines do. Equal code gives the same shader.
const Shader& lasting_shader(std::span<const uint32_t> code, int bindings);

}  // namespace moka::devices::vulkan
