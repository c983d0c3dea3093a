#include <algorithm>

#include "api/internal.h"
#include "ir/text_printer.h"
#include "moka/program.h"

namespace moka {

struct ProgramBuilder::Impl {
  ir::Program program;
  ir::Function* function;
  std::unique_ptr<ir::Builder> builder;
  std::vector<ir::Value*> outputs;

  explicit Impl(ir::Opset opset) {
    program.functions.push_back(std::make_unique<ir::Function>("main", opset));
    function = program.functions[0].get();
    builder = std::make_unique<ir::Builder>(ops::table(), function->body());
  }
};

ProgramBuilder::ProgramBuilder(const std::string& opset) {
  auto o = ir::opset_from_string(opset);
  if (!o) throw Exception(ErrorKind::invalid_argument, cat("opset: expected ios15 to ios26, got '", opset, "'"));
  impl_ = std::make_unique<Impl>(*o);
}

ProgramBuilder::~ProgramBuilder() = default;
ProgramBuilder::ProgramBuilder(ProgramBuilder&&) noexcept = default;

namespace {
ir::Value* handle(ProgramBuilder::Value v) {
  if (v.handle == nullptr) throw Exception(ErrorKind::invalid_argument, "program: a value without a producer");
  return static_cast<ir::Value*>(v.handle);
}

ir::NamedArg argument(const ProgramBuilder::Argument& a) {
  struct Visitor {
    const std::string& name;
    ir::NamedArg operator()(ProgramBuilder::Value v) const { return {name, handle(v)}; }
    ir::NamedArg operator()(const std::vector<ProgramBuilder::Value>& v) const {
      std::vector<ir::Value*> values;
      for (auto x : v) values.push_back(handle(x));
      return {name, std::move(values)};
    }
    ir::NamedArg operator()(const MultiArray& a) const {
      ir::Tensor t =
          api::unwrap(ir::Tensor::zeros(api::to_ir(a.type()), ir::Shape(std::span<const int64_t>(a.shape()))));
      api::copy_array(a, t.view());
      return {name, std::move(t)};
    }
    ir::NamedArg operator()(const std::string& v) const { return {name, v}; }
    ir::NamedArg operator()(bool v) const { return {name, v}; }
    ir::NamedArg operator()(int v) const { return {name, v}; }
    ir::NamedArg operator()(float v) const { return {name, v}; }
    ir::NamedArg operator()(const std::vector<int>& v) const {
      std::vector<int64_t> wide(v.begin(), v.end());
      return {name, ir::Tensor::i32(wide)};
    }
  };
  return std::visit(Visitor{a.name}, a.value);
}
}  // namespace

ProgramBuilder::Value ProgramBuilder::input(const std::string& name, DataType type, const std::vector<int64_t>& shape) {
  for (int64_t d : shape)
    if (d < -1)
      throw Exception(ErrorKind::invalid_argument,
                      cat("input '", name, "': expected dimensions of 0 or more, or -1 for any size, got ", d));
  ir::Shape s = api::unwrap(ir::Shape::make(shape));
  return {impl_->function->body().add_input(impl_->function->unique_name(name), ir::Type::tensor(api::to_ir(type), s))};
}

std::vector<ProgramBuilder::Value> ProgramBuilder::ops(const std::string& type, std::vector<Argument> arguments,
                                                       const std::string& name) {
  ir::OpSpec spec{type, {}, name, {}, {}};
  for (const Argument& a : arguments) spec.args.push_back(argument(a));
  ir::Op* op = api::unwrap(impl_->builder->append(std::move(spec)));
  std::vector<Value> out;
  for (size_t i = 0; i < op->output_count(); i++) out.push_back({op->output(i)});
  return out;
}

ProgramBuilder::Value ProgramBuilder::op(const std::string& type, std::vector<Argument> arguments,
                                         const std::string& name) {
  auto out = ops(type, std::move(arguments), name);
  if (out.size() != 1)
    throw Exception(ErrorKind::invalid_argument, cat("operation ", type, " has ", out.size(), " outputs: use ops"));
  return out[0];
}

void ProgramBuilder::output(Value value) {
  impl_->outputs.push_back(handle(value));
  impl_->function->body().set_outputs(impl_->outputs);
}

std::string ProgramBuilder::mil() const { return ir::print_text(impl_->program); }

Model ProgramBuilder::build(const ModelConfiguration& configuration) {
  Model model = Model::from_mil(mil(), configuration);
  impl_ = std::make_unique<Impl>(impl_->function->opset);
  return model;
}

}  // namespace moka
