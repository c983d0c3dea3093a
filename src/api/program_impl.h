// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "format/source.h"
#include "ir/program.h"
#include "moka/build.h"
#include "moka/program.h"

namespace moka {

struct __attribute__((visibility("hidden"))) ProgramBuilder::Impl {
  /// A function with its description.
  struct Part {
    ir::Function* function;
    std::unique_ptr<ir::Builder> builder;
    std::vector<ir::Value*> outputs;
    FunctionDescription described;
  };

  ir::Program program;
  ir::Opset opset;
  std::vector<Part> parts;
  std::vector<ir::Builder*> nested;  ///< of the blocks that are being built, innermost last
  ModelDescription texts;
  bool described = false;  ///< the types of the program do not say everything

  explicit Impl(ir::Opset o) : opset(o) {}
  /// A specification that describes the program and does not have it. Throws invalid_argument for what Core ML does not
  /// describe.
  Message describing_model() const;
  /// The specification with the program, and its weights, which are not copied. Throws as describing_model.
  format::ModelSource write() const;
  /// The program, with its constants where `write` places them. Errors: those of ir::copy_program.
  Result<ir::Program> copy() const;
  void add(const std::string& name);
  /// Throws invalid_argument when there is no function, or one without an output.
  void check_outputs() const;
  /// The function that is being built.
  Part& part();
  ir::Builder& builder() { return nested.empty() ? *part().builder : *nested.back(); }
  ir::Value* add_input(const std::string& name, ir::Type type);
  ir::Value* add_output(Value value, const std::string& name, FeatureDescription feature);
  void add_classifier(Value probabilities, std::vector<ir::Constant> labels, const std::string& label,
                      const std::string& probabilities_name);
};

}  // namespace moka
