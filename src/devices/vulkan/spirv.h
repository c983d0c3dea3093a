// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "devices/vulkan/context.h"
#include "devices/vulkan/shader.h"

/// Shaders that applications supply for their registered operations.
namespace moka::devices::vulkan {

/// Why a driver cannot run a shader; empty if it can. Reasons: not SPIR-V, no compute shader "main", a capability that
/// is not enabled, a workgroup that is too large, a resource other than storage buffers 0 to `bindings` - 1 of set 0.
std::string refusal_of_spirv(std::span<const uint32_t> code, int bindings, const Features& features);

/// The words of a shader. Error malformed: a part of one is left over.
Result<std::vector<uint32_t>> spirv_of(std::string_view bytes);

/// Compiles a compute shader in GLSL to SPIR-V, once per process. Uses the program that MOKA_GLSLANG names, otherwise
/// glslangValidator. Errors: unsupported (there is no such program), malformed (with the program's first message), io.
Result<std::shared_ptr<const std::vector<uint32_t>>> compile_glsl(const std::string& source);

/// A shader with this code. Like pipelines, it lives as long as the process. Equal code gives the same shader.
const Shader& lasting_shader(std::span<const uint32_t> code, int bindings);

}  // namespace moka::devices::vulkan
