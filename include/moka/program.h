#pragma once

#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "moka/model.h"

namespace moka {

/// Builds an ML program in code, in the manner of MIL:
///
///   ProgramBuilder b("ios17");
///   auto x = b.input("x", DataType::float32, {1, 3, 8, 8});
///   auto y = b.op("relu", {{"x", b.op("conv", {{"x", x}, {"weight", weights}, {"pad_type", "same"}})}}, "y");
///   b.output(y);
///   Model model = b.build();
///
/// Operations are checked as they are added; every function throws Exception.
class MOKA_EXPORT ProgramBuilder {
 public:
  /// A value of the program under construction.
  struct Value {
    void* handle = nullptr;
  };
  /// A value, a tuple of values, or a constant.
  struct MOKA_EXPORT Argument {
    std::string name;
    std::variant<Value, std::vector<Value>, MultiArray, std::string, bool, int, float, std::vector<int>> value;
    template <class T>
    Argument(std::string n, T v) : name(std::move(n)), value(std::move(v)) {}
    Argument(std::string n, const char* v) : name(std::move(n)), value(std::string(v)) {}
  };

  explicit ProgramBuilder(const std::string& opset = "ios17");
  ~ProgramBuilder();
  ProgramBuilder(ProgramBuilder&&) noexcept;

  /// Adds a function input. -1 stands for a dimension of any size.
  Value input(const std::string& name, DataType type, const std::vector<int64_t>& shape);
  /// Adds an operation with one output.
  Value op(const std::string& type, std::vector<Argument> arguments, const std::string& name = {});
  /// Adds an operation with any number of outputs.
  std::vector<Value> ops(const std::string& type, std::vector<Argument> arguments, const std::string& name = {});
  void output(Value value);
  std::string mil() const;
  /// Finishes the program. The builder is empty afterwards.
  Model build(const ModelConfiguration& configuration = {});

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace moka
