// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <initializer_list>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "moka/model.h"

namespace moka::test {

using Json = nlohmann::json;

/// A small neural network of tests/golden/nn_layers, with inputs and the outputs that NumPy gives.
struct Case {
  std::string group, name;
  Json data;
  std::string specification() const;
  Model model(const ModelConfiguration& c = {}) const;
  Features inputs() const;
  double tolerance() const { return data.at("tolerance"); }
};
std::vector<Case> cases(std::initializer_list<const char*> groups);

/// An array of a case's inputs or outputs.
MultiArray array(const Json& v);

}  // namespace moka::test
