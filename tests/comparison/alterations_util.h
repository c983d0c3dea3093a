// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <random>
#include <string>
#include <vector>

#include "moka/edit.h"

namespace moka::comparison_test {

/// A number that a model holds: an element of a weight, or a parameter.
struct Leaf {
  std::string operation;  ///< the operation or layer, or the constant, that holds it
  std::string path;       ///< "innerProduct.weights.floatValue"
  Message message;        ///< that has the field, when `file` is empty
  std::string field;
  std::string file;     ///< of weights
  uint64_t offset = 0;  ///< of the record in it
  bool is_weight = false;
};

/// The numbers in the layers of a network, or in the constants of an ML program. They refer to `source`, so changing
/// them changes it.
std::vector<Leaf> leaves_of(const ModelSource& source);

/// Changes one element: a number by a thousandth or so if `small`, else by a few times its size; a truth value to its
/// opposite. False: it cannot be changed.
bool alter(ModelSource& source, const Leaf& leaf, bool small, std::mt19937& random);

}  // namespace moka::comparison_test
