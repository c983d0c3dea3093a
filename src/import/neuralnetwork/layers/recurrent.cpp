// SPDX-License-Identifier: Apache-2.0
#include "import/neuralnetwork/recurrent.h"

namespace moka::import::nn {

namespace {

Status simple_recurrent(Layer& l) {
  MOKA_TRY(l.arity(1, 2, 1, 2));
  const auto& p = l.p.simplerecurrent();
  RecurrentSizes s = MOKA_TRY(recurrent_sizes(l, p.inputvectorsize(), p.outputvectorsize()));
  Value* x = MOKA_TRY(sequence_of(l, s.input));
  Value* initial = MOKA_TRY(state_of(l, 1, x, s.hidden));
  std::vector<NamedArg> args{{"x", x}, {"initial_h", initial}};
  args.emplace_back("weight_ih", MOKA_TRY(stack_gates(l, {&p.weightmatrix()}, s.hidden, s.input, "weight matrix")));
  args.emplace_back("weight_hh",
                    MOKA_TRY(stack_gates(l, {&p.recursionmatrix()}, s.hidden, s.hidden, "recursion matrix")));
  if (p.hasbiasvector()) args.emplace_back("bias", MOKA_TRY(stack_gates(l, {&p.biasvector()}, s.hidden, 0, "bias")));
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
  RecurrentSizes s = MOKA_TRY(recurrent_sizes(l, p.inputvectorsize(), p.outputvectorsize()));
  std::vector<std::string> f = MOKA_TRY(activation_names(l, p.activations(), 2));
  Value* x = MOKA_TRY(sequence_of(l, s.input));
  Value* initial = MOKA_TRY(state_of(l, 1, x, s.hidden));
  std::vector<NamedArg> args{{"x", x}, {"initial_h", initial}};
  args.emplace_back(
      "weight_ih",
      MOKA_TRY(stack_gates(l, {&p.resetgateweightmatrix(), &p.outputgateweightmatrix(), &p.updategateweightmatrix()},
                           s.hidden, s.input, "weight matrix")));
  args.emplace_back("weight_hh", MOKA_TRY(stack_gates(l,
                                                      {&p.resetgaterecursionmatrix(), &p.outputgaterecursionmatrix(),
                                                       &p.updategaterecursionmatrix()},
                                                      s.hidden, s.hidden, "recursion matrix")));
  if (p.hasbiasvectors())
    args.emplace_back("bias", MOKA_TRY(stack_gates(
                                  l, {&p.resetgatebiasvector(), &p.outputgatebiasvector(), &p.updategatebiasvector()},
                                  s.hidden, 0, "bias")));
  args.emplace_back("direction", p.reverseinput() ? "reverse" : "forward");
  args.emplace_back("output_sequence", p.sequenceoutput());
  args.emplace_back("recurrent_activation", f[0]);
  args.emplace_back("activation", f[1]);
  ir::Op* op = MOKA_TRY(l.multi("gru", std::move(args)));
  MOKA_TRY(set_sequence(l, 0, op->output(0)));
  return set_state(l, 1, op->output(1));
}

}  // namespace

std::span<const LayerImport> layers_recurrent() {
  using L = proto::NeuralNetworkLayer;
  static const LayerImport list[] = {
      {L::kSimpleRecurrent, "simpleRecurrent", simple_recurrent},
      {L::kGru, "gru", gru},
  };
  return list;
}

}  // namespace moka::import::nn
