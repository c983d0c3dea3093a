// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "compiler/generate/generate.h"
#include "compiler/generate/source.h"

namespace moka::compiler::swift {

/// Writes the classes of a Swift file.
struct Writer {
  Interface model;
  GenerateOptions options;

  std::string access() const;

  /// The availability attribute for features of systems later than the model's; empty otherwise.
  std::string since(int version) const;

  std::string parameters(bool defaults, bool shaped = false) const;
  std::string passed() const;
  bool takes_arrays() const;

  /// The attribute of a declaration that names MLShapedArray: Macs with Intel processors lack Float16.
  std::string shaped_attribute(bool half) const;

  std::string shaped_inputs_attribute() const;
  Words words() const;
  std::string objc_name(const char* suffix) const;
  std::string image_conversion(const Field& f, const char* label) const;

  /// Initializers and setters that take a CGImage or the URL of a picture.
  std::string image_members() const;

  std::string input() const;
  std::string output() const;
  std::string states() const;
  std::string convenience(bool shaped) const;
  std::string model_class() const;
};

}  // namespace moka::compiler::swift
