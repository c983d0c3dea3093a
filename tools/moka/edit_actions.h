// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <list>
#include <string>
#include <string_view>
#include <vector>

#include "arguments.h"
#include "moka/build.h"

namespace moka::cli {

/// An option of `moka edit` that changes the model.
struct EditAction {
  std::string_view name;   ///< "--rename"
  std::string_view value;  ///< of the option, for the help; empty: a flag
  std::string_view help;
  ModelSource (*apply)(const ModelSource& model, const std::string& value);
  /// Set instead of `apply` where the action needs the model's name.
  ModelSource (*apply_named)(const ModelSource& model, const std::string& value, const std::string& name) = nullptr;
};

/// "Net" for "models/Net.mlpackage".
std::string name_of_model(const std::string& path);

/// nullptr: the option changes nothing.
const EditAction* edit_action(std::string_view name);

/// Memory for the values of the options; Arguments::given has them in order.
struct EditOptions {
  std::list<std::vector<std::string>> values;
  std::list<bool> flags;
};
void add_edit_options(Arguments app, EditOptions& options);

}  // namespace moka::cli
