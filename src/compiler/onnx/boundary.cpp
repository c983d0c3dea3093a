// SPDX-License-Identifier: Apache-2.0
#include "compiler/onnx/boundary.h"

#include <cmath>
#include <nlohmann/json.hpp>

namespace moka::compiler::onnx {
namespace {

using import::FeatureDescription;
using import::FeatureKind;
using nlohmann::json;

const FeatureDescription* find(const std::vector<FeatureDescription>& features, const std::string& name) {
  for (const FeatureDescription& f : features)
    if (f.name == name) return &f;
  return nullptr;
}

/// The value that an optional input has when it is missing.
double fill_of(const FeatureDescription& f) {
  if (f.kind == FeatureKind::float64 || f.threshold) return f.threshold.value_or(std::nan(""));
  return f.kind == FeatureKind::int64 ? -1 : f.array.default_value.value_or(0);
}

/// An initializer with the input's name, which a caller may override.
Status add_default(Graph& graph, const FeatureDescription& f, const ir::Type& type) {
  constexpr int64_t most = 1 << 20;
  if (!type.is_tensor() || !type.is_concrete() || type.dtype() == DType::string) return {};
  ir::Tensor t = MOKA_TRY(ir::Tensor::zeros(type.dtype(), type.shape()));
  if (t.count() > most) return {};
  const double fill = fill_of(f);
  for (int64_t i = 0; fill != 0 && i < t.count(); i++) ir::store_f64(t.view(), i, fill);
  ox::Tensor out;
  out.name = f.name;
  out.type = data_type(type.dtype());
  out.dims = type.shape().to_vector();
  out.raw = Bytes::copy_of({static_cast<const std::byte*>(t.data()), t.bytes()});
  graph.main().initializers.push_back(std::move(out));
  return {};
}

std::string state_output(const std::string& state) { return state + "_out"; }

/// Whether a node of the main graph computes the tensor, so that it may get another name.
bool is_made(const Graph& graph, const ox::Graph& main, const Name& name) {
  if (graph.is_initializer(name)) return false;
  for (const ox::ValueInfo& i : main.inputs)
    if (i.name == name) return false;
  for (const ox::ValueInfo& o : main.outputs)
    if (o.name == name) return false;
  for (const ox::Node& n : main.nodes)
    for (const Name& o : n.outputs)
      if (o == name) return true;
  return false;
}

/// A type of that rank whose sizes are unknown: ONNX wants the ranks of outputs.
ir::Type unknown(const ir::Type& type, size_t rank) {
  ir::Shape s;
  for (size_t i = 0; i < rank; i++) s.push_back(ir::kAnyDim);
  return ir::Type::tensor(type.dtype(), s);
}

/// Adds the output `name`, which is the tensor `made` under a new name if possible.
void add_output(Graph& graph, const std::string& name, Name made, const ir::Type& type, const ir::Shape* described) {
  ir::Type shown = type;
  if (described != nullptr && !(*described == type.shape())) {
    made = graph.nodes("Reshape", {made, graph.int64s(described->dims())}, {}, 1, name)[0];
    shown = ir::Type::tensor(type.dtype(), *described);
  }
  if (made != name) {
    // Another tensor that already has the output's name is renamed.
    if (is_made(graph, graph.main(), name)) graph.rename(name, graph.fresh(name + "_inner"));
    if (is_made(graph, graph.main(), made))
      graph.rename(made, name);
    else
      graph.rename(graph.nodes("Identity", {made}, {}, 1, name)[0], name);
  }
  graph.main().outputs.push_back(value_info(name, shown));
}

}  // namespace

Status add_inputs(Graph& graph, const ir::Function& function, const import::FunctionDescription& described) {
  for (const FeatureDescription& f : described.outputs) graph.reserve(f.name);
  for (const auto& v : function.body().inputs()) {
    const bool state = v->type.is_state();
    const ir::Type& type = state ? v->type.element() : v->type;
    if (!type.is_tensor() && !type.is_dict())
      return fail(ErrorCode::unsupported, "input '", v->name, "': a graph of ONNX takes no value of type ", type);
    graph.claim(v->name);
    ox::ValueInfo info = value_info(v->name, type);
    for (size_t i = 0; info.type.shape && i < info.type.shape->size(); i++) {
      ox::Dimension& d = (*info.type.shape)[i];
      if (!d.value && d.param.empty()) d.param = cat(v->name, "_", i);
    }
    graph.main().inputs.push_back(std::move(info));
    if (const FeatureDescription* f = find(described.inputs, v->name); f != nullptr && f->optional)
      MOKA_TRY(add_default(graph, *f, type));
    if (state)
      graph.states[v.get()] = v->name;
    else
      graph.set(v.get(), v->name);
  }
  return {};
}

Status add_outputs(Graph& graph, const ir::Function& function, const import::FunctionDescription& described) {
  const auto outputs = function.body().outputs();
  for (size_t i = 0; i < outputs.size(); i++) {
    const ir::Value* v = outputs[i];
    const bool known = i < described.outputs.size();
    const std::string name = known ? described.outputs[i].name : v->name;
    const auto as = graph.represented.find(v);
    const ir::Type& type = as != graph.represented.end() ? as->second : v->type;
    const Name made = graph.value(v);
    if (made.empty() || !type.is_tensor())
      return fail(ErrorCode::unsupported, "output '", name, "': a graph of ONNX gives no value of type ", type);
    std::optional<ir::Shape> shape;
    if (known && described.outputs[i].kind == FeatureKind::multi_array && type.is_ranked() && type.is_concrete()) {
      auto d = ir::Shape::make(described.outputs[i].array.shape);
      if (d && !d->dims().empty() && d->is_concrete()) {
        const auto count = d->checked_count();
        if (count && *count == type.shape().count()) shape = *d;
      }
    }
    if (!type.is_ranked() && (!known || described.outputs[i].array.rank() == 0))
      return fail(ErrorCode::unsupported, "output '", name,
                  "': its rank is not known, and ONNX wants those of outputs");
    const size_t rank = known ? described.outputs[i].array.rank() : 0;
    add_output(graph, name, made, type.is_ranked() || rank == 0 || rank > ir::kMaxRank ? type : unknown(type, rank),
               shape ? &*shape : nullptr);
  }
  for (const auto& v : function.body().inputs())
    if (v->type.is_state()) add_output(graph, state_output(v->name), graph.states[v.get()], v->type.element(), nullptr);
  return {};
}

ox::Properties metadata(const import::FunctionDescription& described, const import::ModelDescription& model) {
  ox::Properties out;
  const auto add = [&](const char* key, const std::string& value) {
    if (!value.empty()) out.emplace_back(key, value);
  };
  add("author", model.author);
  add("license", model.license);
  add("version", model.version);
  for (const auto& [key, value] : model.user_defined) out.emplace_back(key, value);
  json images = json::object();
  for (const auto* list : {&described.inputs, &described.outputs})
    for (const FeatureDescription& f : *list) {
      if (f.kind != FeatureKind::image) continue;
      constexpr const char* colors[] = {"grayscale", "rgb", "bgr", "grayscale_float16"};
      images[f.name] = {{"color", colors[static_cast<int>(f.image.color)]},
                        {"layout", "NCHW"},
                        {"range", {0, 255}},
                        {"width", f.image.width},
                        {"height", f.image.height}};
    }
  if (!images.empty()) add("moka.images", images.dump());
  if (!model.class_labels.empty()) {
    const ir::Tensor& t = model.class_labels[0];
    json labels = json::array();
    for (int64_t i = 0; i < t.count(); i++)
      if (t.dtype() == DType::string)
        labels.push_back(t.as<std::string>()[static_cast<size_t>(i)]);
      else
        labels.push_back(ir::load_i64(t.view(), i));
    add("moka.classes", labels.dump(-1, ' ', false, json::error_handler_t::replace));
  }
  json states = json::object();
  for (const FeatureDescription& f : described.states) states[f.name] = state_output(f.name);
  if (!states.empty()) add("moka.states", states.dump());
  return out;
}

}  // namespace moka::compiler::onnx
