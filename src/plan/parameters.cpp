// SPDX-License-Identifier: Apache-2.0
#include "plan/parameters.h"

namespace moka::plan {

const ir::Tensor* held_tensor(const ir::Value& value, const ParameterValues& parameters) {
  const ir::Value* v = &value;
  while (v->producer() != nullptr && v->producer()->has_trait(ir::Trait::parameter)) {
    if (const auto it = parameters.find(v); it != parameters.end()) return &it->second;
    if (v->producer()->input("initial") == nullptr) return nullptr;
    v = v->producer()->input("initial");
  }
  return v->constant() != nullptr && !v->constant()->tensor.empty_handle() ? &v->constant()->tensor : nullptr;
}

}  // namespace moka::plan
