// SPDX-License-Identifier: Apache-2.0
#include "compiler/generate/swift/writer.h"

#include <algorithm>
#include <cstdlib>
#include <tuple>

#include "base/error.h"
#include "compiler/generate/swift/fields.h"

namespace moka::compiler::swift {

std::string Writer::access() const { return options.public_access ? "public " : ""; }

std::string Writer::since(int version) const { return version > model.specification_version ? available(version) : ""; }

std::string Writer::parameters(bool defaults, bool shaped) const {
  return each(model.inputs, ", ", [&](const Field& f) {
    return cat(f.identifier, ": ", type_of(f, shaped), defaults && f.feature.optional ? " = nil" : "");
  });
}

std::string Writer::passed() const {
  return each(model.inputs, ", ", [](const Field& f) { return cat(f.identifier, ": ", f.identifier); });
}

bool Writer::takes_arrays() const { return std::any_of(model.inputs.begin(), model.inputs.end(), is_array); }

std::string Writer::shaped_attribute(bool half) const {
  const std::string general = since(with_shaped_arrays);
  std::string out = general.empty() ? "" : cat("    ", general, "\n");
  if (!half) return out;
  out +=
      "    #if (os(macOS) || targetEnvironment(macCatalyst)) && arch(x86_64)\n"
      "    @available(macOS, unavailable)\n    @available(macCatalyst, unavailable)\n";
  if (model.specification_version < with_half_on_mac) out += "    #else\n    @available(macOS 15.0, *)\n";
  return out + "    #endif\n";
}

std::string Writer::shaped_inputs_attribute() const {
  return shaped_attribute(std::any_of(model.inputs.begin(), model.inputs.end(),
                                      [](const Field& f) { return is_array(f) && element(f) == "Float16"; }));
}

Words Writer::words() const {
  const bool any = std::atoi(options.swift_version.c_str()) >= 6;
  return {{"class", model.class_name},
          {"resource", literal(model.resource, true)},
          {"access", access()},
          {"available", available(model.specification_version)},
          {"any", any ? "any " : ""},
          {"base", options.global_module ? "NSObject, MLFeatureProvider" : "MLFeatureProvider"},
          {"model_base", options.global_module ? " : NSObject" : ""},
          {"override", options.global_module ? "override " : ""},
          {"parameters", parameters(true)},
          {"passed", passed()}};
}

std::string Writer::objc_name(const char* suffix) const {
  return options.global_module ? cat("@objc(", model.class_name, suffix, ")\n@objcMembers\n") : "";
}

}  // namespace moka::compiler::swift
