// SPDX-License-Identifier: Apache-2.0
#include "import/neuralnetwork/recurrent.h"

#include "ops/common/recurrent.h"

namespace moka::import::nn {

Result<std::string> activation_name(Layer& l, const proto::ActivationParams& a) {
  auto with = [](std::string name, const auto& p, float alpha, float beta) {
    const bool usual = (p.alpha() == 0 && p.beta() == 0) || (p.alpha() == alpha && p.beta() == beta);
    return usual ? name : ops::gate_text(name, p.alpha(), p.beta());
  };
  switch (a.NonlinearityType_case()) {
    case proto::ActivationParams::kLinear: return with("linear", a.linear(), 1, 0);
    case proto::ActivationParams::kSigmoid: return std::string("sigmoid");
    case proto::ActivationParams::kTanh: return std::string("tanh");
    case proto::ActivationParams::kReLU: return std::string("relu");
    case proto::ActivationParams::kSigmoidHard: return with("hard_sigmoid", a.sigmoidhard(), 0.2f, 0.5f);
    case proto::ActivationParams::kScaledTanh: return with("scaled_tanh", a.scaledtanh(), 1, 1);
    case proto::ActivationParams::NONLINEARITYTYPE_NOT_SET: return l.malformed("no activation function is given");
    default:
      return l.unsupported(
          cat("expected linear, sigmoid, tanh, ReLU, sigmoidHard or scaledTanh as the activation of a "
              "recurrent layer, got member ",
              static_cast<int>(a.NonlinearityType_case()), " of ActivationParams"));
  }
}

Result<std::vector<std::string>> activation_names(
    Layer& l, const google::protobuf::RepeatedPtrField<proto::ActivationParams>& list, int n) {
  if (list.size() != n) return l.malformed(cat("expected ", n, " activations, got ", list.size()));
  std::vector<std::string> names;
  for (const auto& a : list) names.push_back(MOKA_TRY(activation_name(l, a)));
  return names;
}

Result<RecurrentSizes> recurrent_sizes(Layer& l, uint64_t input, uint64_t hidden) {
  MOKA_TRY(l.shape({hidden, input}, "weights"));
  Shape s = MOKA_TRY(l.shape({4, hidden, hidden}, "recursion weights"));
  return RecurrentSizes{static_cast<int64_t>(input), s[1]};
}

Result<Tensor> stack_gates(Layer& l, const Weights& gates, int64_t hidden, int64_t columns, std::string_view what,
                           std::span<const float> sign) {
  Shape one = columns == 0 ? Shape{hidden} : Shape{hidden, columns};
  Shape all = one;
  all[0] *= static_cast<int64_t>(gates.size());
  int64_t n = MOKA_TRY(all.checked_count()) / static_cast<int64_t>(gates.size());
  for (const auto* g : gates)
    if (MOKA_TRY(l.count(*g, what)) < n) return l.malformed(cat(what, ": expected ", n, " numbers for each gate"));
  if (const auto& budget = l.net.context().options.budget)
    MOKA_TRY(budget->take(static_cast<size_t>(all.count()) * 4, what));
  Tensor t = MOKA_TRY(Tensor::zeros(DType::fp32, all));
  float* out = t.mut<float>().data();
  for (size_t i = 0; i < gates.size(); i++) {
    Tensor gate = MOKA_TRY(l.numbers(*gates[i], one, what));
    const float* in = gate.as<float>().data();
    float s = sign.empty() ? 1.0f : sign[i];
    for (int64_t k = 0; k < n; k++) out[static_cast<int64_t>(i) * n + k] = s * in[k];
  }
  return t;
}

Result<Value*> sequence_of(Layer& l, int64_t size) {
  Blob* b = MOKA_TRY(l.blob(0));
  if (b->rank() != 5) return l.malformed(cat("expected an input of rank 5, got rank ", b->rank()));
  Value* x = nullptr;
  if (b->form(Form::matrix) != nullptr && (b->dims[0].size == 1 || b->dims[1].size == 1)) {
    Value* m = MOKA_TRY(l.in(0, Form::matrix));
    x = MOKA_TRY(l.op("expand_dims", {{"x", m}, {"axes", Ints{b->dims[0].size == 1 ? 0 : 1}}}));
  } else {
    x = MOKA_TRY(l.op("squeeze", {{"x", MOKA_TRY(l.in(0))}, {"axes", Ints{3, 4}}}));
  }
  int64_t got = x->type.shape()[2];
  if (got >= 0 && got != size) return l.malformed(cat("expected vectors of ", size, " numbers, got ", got));
  return x;
}

Result<Value*> state_of(Layer& l, int i, Value* x, int64_t hidden) {
  if (i < l.inputs()) {
    Blob* b = MOKA_TRY(l.blob(i));
    if (b->rank() == 5 && b->dims[0].size == 1 && b->dims[3].size == 1 && b->form(Form::matrix) != nullptr)
      return l.in(i, Form::matrix);
    Value* v = MOKA_TRY(l.in(i));
    if (v->type.rank() != 5) return l.malformed(cat("expected a state of rank 5, got ", v->type));
    const Shape& shape = v->type.shape();
    auto may = [&](int axis, int64_t size) { return shape[axis] < 0 || shape[axis] == size; };
    const bool usual = may(0, 1) && may(2, hidden) && may(3, 1) && may(4, 1);
    // Converters also write [batch, hidden, 1, 1, 1].
    const bool batch_first = may(1, hidden) && may(2, 1) && may(3, 1) && may(4, 1);
    if (!usual && !batch_first)
      return l.malformed(
          cat("input '", l.p.input(i), "': expected a state of shape [1, batch, ", hidden, ", 1, 1], got ", v->type));
    if (shape[3] != 1 || shape[4] != 1) return l.op("reshape", {{"x", v}, {"shape", Tensor::i32({-1, hidden})}});
    if (usual && shape[0] == 1) return l.op("squeeze", {{"x", v}, {"axes", Ints{0, 3, 4}}});
    if (batch_first && shape[2] == 1) return l.op("squeeze", {{"x", v}, {"axes", Ints{2, 3, 4}}});
    return l.op("reshape", {{"x", v}, {"shape", Tensor::i32({-1, hidden})}});
  }
  std::vector<Dim> dims = dims_of(x);
  dims.erase(dims.begin());
  dims[1] = Dim{hidden};
  Value* shape = MOKA_TRY(l.net.shape_value(dims, l.p.name()));
  return l.op("fill", {{"shape", shape}, {"value", 0.0f}});
}

Status set_sequence(Layer& l, int i, Value* y) {
  if (i >= l.outputs()) return {};
  return l.set(i, MOKA_TRY(l.op("expand_dims", {{"x", y}, {"axes", Ints{3, 4}}})));
}

Status set_state(Layer& l, int i, Value* h) {
  if (i >= l.outputs()) return {};
  return l.set_folded(i, h, Form::matrix, {Dim{1}, dims_of(h)[0]});
}

}  // namespace moka::import::nn
