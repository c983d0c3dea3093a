// SPDX-License-Identifier: Apache-2.0
#include "compress/decompress.h"

#include <map>
#include <set>

#include "compress/constants.h"
#include "compress/decompress_parts.h"
#include "compress/encode_site.h"
#include "compress/messages.h"
#include "compress/weight_files.h"
#include "editing/program.h"
#include "format/model_file.h"
#include "import/mlprogram/program.h"
#include "ir/evaluate.h"

namespace moka::compress {
namespace {

using format::Message;

bool is_expansion(std::string_view type) { return type.starts_with("constexpr_"); }

Result<bool> has_expansions(const Message& message) {
  bool out = false;
  MOKA_TRY(each(message, "MILSpec.Operation", [&](const Message& op) -> Status {
    out = out || is_expansion(MOKA_TRY(text_of(op, "type")));
    return {};
  }));
  return out;
}

/// Weights by name. There can be several, because sibling blocks may use the same name.
using Expanded = std::map<std::string, std::vector<ir::Tensor>>;

class Expander {
 public:
  Status run(const ir::Block& block) {
    for (const auto& op : block.ops()) {
      for (size_t i = 0; i < op->block_count(); ++i) MOKA_TRY(run(*op->block(i)));
      if (!is_expansion(op->type_name())) continue;
      std::vector<ir::RuntimeValue> inputs;
      for (const ir::Operand& operand : op->operands())
        for (const ir::Value* value : operand.values) inputs.emplace_back(MOKA_TRY(tensor_of(*op, *value)));
      const auto results = MOKA_TRY(ir::evaluate_op(*op, inputs));
      for (size_t i = 0; i < op->output_count(); ++i) {
        values_[op->output(i)] = results[i].tensor;
        out_[op->output(i)->name].push_back(results[i].tensor);
      }
    }
    return {};
  }
  Expanded take() { return std::move(out_); }

 private:
  Result<ir::Tensor> tensor_of(const ir::Op& op, const ir::Value& value) const {
    if (value.constant() != nullptr) return value.constant()->tensor;
    const auto it = values_.find(&value);
    if (it != values_.end()) return it->second;
    return fail(ErrorCode::unsupported, "operation '", op.name, "' (", op.type_name(), "): expected constants, got '",
                value.name, "'");
  }

  std::map<const ir::Value*, ir::Tensor> values_;
  Expanded out_;
};

Result<std::map<std::string, Expanded>> expand(const Message& model, const format::FileContents& weights) {
  const format::ModelFile file = MOKA_TRY(format::open_source(model, weights, {}));
  const import::ModelDescription description = MOKA_TRY(import::describe_model(file));
  const ir::Program program = MOKA_TRY(import::import_program(file, {}, description));
  std::map<std::string, Expanded> out;
  for (const auto& function : program.functions) {
    Expander expander;
    MOKA_TRY(expander.run(function->body()));
    out[function->name] = expander.take();
  }
  return out;
}

/// The constants of a function that belong to compressed weights.
struct Uses {
  std::set<std::string> weights;  ///< expanded values that operations or results use
  std::set<std::string> parts;    ///< constants that only the operations that expand weights read
  std::map<std::string, size_t> bytes;
};

Result<size_t> own_bytes(const Message& op, const format::WeightStore& store) {
  size_t out = 0;
  MOKA_TRY(each(op, "MILSpec.Value.BlobFileValue", [&](const Message& value) -> Status {
    out += MOKA_TRY(blob_of(value, store)).data.size();
    return {};
  }));
  return out;
}

Result<Uses> uses_of(const Message& block, const format::WeightStore& store) {
  Uses out;
  std::set<std::string> expanded, of_expansions, of_others;
  MOKA_TRY(each(block, "MILSpec.Block", [&](const Message& inner) -> Status {
    for (const format::Scalar& name : MOKA_TRY(inner.values("outputs"))) of_others.insert(std::get<std::string>(name));
    return {};
  }));
  MOKA_TRY(each(block, "MILSpec.Operation", [&](const Message& op) -> Status {
    const std::string type = MOKA_TRY(text_of(op, "type"));
    const bool expands = is_expansion(type);
    size_t bytes = expands || type == "const" ? MOKA_TRY(own_bytes(op, store)) : 0;
    MOKA_TRY(each(op, "MILSpec.Argument.Binding", [&](const Message& binding) -> Status {
      const std::string name = MOKA_TRY(text_of(binding, "name"));
      if (name.empty()) return {};
      (expands ? of_expansions : of_others).insert(name);
      if (expands) bytes += std::exchange(out.bytes[name], 0);
      return {};
    }));
    for (const std::string& name : MOKA_TRY(editing::values_defined(op))) {
      if (expands) expanded.insert(name);
      out.bytes[name] = std::exchange(bytes, 0);
    }
    return {};
  }));
  for (const std::string& name : expanded)
    if (of_others.contains(name)) out.weights.insert(name);
  for (const std::string& name : of_expansions)
    if (!of_others.contains(name) && !expanded.contains(name)) out.parts.insert(name);
  return out;
}

class Decompressor {
 public:
  Decompressor(Uses uses, Expanded* values, format::WeightFile* file, std::vector<Decompressed>& out)
      : uses_(std::move(uses)), values_(values), file_(file), out_(out) {}

  /// Lists the weights. If `Expanded` has their values, also writes them.
  Status run(Message block) {
    std::vector<Message> operations;
    for (const Message& op : MOKA_TRY(block.children("operations"))) {
      for (const Message& inner : MOKA_TRY(op.children("blocks"))) MOKA_TRY(run(inner));
      const std::string type = MOKA_TRY(text_of(op, "type"));
      if (is_expansion(type))
        MOKA_TRY(expand(op, type, operations));
      else if (type != "const" || !uses_.parts.contains(MOKA_TRY(result_name(op))))
        operations.push_back(op);
    }
    return values_ == nullptr ? Status() : block.set_all("operations", operations);
  }

 private:
  Status expand(const Message& op, const std::string& type, std::vector<Message>& operations) {
    for (const Message& output : MOKA_TRY(op.children("outputs"))) {
      const std::string name = MOKA_TRY(text_of(output, "name"));
      if (!uses_.weights.contains(name)) continue;
      const auto shape = MOKA_TRY(shape_of(MOKA_TRY(output.child("type"))));
      const std::string element =
          MOKA_TRY(text_of(MOKA_TRY(MOKA_TRY(output.child("type")).child("tensorType")), "dataType"));
      Decompressed made{name, type, shape.value_or(Shape()), element == "FLOAT16"};
      made.bytes_before = uses_.bytes[name];
      made.bytes_after = static_cast<size_t>(count_of(made.shape)) * (made.half ? 2 : sizeof(float));
      if (values_ != nullptr) operations.push_back(MOKA_TRY(constant(name, made)));
      out_.push_back(std::move(made));
    }
    return {};
  }

  Result<Message> constant(const std::string& name, const Decompressed& made) {
    const ir::Tensor tensor = (*values_)[name].at(next_[name]++);
    const bool floats = tensor.dtype() == (made.half ? ir::DType::fp16 : ir::DType::fp32);
    if (!floats || tensor.bytes() != made.bytes_after)
      return fail(ErrorCode::unsupported, "weight '", name, "': expected floats, got ", to_string(tensor.dtype()));
    const Bytes data{{static_cast<const std::byte*>(tensor.data()), tensor.bytes()}, tensor.owner()};
    Message value = MOKA_TRY(Message::make("MILSpec.Value"));
    MOKA_TRY(set_value(value, {made.half ? format::BlobType::float16 : format::BlobType::float32, made.shape, data},
                       *file_));
    return editing::make_constant(name, value);
  }

  Uses uses_;
  Expanded* values_;
  format::WeightFile* file_;
  std::vector<Decompressed>& out_;
  std::map<std::string, size_t> next_;
};

}  // namespace

Result<std::vector<Decompressed>> decompress_programs(format::ModelSource& source, bool write) {
  std::vector<Decompressed> out;
  if (!MOKA_TRY(has_expansions(source.specification))) return out;
  const format::WeightStore store = store_of(source);
  format::WeightFile file;
  MOKA_TRY(each(source.specification, "Model", [&](const Message& model) -> Status {
    if (MOKA_TRY(model.count("mlProgram")) == 0 || !MOKA_TRY(has_expansions(model))) return {};
    std::map<std::string, Expanded> values;
    if (write) values = MOKA_TRY(expand(model, source.weights));
    for (const editing::ProgramFunction& function : MOKA_TRY(editing::program_functions(model))) {
      Decompressor writer(MOKA_TRY(uses_of(function.block, store)), write ? &values[function.name] : nullptr, &file,
                          out);
      MOKA_TRY(writer.run(function.block));
    }
    return {};
  }));
  if (write) MOKA_TRY(finish(source, store, file));
  return out;
}

Result<std::vector<Decompressed>> decompress(format::ModelSource& source) {
  std::vector<Decompressed> out = MOKA_TRY(decompress_programs(source, true));
  for (Decompressed& weight : MOKA_TRY(decompress_networks(source.specification, true)))
    out.push_back(std::move(weight));
  return out;
}

Result<std::vector<Decompressed>> compressed_weights_of(const format::ModelSource& source) {
  format::ModelSource same = source;
  std::vector<Decompressed> out = MOKA_TRY(decompress_programs(same, false));
  for (Decompressed& weight : MOKA_TRY(decompress_networks(same.specification, false)))
    out.push_back(std::move(weight));
  return out;
}

}  // namespace moka::compress
