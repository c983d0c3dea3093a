// SPDX-License-Identifier: Apache-2.0
#include "base/half.h"
#include "devices/graph_util.h"

namespace moka::devices_test {
namespace {

using namespace ir;

TEST(CpuRecurrent, Lstm) {
  for (const char* direction : {"forward", "reverse", "bidirectional"})
    for (bool sequence : {false, true})
      for (int64_t batch : {1, 3})
        for (bool more : {false, true}) {
          SCOPED_TRACE(cat(direction, sequence, batch, more));
          Graph g;
          const bool both = std::string_view(direction) == "bidirectional";
          const int64_t in = 19, h = 21, width = both ? 2 * h : h;
          std::vector<NamedArg> args{{"x", g.input({7, batch, in})},
                                     {"initial_h", g.input({batch, width})},
                                     {"initial_c", g.input({batch, width})},
                                     {"weight_ih", g.random({4 * h, in})},
                                     {"weight_hh", g.random({4 * h, h})},
                                     {"bias", g.random({4 * h})},
                                     {"direction", direction},
                                     {"output_sequence", sequence}};
          if (both) {
            args.emplace_back("weight_ih_back", g.random({4 * h, in}));
            args.emplace_back("weight_hh_back", g.random({4 * h, h}));
          }
          if (more) {
            args.emplace_back("peephole", g.random({3 * h}));
            args.emplace_back("clip", 0.8f);
            args.emplace_back("recurrent_activation", "hard_sigmoid");
            args.emplace_back("activation", "linear");
          }
          expect_same(g, g.ops("lstm", args));
        }
}

TEST(CpuRecurrent, Gru) {
  for (const char* direction : {"forward", "reverse"})
    for (bool sequence : {false, true})
      for (bool after : {false, true}) {
        SCOPED_TRACE(cat(direction, sequence, after));
        Graph g(Opset::ios18);
        const int64_t in = 19, h = 21, batch = 2;
        expect_same(g, g.ops("gru", {{"x", g.input({7, batch, in})},
                                     {"initial_h", g.input({batch, h})},
                                     {"weight_ih", g.random({3 * h, in})},
                                     {"weight_hh", g.random({3 * h, h})},
                                     {"bias", g.random({3 * h})},
                                     {"input_bias", g.random({3 * h})},
                                     {"direction", direction},
                                     {"output_sequence", sequence},
                                     {"reset_after", after}}));
      }
}

/// An update of 1 keeps the state, however large the new value is.
TEST(CpuRecurrent, GruKeepsStateBesideLargeValues) {
  for (bool after : {false, true}) {
    Graph g(Opset::ios18);
    Tensor input = *Tensor::zeros(DType::fp32, {3, 2}), bias = *Tensor::zeros(DType::fp32, {3});
    input.mut<float>()[2] = 1;    // new = x[0]
    bias.mut<float>()[2] = 1e9f;  // update = 1
    Tensor x = *Tensor::zeros(DType::fp32, {2, 1, 2}), h = *Tensor::zeros(DType::fp32, {1, 1});
    x.mut<float>()[0] = x.mut<float>()[2] = 1e30f;
    h.mut<float>()[0] = 3;
    const std::vector<Value*> made = g.ops("gru", {{"x", g.input_of(x)},
                                                   {"initial_h", g.input_of(h)},
                                                   {"weight_ih", input},
                                                   {"weight_hh", *Tensor::zeros(DType::fp32, {3, 1})},
                                                   {"bias", bias},
                                                   {"activation", "linear"},
                                                   {"reset_after", after}});
    g.function().body().set_outputs({made[1]});
    const auto got = run(g.function(), g.inputs(), true);
    ASSERT_TRUE(got.ok()) << got.error().to_string();
    EXPECT_TRUE(got->has("cpu.gru")) << got->kernels;
    EXPECT_EQ(got->outputs[0].as<float>()[0], 3);
  }
}

TEST(CpuRecurrent, Rnn) {
  for (const char* direction : {"forward", "reverse"})
    for (bool sequence : {false, true})
      for (const char* activation : {"tanh", "relu", "scaled_tanh(1.5, 0.5)"})
        for (int64_t batch : {1, 3}) {
          SCOPED_TRACE(cat(direction, sequence, activation, batch));
          Graph g;
          const int64_t in = 19, h = 21;
          const devices_test::Run got = expect_same(g, g.ops("rnn", {{"x", g.input({7, batch, in})},
                                                                     {"initial_h", g.input({batch, h})},
                                                                     {"weight_ih", g.random({h, in}, -0.3f, 0.3f)},
                                                                     {"weight_hh", g.random({h, h}, -0.3f, 0.3f)},
                                                                     {"bias", g.random({h})},
                                                                     {"activation", activation},
                                                                     {"direction", direction},
                                                                     {"output_sequence", sequence}}));
          EXPECT_TRUE(got.has("cpu.rnn")) << got.kernels;
        }
}

/// Weights in the forms that a file may use.
struct LayerKind {
  const char* name;
  std::function<Value*(Graph&, const Shape&)> weights;
};

std::vector<LayerKind> layer_kinds() {
  return {{"constant", [](Graph& g, const Shape& s) { return g.constant(g.random(s, -0.3f, 0.3f)); }},
          {"halves", [](Graph& g, const Shape& s) {
             const Tensor wide = g.random(s, -0.3f, 0.3f);
             Tensor t = *Tensor::zeros(DType::fp16, s);
             float_to_half(wide.as<float>().data(), static_cast<uint16_t*>(t.mutable_data()),
                           static_cast<size_t>(t.count()));
             return g.op("constexpr_cast", {{"source_val", t}, {"output_dtype", "fp32"}});
           }}};
}

std::vector<NamedArg> layer(Graph& g, const LayerKind& kind, int gates, int64_t batch, int64_t hidden) {
  const int64_t in = 5;
  std::vector<NamedArg> args{{"x", g.input({4, batch, in})},
                             {"initial_h", g.input({batch, hidden})},
                             {"weight_ih", kind.weights(g, {gates * hidden, in})},
                             {"weight_hh", kind.weights(g, {gates * hidden, hidden})},
                             {"bias", g.random({gates * hidden})},
                             {"output_sequence", true}};
  if (gates == 4) args.emplace_back("initial_c", g.input({batch, hidden}));
  return args;
}

TEST(CpuRecurrent, Sizes) {
  for (const LayerKind& kind : layer_kinds())
    for (int64_t hidden : {1, 16, 63, 65, 130, 272})
      for (int64_t batch : {1, 2, 5}) {
        SCOPED_TRACE(cat(kind.name, " ", hidden, " ", batch));
        Graph g(Opset::ios18);
        expect_same(g, g.ops("lstm", layer(g, kind, 4, batch, hidden)));
        Graph plain(Opset::ios18);
        expect_same(plain, plain.ops("rnn", layer(plain, kind, 1, batch, hidden)));
        for (bool after : {false, true}) {
          Graph g(Opset::ios18);
          std::vector<NamedArg> args = layer(g, kind, 3, batch, hidden);
          args.emplace_back("reset_after", after);
          expect_same(g, g.ops("gru", args));
        }
      }
}

/// Units are divided among threads unevenly.
TEST(CpuRecurrent, ThreadsGiveTheSameBits) {
  for (const LayerKind& kind : layer_kinds())
    for (int64_t batch : {1, 3})
      for (int gates : {1, 3, 4}) {
        const int64_t hidden = 330;
        Graph g(Opset::ios18);
        const std::string op = gates == 4 ? "lstm" : gates == 3 ? "gru" : "rnn";
        const std::vector<Value*> made = g.ops(op, layer(g, kind, gates, batch, hidden));
        expect_same_bits(g, made[0], "cpu." + op, cat(kind.name, " ", gates, " gates, ", batch));
      }
}

}  // namespace
}  // namespace moka::devices_test
