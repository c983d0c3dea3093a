// SPDX-License-Identifier: Apache-2.0
#include "import/neuralnetwork/recurrent.h"
#include "ops/common/recurrent.h"

namespace moka::import::nn {

namespace {

/// Whether f(-x) = 1 - f(x). A forget gate that is coupled to the input gate, 1 - f(sum), is then f(-sum).
bool is_symmetric(const std::string& activation) { return activation == "sigmoid" || activation == "hard_sigmoid"; }

/// The weights of one direction, under MIL's names with `suffix`. MIL orders the gates input, forget, output, cell.
Status lstm_weights(Layer& l, std::vector<NamedArg>& args, const proto::LSTMParams& params,
                    const proto::LSTMWeightParams& w, RecurrentSizes s, const std::string& recurrent_activation,
                    const std::string& suffix) {
  const bool coupled = params.coupledinputandforgetgate();
  std::vector<float> sign{1, coupled && is_symmetric(recurrent_activation) ? -1.0f : 1.0f, 1, 1};
  const auto pick = [&](const proto::WeightParams& input, const proto::WeightParams& forget) {
    return coupled ? &input : &forget;
  };
  args.emplace_back(
      "weight_ih" + suffix,
      MOKA_TRY(stack_gates(l,
                           {&w.inputgateweightmatrix(), pick(w.inputgateweightmatrix(), w.forgetgateweightmatrix()),
                            &w.outputgateweightmatrix(), &w.blockinputweightmatrix()},
                           s.hidden, s.input, "weight matrix", sign)));
  args.emplace_back("weight_hh" + suffix,
                    MOKA_TRY(stack_gates(l,
                                         {&w.inputgaterecursionmatrix(),
                                          pick(w.inputgaterecursionmatrix(), w.forgetgaterecursionmatrix()),
                                          &w.outputgaterecursionmatrix(), &w.blockinputrecursionmatrix()},
                                         s.hidden, s.hidden, "recursion matrix", sign)));
  if (params.hasbiasvectors() || (params.forgetbias() && !coupled)) {
    Tensor bias;
    if (params.hasbiasvectors())
      bias = MOKA_TRY(stack_gates(l,
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
    args.emplace_back("peephole" + suffix,
                      MOKA_TRY(stack_gates(l,
                                           {&w.inputgatepeepholevector(),
                                            pick(w.inputgatepeepholevector(), w.forgetgatepeepholevector()),
                                            &w.outputgatepeepholevector()},
                                           s.hidden, 0, "peephole", sign)));
  }
  return {};
}

void lstm_options(std::vector<NamedArg>& args, const proto::LSTMParams& p, const std::vector<std::string>& f) {
  args.emplace_back("output_sequence", p.sequenceoutput());
  const bool coupled = p.coupledinputandforgetgate() && !is_symmetric(f[0]);
  args.emplace_back("recurrent_activation", coupled ? ops::coupled_text(f[0]) : f[0]);
  args.emplace_back("cell_activation", f[1]);
  args.emplace_back("activation", f[2]);
  args.emplace_back("clip", p.cellclipthreshold() == 0 ? 50.0f : p.cellclipthreshold());
}

Status lstm(Layer& l) {
  MOKA_TRY(l.arity(1, 3, 1, 3));
  const auto& p = l.p.unidirectionallstm();
  RecurrentSizes s = MOKA_TRY(recurrent_sizes(l, p.inputvectorsize(), p.outputvectorsize()));
  std::vector<std::string> f = MOKA_TRY(activation_names(l, p.activations(), 3));
  Value* x = MOKA_TRY(sequence_of(l, s.input));
  Value* initial_h = MOKA_TRY(state_of(l, 1, x, s.hidden));
  Value* initial_c = MOKA_TRY(state_of(l, 2, x, s.hidden));
  std::vector<NamedArg> args{{"x", x}, {"initial_h", initial_h}, {"initial_c", initial_c}};
  MOKA_TRY(lstm_weights(l, args, p.params(), p.weightparams(), s, f[0], ""));
  args.emplace_back("direction", p.reverseinput() ? "reverse" : "forward");
  lstm_options(args, p.params(), f);
  ir::Op* op = MOKA_TRY(l.multi("lstm", std::move(args)));
  op->name = l.net.context().prefix + l.own_name();
  MOKA_TRY(set_sequence(l, 0, op->output(0)));
  MOKA_TRY(set_state(l, 1, op->output(1)));
  return set_state(l, 2, op->output(2));
}

/// Imports one direction of a bidirectional layer as a separate operation. It has the outputs of `lstm`, but its steps
/// are in the order of the input.
Result<std::vector<Value*>> one_direction(Layer& l, Value* x, RecurrentSizes s, int direction,
                                          const std::vector<std::string>& f) {
  const auto& p = l.p.bidirectionallstm();
  Value* initial_h = MOKA_TRY(state_of(l, 1 + 2 * direction, x, s.hidden));
  Value* initial_c = MOKA_TRY(state_of(l, 2 + 2 * direction, x, s.hidden));
  std::vector<NamedArg> args{{"x", x}, {"initial_h", initial_h}, {"initial_c", initial_c}};
  MOKA_TRY(lstm_weights(l, args, p.params(), p.weightparams(direction), s, f[0], ""));
  args.emplace_back("direction", direction == 0 ? "forward" : "reverse");
  lstm_options(args, p.params(), f);
  ir::Op* op = MOKA_TRY(l.multi("lstm", std::move(args)));
  Value* y = op->output(0);
  if (direction == 1 && p.params().sequenceoutput()) y = MOKA_TRY(l.op("reverse", {{"x", y}, {"axes", Ints{0}}}));
  return std::vector<Value*>{y, op->output(1), op->output(2)};
}

/// The states are forward hidden, forward cell, backward hidden and backward cell.
Status different_directions(Layer& l, Value* x, RecurrentSizes s, const std::vector<std::string>& forward,
                            const std::vector<std::string>& backward) {
  const std::vector<Value*> a = MOKA_TRY(one_direction(l, x, s, 0, forward));
  const std::vector<Value*> b = MOKA_TRY(one_direction(l, x, s, 1, backward));
  MOKA_TRY(set_sequence(l, 0, MOKA_TRY(l.op("concat", {{"values", std::vector<Value*>{a[0], b[0]}}, {"axis", 2}}))));
  for (int i = 0; i < 2; i++) {
    MOKA_TRY(set_state(l, 1 + i, a[static_cast<size_t>(1 + i)]));
    MOKA_TRY(set_state(l, 3 + i, b[static_cast<size_t>(1 + i)]));
  }
  return {};
}

Status bidirectional_lstm(Layer& l) {
  MOKA_TRY(l.arity(1, 5, 1, 5));
  const auto& p = l.p.bidirectionallstm();
  if (p.weightparams_size() != 2)
    return l.malformed(cat("expected the weights of 2 directions, got ", p.weightparams_size()));
  RecurrentSizes s = MOKA_TRY(recurrent_sizes(l, p.inputvectorsize(), p.outputvectorsize()));
  std::vector<std::string> f = MOKA_TRY(activation_names(l, p.activationsforwardlstm(), 3));
  Value* x = MOKA_TRY(sequence_of(l, s.input));
  if (p.activationsbackwardlstm_size() != 0)
    if (auto back = MOKA_TRY(activation_names(l, p.activationsbackwardlstm(), 3)); back != f)
      return different_directions(l, x, s, f, back);
  auto both = [&](int forward, int backward) -> Result<Value*> {
    std::vector<Value*> v{MOKA_TRY(state_of(l, forward, x, s.hidden)), MOKA_TRY(state_of(l, backward, x, s.hidden))};
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

std::span<const LayerImport> layers_lstm() {
  using L = proto::NeuralNetworkLayer;
  static const LayerImport list[] = {
      {L::kUniDirectionalLSTM, "uniDirectionalLSTM", lstm},
      {L::kBiDirectionalLSTM, "biDirectionalLSTM", bidirectional_lstm},
  };
  return list;
}

}  // namespace moka::import::nn
