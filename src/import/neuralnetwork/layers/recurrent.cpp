#include "ops/common/recurrent.h"

#include "import/neuralnetwork/network.h"

namespace moka::import::nn {

namespace {

using Weights = std::vector<const proto::WeightParams*>;

/// MIL's name of a recurrent layer's activation, with its parameters unless they are MIL's defaults. Writers may omit
/// the parameters (both are then 0); this means f(x) = x, tanh(x) and 0.2 x + 0.5.
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

struct Sizes {
  int64_t input = 0, hidden = 0;
};

Result<Sizes> sizes(Layer& l, uint64_t input, uint64_t hidden) {
  MOKA_TRY(l.shape({hidden, input}, "weights"));
  Shape s = MOKA_TRY(l.shape({4, hidden, hidden}, "recursion weights"));
  return Sizes{static_cast<int64_t>(input), s[1]};
}

/// Stacks the matrices of the gates (vectors when `columns` is 0). `sign` may negate some of them.
Result<Tensor> stack(Layer& l, const Weights& gates, int64_t hidden, int64_t columns, std::string_view what,
                     std::span<const float> sign = {}) {
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

/// The input as [steps, batch, size].
Result<Value*> sequence(Layer& l, int64_t size) {
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

/// State input i as [batch, hidden]; zeros when the layer has no such input.
Result<Value*> state(Layer& l, int i, Value* x, int64_t hidden) {
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

/// Sets output i to [steps, batch, n].
Status set_sequence(Layer& l, int i, Value* y) {
  if (i >= l.outputs()) return {};
  return l.set(i, MOKA_TRY(l.op("expand_dims", {{"x", y}, {"axes", Ints{3, 4}}})));
}

/// Sets output i, [1, batch, n, 1, 1], from [batch, n].
Status set_state(Layer& l, int i, Value* h) {
  if (i >= l.outputs()) return {};
  return l.set_folded(i, h, Form::matrix, {Dim{1}, dims_of(h)[0]});
}

Status simple_recurrent(Layer& l) {
  MOKA_TRY(l.arity(1, 2, 1, 2));
  const auto& p = l.p.simplerecurrent();
  Sizes s = MOKA_TRY(sizes(l, p.inputvectorsize(), p.outputvectorsize()));
  Value* x = MOKA_TRY(sequence(l, s.input));
  Value* initial = MOKA_TRY(state(l, 1, x, s.hidden));
  std::vector<NamedArg> args{{"x", x}, {"initial_h", initial}};
  args.emplace_back("weight_ih", MOKA_TRY(stack(l, {&p.weightmatrix()}, s.hidden, s.input, "weight matrix")));
  args.emplace_back("weight_hh", MOKA_TRY(stack(l, {&p.recursionmatrix()}, s.hidden, s.hidden, "recursion matrix")));
  if (p.hasbiasvector()) args.emplace_back("bias", MOKA_TRY(stack(l, {&p.biasvector()}, s.hidden, 0, "bias")));
  args.emplace_back("direction", p.reverseinput() ? "reverse" : "forward");
  args.emplace_back("output_sequence", p.sequenceoutput());
  args.emplace_back("activation", MOKA_TRY(activation_name(l, p.activation())));
  ir::Op* op = MOKA_TRY(l.multi("rnn", std::move(args)));
  MOKA_TRY(set_sequence(l, 0, op->output(0)));
  return set_state(l, 1, op->output(1));
}

/// MIL orders the gates reset, output, update.
Status gru(Layer& l) {
  MOKA_TRY(l.arity(1, 2, 1, 2));
  const auto& p = l.p.gru();
  Sizes s = MOKA_TRY(sizes(l, p.inputvectorsize(), p.outputvectorsize()));
  std::vector<std::string> f = MOKA_TRY(activation_names(l, p.activations(), 2));
  Value* x = MOKA_TRY(sequence(l, s.input));
  Value* initial = MOKA_TRY(state(l, 1, x, s.hidden));
  std::vector<NamedArg> args{{"x", x}, {"initial_h", initial}};
  args.emplace_back(
      "weight_ih",
      MOKA_TRY(stack(l, {&p.resetgateweightmatrix(), &p.outputgateweightmatrix(), &p.updategateweightmatrix()},
                     s.hidden, s.input, "weight matrix")));
  args.emplace_back(
      "weight_hh",
      MOKA_TRY(stack(l, {&p.resetgaterecursionmatrix(), &p.outputgaterecursionmatrix(), &p.updategaterecursionmatrix()},
                     s.hidden, s.hidden, "recursion matrix")));
  if (p.hasbiasvectors())
    args.emplace_back(
        "bias", MOKA_TRY(stack(l, {&p.resetgatebiasvector(), &p.outputgatebiasvector(), &p.updategatebiasvector()},
                               s.hidden, 0, "bias")));
  args.emplace_back("direction", p.reverseinput() ? "reverse" : "forward");
  args.emplace_back("output_sequence", p.sequenceoutput());
  args.emplace_back("recurrent_activation", f[0]);
  args.emplace_back("activation", f[1]);
  ir::Op* op = MOKA_TRY(l.multi("gru", std::move(args)));
  MOKA_TRY(set_sequence(l, 0, op->output(0)));
  return set_state(l, 1, op->output(1));
}

/// The weights of one direction, under MIL's names with `suffix`. MIL orders the gates input, forget, output, cell.
Status lstm_weights(Layer& l, std::vector<NamedArg>& args, const proto::LSTMParams& params,
                    const proto::LSTMWeightParams& w, Sizes s, const std::string& recurrent_activation,
                    const std::string& suffix) {
  bool coupled = params.coupledinputandforgetgate();
  // With coupled gates the forget gate is 1 - input gate. These activations compute that from the negated sum.
  if (coupled && recurrent_activation != "sigmoid" && recurrent_activation != "hard_sigmoid")
    return l.unsupported(cat("coupled input and forget gates with activation ", recurrent_activation));
  std::vector<float> sign{1, coupled ? -1.0f : 1.0f, 1, 1};
  const auto pick = [&](const proto::WeightParams& input, const proto::WeightParams& forget) {
    return coupled ? &input : &forget;
  };
  args.emplace_back("weight_ih" + suffix, MOKA_TRY(stack(l,
                                                         {&w.inputgateweightmatrix(),
                                                          pick(w.inputgateweightmatrix(), w.forgetgateweightmatrix()),
                                                          &w.outputgateweightmatrix(), &w.blockinputweightmatrix()},
                                                         s.hidden, s.input, "weight matrix", sign)));
  args.emplace_back(
      "weight_hh" + suffix,
      MOKA_TRY(stack(l,
                     {&w.inputgaterecursionmatrix(), pick(w.inputgaterecursionmatrix(), w.forgetgaterecursionmatrix()),
                      &w.outputgaterecursionmatrix(), &w.blockinputrecursionmatrix()},
                     s.hidden, s.hidden, "recursion matrix", sign)));
  if (params.hasbiasvectors() || (params.forgetbias() && !coupled)) {
    Tensor bias;
    if (params.hasbiasvectors())
      bias = MOKA_TRY(stack(l,
                            {&w.inputgatebiasvector(), pick(w.inputgatebiasvector(), w.forgetgatebiasvector()),
                             &w.outputgatebiasvector(), &w.blockinputbiasvector()},
                            s.hidden, 0, "bias", sign));
    else
      bias = MOKA_TRY(Tensor::zeros(DType::fp32, Shape{4 * s.hidden}));
    if (params.forgetbias() && !coupled)
      for (int64_t i = s.hidden; i < 2 * s.hidden; i++) bias.mut<float>()[static_cast<size_t>(i)] += 1;
    args.emplace_back("bias" + suffix, bias);
  }
  if (params.haspeepholevectors()) {
    sign.resize(3);
    args.emplace_back(
        "peephole" + suffix,
        MOKA_TRY(stack(l,
                       {&w.inputgatepeepholevector(), pick(w.inputgatepeepholevector(), w.forgetgatepeepholevector()),
                        &w.outputgatepeepholevector()},
                       s.hidden, 0, "peephole", sign)));
  }
  return {};
}

void lstm_options(std::vector<NamedArg>& args, const proto::LSTMParams& p, const std::vector<std::string>& f) {
  args.emplace_back("output_sequence", p.sequenceoutput());
  args.emplace_back("recurrent_activation", f[0]);
  args.emplace_back("cell_activation", f[1]);
  args.emplace_back("activation", f[2]);
  args.emplace_back("clip", p.cellclipthreshold() == 0 ? 50.0f : p.cellclipthreshold());
}

Status lstm(Layer& l) {
  MOKA_TRY(l.arity(1, 3, 1, 3));
  const auto& p = l.p.unidirectionallstm();
  Sizes s = MOKA_TRY(sizes(l, p.inputvectorsize(), p.outputvectorsize()));
  std::vector<std::string> f = MOKA_TRY(activation_names(l, p.activations(), 3));
  Value* x = MOKA_TRY(sequence(l, s.input));
  Value* initial_h = MOKA_TRY(state(l, 1, x, s.hidden));
  Value* initial_c = MOKA_TRY(state(l, 2, x, s.hidden));
  std::vector<NamedArg> args{{"x", x}, {"initial_h", initial_h}, {"initial_c", initial_c}};
  MOKA_TRY(lstm_weights(l, args, p.params(), p.weightparams(), s, f[0], ""));
  args.emplace_back("direction", p.reverseinput() ? "reverse" : "forward");
  lstm_options(args, p.params(), f);
  ir::Op* op = MOKA_TRY(l.multi("lstm", std::move(args)));
  MOKA_TRY(set_sequence(l, 0, op->output(0)));
  MOKA_TRY(set_state(l, 1, op->output(1)));
  return set_state(l, 2, op->output(2));
}

/// The states are forward hidden, forward cell, backward hidden and backward cell.
Status bidirectional_lstm(Layer& l) {
  MOKA_TRY(l.arity(1, 5, 1, 5));
  const auto& p = l.p.bidirectionallstm();
  if (p.weightparams_size() != 2)
    return l.malformed(cat("expected the weights of 2 directions, got ", p.weightparams_size()));
  Sizes s = MOKA_TRY(sizes(l, p.inputvectorsize(), p.outputvectorsize()));
  std::vector<std::string> f = MOKA_TRY(activation_names(l, p.activationsforwardlstm(), 3));
  if (p.activationsbackwardlstm_size() != 0 && MOKA_TRY(activation_names(l, p.activationsbackwardlstm(), 3)) != f)
    return l.unsupported("different activations of the two directions");
  Value* x = MOKA_TRY(sequence(l, s.input));
  auto both = [&](int forward, int backward) -> Result<Value*> {
    std::vector<Value*> v{MOKA_TRY(state(l, forward, x, s.hidden)), MOKA_TRY(state(l, backward, x, s.hidden))};
    return l.op("concat", {{"values", v}, {"axis", 1}});
  };
  Value* initial_h = MOKA_TRY(both(1, 3));
  Value* initial_c = MOKA_TRY(both(2, 4));
  std::vector<NamedArg> args{{"x", x}, {"initial_h", initial_h}, {"initial_c", initial_c}};
  MOKA_TRY(lstm_weights(l, args, p.params(), p.weightparams(0), s, f[0], ""));
  MOKA_TRY(lstm_weights(l, args, p.params(), p.weightparams(1), s, f[0], "_back"));
  args.emplace_back("direction", "bidirectional");
  lstm_options(args, p.params(), f);
  ir::Op* op = MOKA_TRY(l.multi("lstm", std::move(args)));
  MOKA_TRY(set_sequence(l, 0, op->output(0)));
  if (l.outputs() == 1) return {};
  ir::Op* h = MOKA_TRY(l.multi("split", {{"x", op->output(1)}, {"num_splits", 2}, {"axis", 1}}));
  ir::Op* c = MOKA_TRY(l.multi("split", {{"x", op->output(2)}, {"num_splits", 2}, {"axis", 1}}));
  MOKA_TRY(set_state(l, 1, h->output(0)));
  MOKA_TRY(set_state(l, 2, c->output(0)));
  MOKA_TRY(set_state(l, 3, h->output(1)));
  return set_state(l, 4, c->output(1));
}

}  // namespace

std::span<const LayerImport> layers_recurrent() {
  using L = proto::NeuralNetworkLayer;
  static const LayerImport list[] = {
      {L::kSimpleRecurrent, "simpleRecurrent", simple_recurrent},
      {L::kGru, "gru", gru},
      {L::kUniDirectionalLSTM, "uniDirectionalLSTM", lstm},
      {L::kBiDirectionalLSTM, "biDirectionalLSTM", bidirectional_lstm},
  };
  return list;
}

}  // namespace moka::import::nn
