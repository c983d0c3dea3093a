#include "import/onnx/import.h"

#include <algorithm>

#include "import/onnx/call.h"
#include "import/onnx/node.h"
#include "import/onnx/registry.h"

namespace moka::import::onnx {
namespace {

const std::vector<std::pair<std::string, OperatorImport>>& sorted() {
  static const auto* list = [] {
    auto* out = new std::vector<std::pair<std::string, OperatorImport>>();
    for (const auto& family : families())
      for (const OperatorImport& o : family) out->emplace_back(cat(o.domain, ".", o.name), o);
    std::sort(out->begin(), out->end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    return out;
  }();
  return *list;
}

/// The shape of an input, with symbols for its flexible sizes.
Shape shape_of(const format::onnx::ValueInfo& input, Context& context, std::map<std::string, int64_t>& symbols,
               std::vector<std::string>& names) {
  if (!input.type.shape)
    refuse(ErrorCode::unsupported, "input '", input.name, "': its rank is not known; give its shape");
  std::vector<int64_t> dims;
  const auto given = context.options.shapes.find(input.name);
  for (const format::onnx::Dimension& d : *input.type.shape) {
    const size_t i = dims.size();
    names.push_back(d.value ? "" : d.param);
    const auto fixed = context.options.dimensions.find(d.param);
    if (given != context.options.shapes.end() && i < given->second.size()) {
      dims.push_back(given->second[i]);
    } else if (d.value && *d.value >= 0) {
      dims.push_back(*d.value);
    } else if (!d.param.empty() && fixed != context.options.dimensions.end()) {
      dims.push_back(fixed->second);
    } else if (d.param.empty()) {
      dims.push_back(context.next_symbol--);
    } else {
      const auto [it, is_new] = symbols.emplace(d.param, context.next_symbol);
      if (is_new) --context.next_symbol;
      dims.push_back(it->second);
    }
  }
  if (given != context.options.shapes.end() && given->second.size() != dims.size())
    refuse(ErrorCode::invalid_argument, "input '", input.name, "': expected a shape of ", dims.size(), " sizes, got ",
           given->second.size());
  return need(Shape::make(dims));
}

void add_input(const format::onnx::ValueInfo& input, Scope& scope, std::map<std::string, int64_t>& symbols,
               Imported& out) {
  const format::onnx::Type& type = input.type;
  if (type.kind != format::onnx::Type::Kind::tensor)
    refuse(ErrorCode::unsupported, "input '", input.name,
           "': inputs of Core ML's programs are tensors, not sequences, optionals or maps");
  if (const auto given = scope.context.options.constants.find(input.name);
      given != scope.context.options.constants.end()) {
    const Tensor& t = given->second;
    const bool scalar = type.shape && type.shape->empty() && t.count() == 1;
    return scope.add(input.name, Item{nullptr, scalar ? t.reshaped(Shape()) : t, type.element});
  }
  const DType computed = computed_as(type.element);
  const DType outside = computed == DType::boolean ? DType::int32 : computed;
  Feature feature{input.name, nullptr, type.element, {}};
  Shape shape = shape_of(input, scope.context, symbols, feature.dimensions);
  const bool is_scalar = shape.rank() == 0;
  if (is_scalar) shape.push_back(1);
  ir::Function& f = scope.builder.function();
  feature.value = f.body().add_input(f.unique_name(identifier(input.name)), ir::Type::tensor(outside, shape));
  Value* v = feature.value;
  if (is_scalar) v = need(scope.builder.op("squeeze", {{"x", v}, {"axes", Tensor::i32({0})}}, v->name + "_scalar"));
  if (outside != computed) v = need(scope.builder.op("cast", {{"x", v}, {"dtype", "bool"}}, v->name + "_bool"));
  if (type.element != DataType::float32 && type.element != DataType::float16 && type.element != DataType::int32)
    scope.context.remark(cat("input '", input.name, "' of type ", format::onnx::to_string(type.element), " is ",
                             outside, ", because Core ML has no such inputs"));
  scope.add(input.name, Item{v, {}, type.element});
  out.inputs.push_back(std::move(feature));
}

void add_output(const format::onnx::ValueInfo& output, Scope& scope, Imported& out) {
  Item& item = scope.own(output.name);
  if (item.is_sequence)
    refuse(ErrorCode::unsupported, "output '", output.name, "': Core ML has no sequences of tensors");
  Value* v = scope.value(item, output.name);
  ir::Function& f = scope.builder.function();
  const auto named = [&](std::string_view what) { return f.unique_name(cat(identifier(output.name), what)); };
  if (v->type.dtype() == DType::boolean)
    v = need(scope.builder.op("cast", {{"x", v}, {"dtype", "int32"}}, named("_int32")));
  if (v->type.is_ranked() && v->type.rank() == 0)
    v = need(scope.builder.op("expand_dims", {{"x", v}, {"axes", Tensor::i32({0})}}, named("_vector")));
  const auto& results = out.outputs;
  const bool taken = std::any_of(results.begin(), results.end(), [&](const Feature& r) { return r.value == v; });
  if (taken || v->producer() == nullptr || v->constant() != nullptr)
    v = need(scope.builder.op("identity", {{"x", v}}, named("")));
  const std::string wanted = identifier(output.name);
  if (v->name != wanted) v->name = f.unique_name(wanted);
  out.outputs.push_back({output.name, v, item.type, {}});
}

Imported import_graph(const format::onnx::ModelFile& file, const Options& options) {
  const format::onnx::Model& model = file.model;
  Imported out;
  Context context{file, options, {}, {}};
  Opsets opsets;
  for (const format::onnx::OperatorSet& o : model.opsets) opsets[domain_of(o.domain)] = o.version;
  constexpr int64_t oldest = 1, newest = 28;
  if (const auto it = opsets.find(""); it != opsets.end() && (it->second < oldest || it->second > newest))
    refuse(ErrorCode::unsupported, "opset ", it->second, ": expected ", oldest, " to ", newest);
  out.program.functions.push_back(std::make_unique<ir::Function>("main", options.opset));
  ir::Function& f = *out.program.functions.back();
  ir::Builder builder(ops::table(), f.body());
  Scope scope(context, builder, opsets, nullptr);
  std::map<std::string, int64_t> symbols;
  std::vector<const format::onnx::ValueInfo*> inputs;
  for (const format::onnx::ValueInfo& input : model.graph.inputs) {
    const auto& tensors = model.graph.initializers;
    const auto given = [&](const format::onnx::Tensor& t) { return t.name == input.name; };
    if (std::none_of(tensors.begin(), tensors.end(), given)) add_input(input, scope, symbols, out);
  }
  run_graph(scope, model.graph);
  for (const format::onnx::ValueInfo& output : model.graph.outputs) add_output(output, scope, out);
  std::vector<Value*> results;
  for (const Feature& feature : out.outputs) results.push_back(feature.value);
  f.body().set_outputs(std::move(results));
  out.remarks = std::move(context.remarks);
  return out;
}

}  // namespace

const OperatorImport* find_operator(std::string_view domain, std::string_view name) {
  const std::string key = cat(domain, ".", name);
  const auto& list = sorted();
  const auto it = std::lower_bound(list.begin(), list.end(), key,
                                   [](const auto& entry, const std::string& k) { return entry.first < k; });
  return it != list.end() && it->first == key ? &it->second : nullptr;
}

std::vector<std::string> operators() {
  std::vector<std::string> out;
  for (const auto& [key, entry] : sorted()) out.push_back(key.starts_with(".") ? cat("ai.onnx", key) : key);
  std::sort(out.begin(), out.end());
  return out;
}

Result<Imported> import_model(const format::onnx::ModelFile& file, const Options& options) {
  try {
    return import_graph(file, options);
  } catch (Failure& f) {
    return std::move(f.error);
  }
}

}  // namespace moka::import::onnx
