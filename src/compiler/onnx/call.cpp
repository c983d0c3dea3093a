// SPDX-License-Identifier: Apache-2.0
#include "compiler/onnx/call.h"

#include <algorithm>

#include "ir/evaluate.h"
#include "ops/common/common.h"

namespace moka::compiler::onnx {

std::optional<ir::Tensor> evaluated(const ir::Value* v) {
  if (const ir::Constant* c = v->constant(); c != nullptr)
    return c->tensor.empty_handle() ? std::nullopt : std::optional(c->tensor);
  const ir::Op* op = v->producer();
  if (op == nullptr || !op->has_trait(ir::Trait::constexpr_weight)) return std::nullopt;
  std::vector<ir::RuntimeValue> inputs;
  for (const ir::Operand& o : op->operands())
    for (const ir::Value* i : o.values) {
      auto t = evaluated(i);
      if (!t) return std::nullopt;
      inputs.emplace_back(std::move(*t));
    }
  auto out = ir::evaluate_op(*op, inputs);
  if (!out) return std::nullopt;
  return (*out)[static_cast<size_t>(v->index())].tensor;
}

Call::Call(Graph& g, const ir::Op& o) : graph(g), op(o), first_(g.open_nodes()), static_(o) {}

int Call::rank(const char* param) {
  if (type(param).is_ranked()) return type(param).rank();
  refuse(cat("the rank of ", param, " is not known"));
  return 0;
}

Name Call::x(const ir::Value* v) {
  if (v == nullptr) return {};
  Name n = graph.value(v);
  if (n.empty()) refuse(cat("its input '", v->name, "' has no tensor in the graph"));
  return n;
}

Name Call::x(const char* param) {
  if (const ir::Value* v = op.input(param)) return x(v);
  const ir::ParamDef* p = op.version().param(param);
  if (p == nullptr || !p->has_default() || p->default_value.tensor.empty_handle()) return {};
  return graph.tensor(p->default_value.tensor);
}

Name Call::x_as(const char* param, DType type) {
  const ir::Value* v = op.input(param);
  if (v == nullptr || v->type.dtype() == type) return x(param);
  if (v->constant() == nullptr) return cast(x(v), type);
  return graph.tensor(converted(v->constant()->tensor, type));
}

ir::Tensor Call::converted(const ir::Tensor& from, DType type) {
  if (from.dtype() == type) return from;
  ir::Tensor to = take(ir::Tensor::uninitialized(type, from.shape()), from);
  for (int64_t i = 0; i < from.count() && !refused(); i++) ir::store_f64(to.view(), i, ir::load_f64(from.view(), i));
  return to;
}

Name Call::int64(const char* param) {
  const ir::Value* v = op.input(param);
  if (v == nullptr) return {};
  Name n = graph.int64(v);
  if (n.empty()) refuse(cat("its input '", v->name, "' has no tensor in the graph"));
  return n;
}

std::optional<ir::Tensor> Call::constant(const char* param) {
  const ir::Value* v = op.input(param);
  if (v == nullptr) return std::nullopt;
  return evaluated(v);
}

int64_t Call::integer(const char* param) { return take(known().integer(param)); }
double Call::number(const char* param) {
  const ir::TensorView* v = known().value(param);
  if (v != nullptr && v->count() == 1 && v->dtype == DType::boolean) return static_cast<double>(ir::load_i64(*v, 0));
  return take(known().number(param));
}
bool Call::flag(const char* param) { return take(known().flag(param)); }
std::string Call::text(const char* param) { return std::string(take(known().text(param))); }

std::vector<int64_t> Call::ints(const char* param) {
  const ir::TensorView* v = known().value(param);
  std::vector<int64_t> out;
  if (v == nullptr) return refuse(cat(param, " is not a constant")), out;
  for (int64_t i = 0; i < v->count(); i++) out.push_back(ir::load_i64(*v, i));
  return out;
}

int Call::axis(const char* param, int rank) { return take(ir::normalize_axis(integer(param), rank, param)); }

std::vector<Name> Call::nodes(const char* type, std::vector<Name> inputs, std::vector<ox::Attribute> attributes,
                              size_t outputs, const char* domain) {
  return graph.nodes(type, std::move(inputs), std::move(attributes), outputs,
                     op.output_count() > 0 ? op.output()->name : op.name, domain);
}

Name Call::node(const char* type, std::vector<Name> inputs, std::vector<ox::Attribute> attributes) {
  return nodes(type, std::move(inputs), std::move(attributes), 1)[0];
}

Name Call::ml(const char* type, std::vector<Name> inputs, std::vector<ox::Attribute> attributes) {
  return nodes(type, std::move(inputs), std::move(attributes), 1, "ai.onnx.ml")[0];
}

Name Call::cast(const Name& x, DataType to) { return node("Cast", {x}, {attr("to", static_cast<int64_t>(to))}); }
Name Call::cast(const Name& x, DType to) { return cast(x, data_type(to)); }

Name Call::reshape(const Name& x, std::vector<int64_t> dims, bool empty) {
  if (empty && std::find(dims.begin(), dims.end(), 0) != dims.end())
    return node("Reshape", {x, i64(std::move(dims))}, {attr("allowzero", true)});
  return node("Reshape", {x, i64(std::move(dims))});
}

Name Call::transpose(const Name& x, std::vector<int64_t> perm) {
  if (std::is_sorted(perm.begin(), perm.end())) return x;
  return node("Transpose", {x}, {attr("perm", std::move(perm))});
}

Name Call::slice(const Name& x, int64_t axis, int64_t begin, int64_t end, int64_t step) {
  return node("Slice", {x, i64({begin}), i64({end}), i64({axis}), step == 1 ? Name() : i64({step})});
}

Name Call::reduce(const char* type, const Name& x, const std::vector<int64_t>& axes, bool keep) {
  constexpr int with_input = 18;
  if (graph.opset() >= with_input || std::string_view(type) == "ReduceSum")
    return node(type, {x, axes.empty() ? Name() : i64(axes)}, {attr("keepdims", keep)});
  if (axes.empty()) return node(type, {x}, {attr("keepdims", keep)});
  return node(type, {x}, {attr("axes", axes), attr("keepdims", keep)});
}

Name Call::pad(const Name& x, const std::vector<int64_t>& pads, double value, DType type) {
  if (std::all_of(pads.begin(), pads.end(), [](int64_t p) { return p == 0; })) return x;
  return node("Pad", {x, i64(pads), scalar(type, value)});
}

void Call::set(const Name& name, size_t i) {
  const ir::Value* v = op.output(i);
  const bool made = graph.rename_recent(name, v->name, first_);
  graph.set(v, made ? v->name : name);
}

void Call::set_int64(const Name& name, size_t i) {
  const ir::Value* v = op.output(i);
  if (v->type.dtype() == DType::int64) return set(name, i);
  graph.set_int64(v, name);
}

bool Call::needs(int opset) {
  if (wants(opset)) return true;
  refuse(cat("needs opset ", opset, ", got ", graph.opset()));
  return false;
}

void Call::refuse(std::string reason) {
  if (!reason_) reason_ = std::move(reason);
}

const OpWriter* find_writer(std::string_view op) {
  for (const auto& family : writers())
    for (const OpWriter& w : family)
      if (w.op == op) return &w;
  return nullptr;
}

namespace {

bool is_written(Graph& graph, const ir::Op& op) {
  for (size_t i = 0; i < op.output_count(); i++)
    if (!graph.value(op.output(i)).empty()) return true;
  return false;
}

}  // namespace

void write_block(Graph& graph, const ir::Block& block, std::vector<Unexpressed>& missing, int& operations) {
  for (const auto& op : block.ops()) {
    if (op->has_trait(ir::Trait::constant)) continue;
    operations++;
    const auto refuse = [&](std::string reason) { missing.push_back({op->name, op->type_name(), std::move(reason)}); };
    // Weights in a block are expanded in the main graph, so that a loop does not expand them in each iteration.
    // onnxruntime 1.32 rejects an inner graph in which a MatMul reads the result of DequantizeLinear.
    std::optional<Graph::InMainGraph> outside;
    if (graph.depth() > 0 && op->has_trait(ir::Trait::constexpr_weight)) {
      if (is_written(graph, *op)) continue;
      outside.emplace(graph);
    }
    Call call(graph, *op);
    const OpWriter* writer = find_writer(op->type_name());
    if (writer != nullptr) writer->write(call);
    if (writer == nullptr) call.refuse("ONNX has no such operation");
    if (call.refused()) refuse(*call.reason());
    for (const Unexpressed& u : call.inner) missing.push_back(u);
    operations += call.inner_operations;
    for (size_t i = 0; i < op->output_count(); i++)
      if (call.refused()) graph.set(op->output(i), op->output(i)->name);
  }
}

}  // namespace moka::compiler::onnx
