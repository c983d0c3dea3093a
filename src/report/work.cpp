// SPDX-License-Identifier: Apache-2.0
#include "report/work.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <set>
#include <string_view>

namespace moka::reporting {
namespace {

/// A tensor type of MIL text with its sizes; unknown ones are 1.
struct Tensor {
  std::vector<int64_t> shape;
  double count = 1, bytes = 0;
};

double element_bytes(std::string_view element) {
  if (element == "string") return 0;
  if (element == "fp32" || element == "int32" || element == "uint32") return 4;
  if (element == "fp16" || element == "bf16" || element == "int16" || element == "uint16") return 2;
  if (element == "fp64" || element == "int64" || element == "uint64") return 8;
  if (element.ends_with("int4")) return 0.5;
  if (element == "uint1") return 1 / 8.0;
  if (element == "uint2") return 0.25;
  if (element == "uint3") return 3 / 8.0;
  if (element == "uint6") return 0.75;
  return 1;
}

std::string_view without_spaces(std::string_view text) {
  while (text.starts_with(' ')) text.remove_prefix(1);
  while (text.ends_with(' ')) text.remove_suffix(1);
  return text;
}

int64_t known_size(std::string_view text) {
  text = without_spaces(text);
  int64_t size = 1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), size);
  return error == std::errc() && end == text.data() + text.size() ? std::max<int64_t>(1, size) : 1;
}

Tensor tensor_of(std::string_view type) {
  Tensor t;
  if (!type.starts_with("tensor<")) return {{}, 0, 0};
  const size_t comma = type.find(','), open = type.find('['), close = type.find(']');
  if (open == std::string_view::npos || close == std::string_view::npos || comma == std::string_view::npos)
    return {{}, 0, 0};
  for (size_t at = open + 1; at < close;) {
    const size_t end = std::min(type.find(',', at), close);
    t.shape.push_back(known_size(type.substr(at, end - at)));
    t.count *= static_cast<double>(t.shape.back());
    at = end + 1;
  }
  t.bytes = t.count * element_bytes(without_spaces(type.substr(7, comma - 7)));
  return t;
}

/// Whether the type's name says that values are moved and not computed.
bool only_moves(std::string_view type) {
  static const std::set<std::string_view> names{"reshape",  "transpose", "concat", "split", "squeeze", "expand_dims",
                                                "identity", "cast",      "pad",    "tile",  "stack",   "reverse"};
  for (const std::string_view family :
       {"slice_", "gather", "scatter", "pixel_", "depth_to_", "space_to_", "fill", "crop"})
    if (type.starts_with(family)) return true;
  return names.contains(type) || type.ends_with("_state");
}

using NamedTensors = std::vector<std::pair<std::string, Tensor>>;

const Tensor* find_tensor(const NamedTensors& inputs, std::string_view parameter) {
  for (const auto& [name, t] : inputs)
    if (name == parameter) return &t;
  return nullptr;
}

double arithmetic_of(const std::string& type, const NamedTensors& inputs, const Tensor& out) {
  const Tensor *x = find_tensor(inputs, "x"), *weight = find_tensor(inputs, "weight");
  if (only_moves(type)) return 0;
  if (type.starts_with("conv_transpose"))
    return x != nullptr && weight != nullptr && weight->shape.size() > 1 && x->shape.size() > 1
               ? 2 * x->count * weight->count / static_cast<double>(weight->shape[0])
               : out.count;
  if (type.starts_with("conv"))
    return weight != nullptr && !weight->shape.empty()
               ? 2 * out.count * weight->count / static_cast<double>(weight->shape[0])
               : out.count;
  if (type == "linear")
    return x != nullptr && !x->shape.empty() ? 2 * out.count * static_cast<double>(x->shape.back()) : out.count;
  if (type == "matmul") {
    // [.., m, k] by [.., k, n]: the inputs have mk and kn numbers for each matrix of mn results.
    const Tensor* y = find_tensor(inputs, "y");
    if (x == nullptr || y == nullptr || x->shape.size() < 2 || out.shape.size() < 2) return out.count;
    const double m = static_cast<double>(out.shape[out.shape.size() - 2]);
    const double whole =
        static_cast<double>(x->shape[x->shape.size() - 1]) * static_cast<double>(x->shape[x->shape.size() - 2]);
    return 2 * out.count * whole / m;
  }
  if (type.ends_with("attention")) {
    const Tensor *q = find_tensor(inputs, "query"), *k = find_tensor(inputs, "key");
    if (q == nullptr || k == nullptr || q->shape.size() < 2 || k->shape.size() < 2) return out.count;
    const double keys = static_cast<double>(k->shape[k->shape.size() - 2]);
    return 2 * (q->count + out.count) * keys;
  }
  if (type == "lstm" || type == "gru" || type == "rnn") {
    double weights = 0;
    for (const auto& [name, t] : inputs)
      if (name.starts_with("weight")) weights += t.count;
    if (x == nullptr || x->shape.size() < 2) return out.count;
    return 2 * weights * static_cast<double>(x->shape[0]) * static_cast<double>(x->shape[1]);
  }
  if (type.starts_with("reduce") || type.ends_with("_norm") || type.ends_with("pool") || type == "softmax")
    return std::max(out.count, x != nullptr ? x->count : 0);
  return out.count;
}

}  // namespace

std::vector<Work> work_of(const ComputePlan& plan, const Model& model) {
  const OperationList list = model.operations();
  std::map<std::string, Tensor> values;
  for (const auto& w : list.weights) {
    values[w.name] = tensor_of(w.type);
    if (w.bytes > 0) values[w.name].bytes = static_cast<double>(w.bytes);
  }
  for (const FeatureDescription& f : model.function().inputs) {
    if (f.type != FeatureType::multi_array) continue;
    Tensor t;
    for (const int64_t d : f.array.shape) {
      t.shape.push_back(d);
      t.count *= static_cast<double>(d);
    }
    t.bytes = t.count * static_cast<double>(size_of(f.array.type));
    values[f.name] = std::move(t);
  }
  std::map<std::string, const OperationList::Operation*> by_name;
  for (const auto& o : list.operations) {
    by_name.emplace(o.name, &o);
    for (const auto& [value, type] : o.outputs) values.emplace(value, tensor_of(type));
  }
  // The plan knows sizes that the program leaves open.
  for (const PlannedOperation& p : plan.operations) {
    const auto at = by_name.find(p.name);
    if (p.kernel.empty() || at == by_name.end()) continue;
    for (size_t i = 0; i < std::min(p.outputs.size(), at->second->outputs.size()); i++)
      values[at->second->outputs[i].first] = tensor_of(p.outputs[i]);
  }
  std::vector<Work> out(plan.operations.size());
  for (size_t i = 0; i < plan.operations.size(); i++) {
    const PlannedOperation& p = plan.operations[i];
    const auto at = by_name.find(p.name);
    if (p.kernel.empty() || at == by_name.end() || at->second->type != p.type) continue;
    NamedTensors inputs;
    for (const auto& [parameter, value] : at->second->inputs) {
      const auto known = values.find(value);
      inputs.emplace_back(parameter, known != values.end() ? known->second : tensor_of(value));
      out[i].bytes += inputs.back().second.bytes;
    }
    const Tensor result = p.outputs.empty() ? Tensor{{}, 0, 0} : tensor_of(p.outputs[0]);
    for (const std::string& o : p.outputs) out[i].bytes += tensor_of(o).bytes;
    out[i].arithmetic = arithmetic_of(p.type, inputs, result) + result.count * static_cast<double>(p.fused.size());
    if (p.note.starts_with("no copy")) out[i] = {};
    const auto runs = static_cast<double>(std::max<int64_t>(1, p.runs));
    out[i].arithmetic *= runs;
    out[i].bytes *= runs;
  }
  return out;
}

Roof roof_of(const Work& work, double arithmetic, double bytes) {
  const double a = arithmetic > 0 ? work.arithmetic / arithmetic : 0, b = bytes > 0 ? work.bytes / bytes : 0;
  return {std::max(a, b), a > b};
}

}  // namespace moka::reporting
