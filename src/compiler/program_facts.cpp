// SPDX-License-Identifier: Apache-2.0
#include "compiler/program_facts.h"

#include <algorithm>
#include <bit>
#include <cctype>
#include <span>
#include <string_view>

namespace moka::compiler {

/// Name of the folder in src/ops that defines the operation; the build generates this function.
std::string_view operation_family(std::string_view operation);

namespace {

using ir::Opset;
using Names = std::span<const std::string_view>;

bool contains(Names names, std::string_view name) { return std::find(names.begin(), names.end(), name) != names.end(); }

/// Apple's framework redefines whole families of operations that coremltools does not. docs/compiled-models.md lists
/// the operations seen in files. Other operations follow their family, the folder in src/ops.
constexpr std::string_view families_of_16[] = {"activation",    "conv", "elementwise", "linear",
                                               "normalization", "pool", "recurrent",   "reduction"};
constexpr std::string_view families_of_17[] = {"conv", "elementwise", "linear", "normalization", "reduction"};
constexpr std::string_view families_of_18[] = {"activation"};
constexpr std::string_view also_of_17[] = {"concat", "transpose"};
/// Operations that keep iOS 15's definition although coremltools or their family have later ones.
constexpr std::string_view of_15[] = {"pad", "select", "split", "stack", "tile"};

Opset defined_in(const ir::Op& op, Opset opset) {
  const std::string_view name = op.type_name();
  if (contains(of_15, name)) return Opset::ios15;
  const std::string_view family = operation_family(name);
  Opset since = op.version().since;
  auto at_least = [&](Opset v, bool redefined) {
    if (redefined && opset >= v && since < v) since = v;
  };
  at_least(Opset::ios16, contains(families_of_16, family));
  at_least(Opset::ios17, contains(families_of_17, family) || contains(also_of_17, name));
  at_least(Opset::ios18, contains(families_of_18, family));
  return since;
}

std::string camel_case(std::string_view name, bool capital) {
  std::string out;
  for (char c : name) {
    if (c == '_') {
      capital = true;
      continue;
    }
    out += capital ? static_cast<char>(std::toupper(static_cast<unsigned char>(c))) : c;
    capital = false;
  }
  return out;
}

std::string histogram_name(const ir::Op& op, Opset opset) {
  const Opset since = defined_in(op, opset);
  if (since <= Opset::ios15) return camel_case(op.type_name(), true);
  std::string prefix(to_string(since));
  prefix[0] = 'I';
  return prefix + "." + camel_case(op.type_name(), false);
}

void add_type(std::set<std::string>& to, ir::DType type) {
  if (type == ir::DType::boolean) return;
  if (std::string name = type_name(type); !name.empty()) to.insert(std::move(name));
}

void add_stored(const ir::Op& op, std::set<std::string>& storage) {
  const std::string& type = op.type_name();
  auto dtype = [&](const char* param) {
    if (const ir::Value* v = op.input(param); v != nullptr && v->type.is_tensor()) add_type(storage, v->type.dtype());
  };
  if (type == "constexpr_lut_to_dense") {
    const ir::Value* lut = op.input("lut");
    if (lut == nullptr || !lut->type.is_ranked() || lut->type.rank() == 0) return;
    const int rank = lut->type.rank();
    const int64_t entries = rank == 1 ? lut->type.shape()[0] : lut->type.shape()[rank - 2];
    if (entries > 0) storage.insert(cat("Palettized (", std::bit_width(static_cast<uint64_t>(entries)) - 1, " bits)"));
  } else if (type == "constexpr_affine_dequantize") {
    dtype("quantized_data");
  } else if (type == "constexpr_blockwise_shift_scale") {
    dtype("data");
  } else if (type.starts_with("constexpr_sparse")) {
    storage.insert("Sparse");
  } else if (op.has_trait(ir::Trait::constant) && op.output()->constant() != nullptr &&
             !op.output()->constant()->blob_path.empty()) {
    add_type(storage, op.output()->type.dtype());
  }
}

void add_block(const ir::Block& block, Opset opset, ProgramFacts& facts) {
  for (const auto& input : block.inputs())
    if (input->type.is_tensor()) add_type(facts.compute, input->type.dtype());
  for (const auto& op : block.ops()) {
    if (!op->has_trait(ir::Trait::constant)) ++facts.histogram[histogram_name(*op, opset)];
    for (size_t i = 0; i < op->output_count(); ++i)
      if (op->output(i)->type.is_tensor()) add_type(facts.compute, op->output(i)->type.dtype());
    add_stored(*op, facts.storage);
    for (size_t i = 0; i < op->block_count(); ++i) add_block(*op->block(i), opset, facts);
  }
}

}  // namespace

void ProgramFacts::add(const ProgramFacts& other) {
  for (const auto& [name, count] : other.histogram) histogram[name] += count;
  compute.insert(other.compute.begin(), other.compute.end());
  storage.insert(other.storage.begin(), other.storage.end());
}

ProgramFacts facts_of(const ir::Function& function) {
  ProgramFacts facts;
  add_block(function.body(), function.opset, facts);
  return facts;
}

std::string precision(const std::set<std::string>& types) {
  if (types.size() <= 1) return types.empty() ? "" : *types.begin();
  std::string list;
  for (const auto& type : types) list += (list.empty() ? "" : ", ") + type;
  return "Mixed (" + list + ")";
}

std::string type_name(ir::DType type) {
  using D = ir::DType;
  switch (type) {
    case D::fp16: return "Float16";
    case D::fp32: return "Float32";
    case D::fp64: return "Double";
    case D::bf16: return "BFloat16";
    case D::boolean: return "Bool";
    case D::string: return "";
    default: break;
  }
  std::string name(to_string(type));  // int32, uint8
  if (name.starts_with("uint")) return "UInt" + name.substr(4);
  if (name.starts_with("int")) return "Int" + name.substr(3);
  return name;
}

}  // namespace moka::compiler
