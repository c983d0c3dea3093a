// SPDX-License-Identifier: Apache-2.0
#include "devices/vulkan/shader.h"

#include <algorithm>

namespace moka::devices::vulkan {

const Shader* find_shader(std::string_view name) {
  const auto all = shaders();
  const auto at = std::find_if(all.begin(), all.end(), [&](const Shader& s) { return s.name == name; });
  return at != all.end() ? &*at : nullptr;
}

}  // namespace moka::devices::vulkan
