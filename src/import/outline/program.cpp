// SPDX-License-Identifier: Apache-2.0
#include <map>

#include "format/proto/mil.pb.h"
#include "import/mlprogram/value.h"
#include "import/outline/parts.h"
#include "ir/type.h"

namespace moka::import {
namespace mil = proto::MILSpec;
namespace {

constexpr int kMaxBlockDepth = 16;

/// Values of a map in the order of their keys.
template <class Map>
auto sorted_by_name(const Map& map) {
  std::map<std::string, const typename Map::mapped_type*> out;
  for (const auto& [key, value] : map) out.emplace(key, &value);
  return out;
}

class ProgramReader {
 public:
  ProgramReader(const format::ModelFile& file, Outline& out) : file_(file), out_(out), files_(file.weights(), out) {}

  void function(const std::string& name, const mil::Function& function) {
    owner_ = name;
    Outline::Function f{name, opset_name(function.opset()), {}};
    const auto& blocks = function.block_specializations();
    auto body = blocks.find(function.opset());
    if (body == blocks.end() && blocks.size() == 1) body = blocks.begin();
    if (body != blocks.end())
      f.body = block(body->second, 0);
    else
      out_.faults.push_back(cat("function '", name, "': no block for opset '", function.opset(), "'"));
    f.body.inputs = typed(function.inputs());
    out_.functions.push_back(std::move(f));
  }

 private:
  std::string type_text(const mil::ValueType& type, const std::string& of) {
    auto read = import_type(type);
    if (read.ok()) return cat(*read);
    out_.faults.push_back(cat("value '", of, "': ", read.error().to_string()));
    return "?";
  }

  template <class Values>
  std::vector<Outline::Typed> typed(const Values& values) {
    std::vector<Outline::Typed> out;
    for (const auto& v : values) out.emplace_back(v.name(), type_text(v.type(), v.name()));
    return out;
  }

  Outline::Block block(const mil::Block& block, int depth) {
    Outline::Block out;
    out.inputs = typed(block.inputs());
    out.outputs.assign(block.outputs().begin(), block.outputs().end());
    for (const auto& op : block.operations()) out.operations.push_back(operation(op, depth));
    return out;
  }

  Outline::Operation operation(const mil::Operation& op, int depth) {
    Outline::Operation out;
    out.type = op.type();
    out.outputs = typed(op.outputs());
    const auto name = op.attributes().find("name");
    if (name != op.attributes().end() && name->second.immediatevalue().tensor().strings().values_size() == 1)
      out.name = name->second.immediatevalue().tensor().strings().values(0);
    if (out.name.empty() && !out.outputs.empty()) out.name = out.outputs[0].first;
    const bool constant = op.type() == "const";
    for (const auto& [parameter, argument] : sorted_by_name(op.inputs())) {
      std::vector<std::string> names;
      for (const auto& binding : argument->arguments()) {
        if (binding.has_name()) {
          names.push_back(binding.name());
          continue;
        }
        weight(weight_name(out, parameter, constant), binding.value());
        text(out, parameter, binding.value());
      }
      out.inputs.emplace_back(parameter, std::move(names));
    }
    for (const auto& [key, value] : sorted_by_name(op.attributes())) {
      if (key == "name") continue;
      weight(weight_name(out, key, constant), *value);
      text(out, key, *value);
      if (!constant) out.inputs.emplace_back(key, std::vector<std::string>());
    }
    if (op.blocks_size() > 0 && depth >= kMaxBlockDepth)
      out_.faults.push_back(cat("operation '", out.name, "': blocks nested more than ", kMaxBlockDepth, " deep"));
    else
      for (const auto& b : op.blocks()) out.blocks.push_back(block(b, depth + 1));
    return out;
  }

  static std::string weight_name(const Outline::Operation& op, const std::string& parameter, bool constant) {
    return constant ? (op.outputs.empty() ? op.name : op.outputs[0].first) : cat(op.name, ".", parameter);
  }

  /// Adds a short immediate value as text.
  void text(Outline::Operation& op, const std::string& parameter, const mil::Value& value) {
    constexpr size_t kMostBytes = 4096;
    if (!value.has_immediatevalue() || value.ByteSizeLong() > kMostBytes) return;
    if (auto constant = import_value(value, file_, nullptr); constant.ok())
      op.values.emplace_back(parameter, constant_text(*constant));
  }

  void weight(std::string name, const mil::Value& value) {
    if (!value.has_blobfilevalue() && value.immediatevalue().value_case() != mil::Value::ImmediateValue::kTensor)
      return;
    auto type = import_type(value.type());
    if (!type.ok()) {
      out_.faults.push_back(cat("weight '", name, "': ", type.error().to_string()));
      return;
    }
    if (!type->is_tensor()) return;
    Outline::Weight out;
    out.name = std::move(name);
    out.type = cat(*type);
    out.owner = owner_;
    if (type->is_concrete())
      if (auto bytes = ir::storage_bytes(type->dtype(), type->shape()); bytes.ok()) out.bytes = *bytes;
    if (value.has_blobfilevalue()) {
      out.path = value.blobfilevalue().filename();
      out.offset = value.blobfilevalue().offset();
      files_.add(std::move(out));
      return;
    }
    auto data = file_.tensor_data(value.immediatevalue().tensor());
    if (!data.ok()) {
      out_.faults.push_back(cat("weight '", out.name, "': ", data.error().to_string()));
      return;
    }
    const int64_t count = type->is_ranked() ? type->shape().count() : -1;
    if (!listed(*type, count < 0 ? data->count : static_cast<uint64_t>(count))) return;
    out.storage = "inline";
    if (out.bytes == 0) out.bytes = data->bytes.size();
    out.data = data->bytes;
    out_.weights.push_back(std::move(out));
  }

  const format::ModelFile& file_;
  Outline& out_;
  WeightFiles files_;
  std::string owner_;
};

}  // namespace

void outline_program(const mil::Program& program, const format::ModelFile& file, Outline& out) {
  ProgramReader reader(file, out);
  for (const auto& [name, function] : sorted_by_name(program.functions())) reader.function(name, *function);
}

}  // namespace moka::import
