// SPDX-License-Identifier: Apache-2.0
#include "devices/cpu/common/half_weights.h"

#include <algorithm>

#include "base/bytes.h"
#include "base/half.h"
#include "devices/cpu/common/stored_value.h"

namespace moka::devices::cpu {

bool stores_halves(const MatchCall& m, int arg) {
  if (isa() == Isa::base) return false;
  const auto stored = m.stored_in_any_format(arg);
  if (!stored) return false;
  if (stored->is_half) return true;
  if (!stored->scale.empty_handle()) return false;
  if (stored->table.empty_handle()) return stored->elements.dtype() == ir::DType::fp16;
  const auto table = stored->table.as<float>();
  return std::all_of(table.begin(), table.end(), [](float v) { return static_cast<float>(half(v)) == v; });
}

Result<std::shared_ptr<const std::byte>> pack_from_halves(
    kernel::PrepareContext& context, const kernel::StoredConstant& stored, int arg, std::string_view key, size_t bytes,
    const std::function<void(const LoadValues& load, std::byte* to)>& fill) {
  if (stored.is_half) {
    return context.pack(arg, key, bytes, [&](const ir::TensorView& value, std::byte* to) -> Status {
      fill([&](int64_t first, int64_t n, float* at) { std::copy_n(value.as<float>() + first, n, at); }, to);
      return {};
    });
  }
  return context.pack_stored(arg, key, bytes, [&](std::byte* to) -> Status {
    read_ahead(stored.elements.data(), stored.elements.bytes());
    fill([&](int64_t first, int64_t n, float* at) { stored_values(stored, first, n, at); }, to);
    drop_pages(stored.elements.data(), stored.elements.bytes());
    return {};
  });
}

}  // namespace moka::devices::cpu
