// SPDX-License-Identifier: Apache-2.0
#include "import/registered_models.h"
#include "ir/registered.h"
#include "moka/custom.h"

namespace moka {

struct RegistrationScope::Registered {
  ir::RegisteredClasses classes = ir::registered_classes();
  import::RegisteredModels models = import::registered_models();
};

RegistrationScope::RegistrationScope() : before_(std::make_unique<Registered>()) {}

RegistrationScope::~RegistrationScope() {
  ir::set_registered_classes(std::move(before_->classes));
  import::set_registered_models(std::move(before_->models));
}

}  // namespace moka
