// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "compiler/generate/source.h"

namespace moka::compiler::objective_c {

/// Writes the parts of a header and its implementation.
struct Writer {
  Interface model;

  std::string since(int version) const;

  /// The inputs that need a value, when others do not.
  std::vector<Field> required() const;

  const Field* only_image() const;
  Words words() const;
  std::string initializer(const std::vector<Field>& fields) const;

  /// Initializers that take a picture for the only image. `body` writes the rest of each.
  std::string picture_initializers(
      const std::function<std::string(const std::vector<Field>&, const char* selector)>& body) const;

  std::string picture_value(const char* source) const;
  std::string picture_setters(const std::function<std::string(const char* source)>& body) const;

  std::string input_interface() const;
  std::string output_interface() const;
  std::string model_interface() const;
  std::string assignments(const std::vector<Field>& fields) const;

  /// An image is owned by the object that holds it, since the property is not an object.
  std::string image_members(const std::vector<Field>& fields) const;

  std::string provider(const char* suffix, const std::vector<Field>& fields, const std::string& more) const;
  std::string input_implementation() const;
  std::string output_from(const char* provider) const;
  std::string states() const;
  std::string convenience() const;
  std::string model_implementation() const;
};

}  // namespace moka::compiler::objective_c
