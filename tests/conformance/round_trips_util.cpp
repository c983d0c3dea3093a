// SPDX-License-Identifier: Apache-2.0
#include "conformance/round_trips_util.h"

#include <algorithm>

#include "compiler/compiler.h"
#include "compiler/decompile.h"
#include "compiler/place_weights.h"
#include "format/archive/tar.h"
#include "format/message/message.h"
#include "format/model_file.h"
#include "import/importer.h"
#include "ir/op_def.h"
#include "ir/text_printer.h"
#include "ir/text_reader.h"

namespace moka::conformance {

using namespace ir;
using format::Message;

namespace {

constexpr size_t kMostBytes = size_t{1} << 24;  // limit for the values of one program

/// Whether the program has a parameter that only passes set. No model has one.
bool has_internal_parameter(const Program& program) {
  for (const auto& op : program.functions[0]->body().ops())
    for (const Operand& operand : op->operands())
      if (op->version().params[static_cast<size_t>(operand.param)].internal) return true;
  return false;
}

/// The first version of the specification with that operation set.
int64_t specification_version(Opset opset) {
  switch (opset) {
    case Opset::ios26: return 10;
    case Opset::ios18: return 9;
    case Opset::ios17: return 8;
    case Opset::ios16: return 7;
    default: return 6;
  }
}

/// The nearest element type that features can have.
std::string feature_dtype(DType dtype) {
  switch (dtype) {
    case DType::fp16: return "FLOAT16";
    case DType::fp64: return "DOUBLE";
    case DType::int8: return "INT8";
    default: return is_float(dtype) ? "FLOAT32" : "INT32";
  }
}

/// Dimensions that `type` leaves open are flexible if there is a `shape`, and otherwise not described.
Status describe_array(Message array, const Type& type, const Shape* shape) {
  MOKA_TRY(array.set("dataType", feature_dtype(type.dtype())));
  const bool fixed = type.is_ranked() && type.is_concrete();
  if (fixed) shape = &type.shape();
  if (shape == nullptr) return {};
  const std::vector<format::Scalar> sizes(shape->dims().begin(), shape->dims().end());
  MOKA_TRY(array.set_all("shape", sizes));
  if (fixed) return {};
  Message ranges = MOKA_TRY(array.edit("shapeRange"));
  for (int i = 0; i < shape->rank(); ++i) {
    const int64_t size = (*shape)[i];
    const bool open = !type.is_ranked() || type.shape()[i] < 0;
    Message range = MOKA_TRY(ranges.edit("sizeRanges"));
    MOKA_TRY(range.set("lowerBound", static_cast<uint64_t>(open ? std::min<int64_t>(1, size) : size)));
    MOKA_TRY(range.set("upperBound", open ? int64_t{-1} : size));
  }
  return {};
}

Status describe(Message& description, const char* field, const Value& v, const Shape* shape) {
  const bool state = v.type.is_state();
  const Type& type = state ? v.type.element(0) : v.type;
  Message feature = MOKA_TRY(description.edit(state ? "state" : field));
  MOKA_TRY(feature.set("name", v.name));
  Message kind = MOKA_TRY(feature.edit("type"));
  if (state) kind = MOKA_TRY(kind.edit("stateType"));
  if (!type.is_tensor() || type.dtype() == DType::string) {
    MOKA_TRY(kind.edit("stringType"));
    return {};
  }
  return describe_array(MOKA_TRY(kind.edit(state ? "arrayType" : "multiArrayType")), type, shape);
}

/// The case as a saved model: a specification and a weight file.
Result<format::ModelFile> saved(const Case& c, const Program& program) {
  const Function& f = *program.functions[0];
  format::WeightFile weights;
  compiler::MessageOptions options;
  options.constants_as_operations = true;
  options.place = compiler::place_in(weights, f.opset);
  std::string serialized = compiler::serialize_program(program, options);
  Message model = MOKA_TRY(Message::make("Model"));
  MOKA_TRY(model.set("specificationVersion", specification_version(f.opset)));
  Message description = MOKA_TRY(model.edit("description"));
  const auto given = MOKA_TRY(ordered_inputs(c, f));
  for (size_t i = 0; i < given.size(); ++i) {
    const Value& v = *f.body().inputs()[i];
    MOKA_TRY(describe(description, "input", v, &given[i].tensor.shape()));
  }
  for (const Value* v : f.body().outputs()) MOKA_TRY(describe(description, "output", *v, nullptr));
  const Bytes bytes = Bytes::from(std::move(serialized));
  MOKA_TRY(model.set("mlProgram", MOKA_TRY(Message::parse("MILSpec.Program", bytes))));
  return format::open_model_bytes(MOKA_TRY(model.serialize()).joined(),
                                  {{"weights/weight.bin", weights.content().joined()}});
}

Result<format::ModelFile> open_compiled(const compiler::Files& files) {
  format::FileContents contents;
  for (const auto& [name, bytes] : files) contents.emplace("m.mlmodelc/" + name, format::Rope(bytes));
  return format::open_model_bytes(format::write_tar(contents).joined(), {});
}

Result<std::vector<Tensor>> interpret(const Case& c, const format::ModelFile& file) {
  auto imported = import::import_model(file, {});
  if (!imported.ok()) return std::move(imported).error();
  return interpret(c, imported->program);
}

Result<format::ModelFile> decompile(const compiler::Files& files) {
  auto source = compiler::decompile(MOKA_TRY(open_compiled(files)));
  if (!source.ok()) return std::move(source).error();
  return format::open_model_bytes(Bytes::from(std::move(source->specification)), std::move(source->weights));
}

/// The first file that differs, empty for none. analytics/ has a hash of the specification's bytes.
std::string differing_file(const compiler::Files& a, const compiler::Files& b) {
  for (const auto* files : {&a, &b})
    for (const auto& [name, bytes] : *files) {
      if (name.starts_with("analytics/")) continue;
      const auto in_a = a.find(name), in_b = b.find(name);
      if (in_a == a.end() || in_b == b.end()) return name;
      if (in_a->second.text() != in_b->second.text())
        return cat(name, ":\n", in_a->second.text(), "\n", in_b->second.text());
    }
  return {};
}

}  // namespace

Result<std::vector<Tensor>> interpret(const Function& f, std::vector<RuntimeValue> given) {
  EvaluateOptions options;
  options.table = &ops::table();
  MemoryBudget budget(kMostBytes);
  options.budget = &budget;
  std::vector<Tensor> out;
  for (RuntimeValue& v : MOKA_TRY(evaluate(f, std::move(given), options))) out.push_back(std::move(v.tensor));
  return out;
}

Result<std::vector<Tensor>> interpret(const Case& c, const Program& program) {
  const Function& f = *program.functions[0];
  return interpret(f, MOKA_TRY(ordered_inputs(c, f)));
}

Result<std::vector<Tensor>> text(const Case& c) {
  const std::string first = print_text(MOKA_TRY(read_program(c)));
  const Program again = MOKA_TRY_IN(read_text(first, ops::table()), "printed text");
  if (const std::string second = print_text(again); first != second)
    return fail(ErrorCode::internal, "printing again gives another text:\n", first, "\n", second);
  return interpret(c, again);
}

Result<std::vector<Tensor>> message(const Case& c) {
  const Program program = MOKA_TRY(read_program(c));
  if (has_internal_parameter(program)) return interpret(c, program);
  return interpret(c, MOKA_TRY_IN(saved(c, program), "the program's message"));
}

Result<std::vector<Tensor>> compiled(const Case& c) {
  const Program program = MOKA_TRY(read_program(c));
  if (has_internal_parameter(program)) return interpret(c, program);
  const compiler::Files files = MOKA_TRY_IN(compiler::compile(MOKA_TRY(saved(c, program)), "m"), "compiling");
  return interpret(c, MOKA_TRY_IN(open_compiled(files), "the compiled model"));
}

Result<std::vector<Tensor>> decompiled(const Case& c) {
  const Program program = MOKA_TRY(read_program(c));
  if (has_internal_parameter(program)) return interpret(c, program);
  const compiler::Files files = MOKA_TRY_IN(compiler::compile(MOKA_TRY(saved(c, program)), "m"), "compiling");
  const format::ModelFile file = MOKA_TRY_IN(decompile(files), "decompiling");
  const compiler::Files again = MOKA_TRY_IN(compiler::compile(file, "m"), "compiling again");
  if (const std::string name = differing_file(files, again); !name.empty())
    return fail(ErrorCode::internal, "compiling again gives another ", name);
  return interpret(c, file);
}

}  // namespace moka::conformance
