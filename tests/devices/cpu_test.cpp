// SPDX-License-Identifier: Apache-2.0
#include "conformance/case_util.h"
#include "devices/cpu/device.h"
#include "devices/graph_util.h"

namespace moka::devices_test {
namespace {

using namespace ir;

TEST(Cpu, HasAName) {
  EXPECT_EQ(devices::cpu::device().name(), "cpu");
  EXPECT_FALSE(devices::cpu::device().description().empty());
}

/// The recorded outputs of every operation that the device supports.
TEST(Cpu, GoldenCases) {
  int on_cpu = 0;
  for (const conformance::Case& c : conformance::load_cases(MOKA_GOLDEN_FOLDER)) {
    SCOPED_TRACE(cat(c.op, " ", c.name));
    auto program = conformance::read_program(c);
    if (!program.ok()) continue;  // tested with the reader
    const Function& f = *program->functions[0];
    auto values = conformance::ordered_inputs(c, f);
    ASSERT_TRUE(values.ok());
    std::vector<Tensor> inputs;
    bool tensors = true;
    for (const RuntimeValue& v : *values) {
      inputs.push_back(v.tensor);
      tensors &= !v.tensor.empty_handle();
    }
    for (const auto& v : f.body().inputs()) tensors &= v->type.is_tensor();
    if (!tensors) continue;
    auto got = run(f, inputs, true);
    EXPECT_TRUE(got.ok()) << got.error().to_string() << "\n" << c.program;
    if (!got.ok()) continue;
    if (got->kernels.find("cpu.") == std::string::npos) continue;
    on_cpu++;
    for (size_t i = 0; i < c.outputs.size(); i++) {
      const Tensor& e = c.outputs[i].tensor;
      EXPECT_EQ(conformance::difference(got->outputs[i], e, conformance::tolerance_of(c, e.dtype())), "")
          << got->kernels << "\n"
          << c.program;
    }
  }
  EXPECT_GT(on_cpu, 50);
}

TEST(CpuElementwise, BroadcastShapes) {
  const std::pair<Shape, Shape> pairs[] = {{{2, 3, 4, 5}, {2, 3, 4, 5}},
                                           {{2, 3, 4, 5}, {5}},
                                           {{2, 3, 4, 5}, {3, 1, 1}},
                                           {{2, 1, 4, 1}, {3, 1, 5}},
                                           {{1, 7}, {6, 1}},
                                           {{}, {3, 4}},
                                           {{40000}, {1}},
                                           {{1, 17, 1, 1}, {2, 17, 9, 9}},
                                           {{3, 100, 70}, {100, 1}}};
  for (const auto& [a, b] : pairs)
    for (const char* op : {"add", "sub", "mul", "real_div", "maximum", "minimum", "less", "greater_equal", "equal"}) {
      SCOPED_TRACE(cat(op, " ", a, " ", b));
      Graph g;
      expect_same(g, {g.op(op, {{"x", g.input(a)}, {"y", g.input(b, 0.5f, 2)}})}, 1e-6);
    }
  for (float e : {2.0f, 3.0f, -1.0f, 0.5f, 1.7f}) {
    Graph g;
    expect_same(g, {g.op("pow", {{"x", g.input({3, 50}, 0.1f, 3)}, {"y", e}})}, 1e-6);
  }
}

TEST(CpuElementwise, Activations) {
  const std::pair<const char*, std::vector<NamedArg>> all[] = {{"elu", {{"alpha", 0.7f}}},
                                                               {"leaky_relu", {{"alpha", 0.1f}}},
                                                               {"clip", {{"alpha", -0.5f}, {"beta", 0.4f}}},
                                                               {"gelu", {{"mode", "EXACT"}}},
                                                               {"gelu", {{"mode", "TANH_APPROXIMATION"}}},
                                                               {"gelu", {{"mode", "SIGMOID_APPROXIMATION"}}},
                                                               {"scaled_tanh", {{"alpha", 1.2f}, {"beta", 0.6f}}},
                                                               {"sigmoid_hard", {{"alpha", 0.2f}, {"beta", 0.5f}}},
                                                               {"softsign", {}},
                                                               {"clamped_relu", {{"alpha", 0.2f}, {"beta", 1.0f}}},
                                                               {"silu", {}},
                                                               {"moka_hard_swish", {}},
                                                               {"softplus", {}},
                                                               {"relu6", {}},
                                                               {"erf", {}},
                                                               {"sign", {}},
                                                               {"inverse", {{"epsilon", 0.1f}}},
                                                               {"threshold", {{"alpha", 0.2f}}},
                                                               {"thresholded_relu", {{"alpha", 0.2f}}}};
  for (const auto& [op, extra] : all) {
    SCOPED_TRACE(op);
    Graph g;
    std::vector<NamedArg> args = extra;
    args.emplace_back("x", g.input({3, 7001}, -5, 5));
    expect_same(g, {g.op(op, args)}, 1e-6);
  }
}

/// Results of convolutions stay blocked, and padding channels stay zero for the next convolution.
TEST(CpuElementwise, BlockedLayouts) {
  for (int64_t ch : {32, 33}) {
    SCOPED_TRACE(ch);
    Graph g;
    Value* x = g.input({2, ch, 9, 10});
    auto conv = [&](Value* v) {
      return g.op("conv", {{"x", v}, {"weight", g.random({ch, ch, 1, 1}, -0.3f, 0.3f)}, {"pad_type", "valid"}});
    };
    Value* a = conv(x);
    Value* b = conv(x);
    Value* gate = g.op("reduce_mean", {{"x", a}, {"axes", Tensor::i32({2, 3})}, {"keep_dims", true}});
    gate = g.op("sigmoid", {{"x", conv(gate)}});
    Value* c = g.op("mul", {{"x", a}, {"y", gate}});
    c = g.op("add", {{"x", b}, {"y", c}});
    c->producer()->epilogue = {{"sigmoid"}};
    c = g.op("exp", {{"x", c}});
    c->producer()->epilogue = {{"linear_activation", 0.5f, 0.25f}, {"gelu"}};
    c = g.op("real_div", {{"x", c}, {"y", g.op("exp", {{"x", a}})}});
    c = g.op("add", {{"x", c}, {"y", g.random({ch, 1, 1})}});
    c = g.op("add", {{"x", c}, {"y", g.random({1, ch, 1, 1})}});
    c = g.op("mul", {{"x", c}, {"y", g.input({2, 1, 9, 10})}});
    c = g.op("sub", {{"x", c}, {"y", 0.5f}});
    c = g.op("prelu", {{"x", c}, {"alpha", g.random({ch})}});
    c = g.op("batch_norm", {{"x", c},
                            {"mean", g.random({ch})},
                            {"variance", g.random({ch}, 0.5f, 1)},
                            {"gamma", g.random({ch})},
                            {"beta", g.random({ch})}});
    Value* d = conv(c);
    expect_same(g,
                {d, g.op("reduce_max", {{"x", a}, {"axes", Tensor::i32({2, 3})}, {"keep_dims", false}}),
                 g.op("reduce_l2_norm", {{"x", b}, {"axes", Tensor::i32({-1, -2})}, {"keep_dims", true}})},
                2e-5);
  }
}

TEST(CpuElementwise, Select) {
  Graph g;
  Value* x = g.input({4, 5, 33});
  Value* y = g.input({5, 1});
  Value* c = g.op("less", {{"x", x}, {"y", y}});
  expect_same(
      g, {g.op("select", {{"cond", c}, {"a", x}, {"b", y}}), g.op("select", {{"cond", c}, {"a", y}, {"b", 0.0f}})});
}

TEST(CpuReduce, Axes) {
  for (const char* op : {"reduce_sum", "reduce_mean", "reduce_max", "reduce_min", "reduce_sum_square", "reduce_l2_norm",
                         "reduce_l1_norm"})
    for (auto axes : {Tensor::i32({0}), Tensor::i32({1}), Tensor::i32({3}), Tensor::i32({2, 3}), Tensor::i32({1, 2}),
                      Tensor::i32({0, 1, 2, 3})}) {
      SCOPED_TRACE(op);
      Graph g;
      expect_same(g, {g.op(op, {{"x", g.input({3, 130, 5, 7})}, {"axes", axes}, {"keep_dims", true}})});
    }
  Graph g;
  Value* x = g.input({40, 1001});
  expect_same(g, {g.op("reduce_argmax", {{"x", x}, {"axis", 1}}), g.op("reduce_argmin", {{"x", x}, {"axis", -1}})});
}

TEST(CpuNorm, SoftmaxAndNorms) {
  for (int axis : {0, 1, 2}) {
    Graph g;
    expect_same(g, {g.op("softmax", {{"x", g.input({5, 300, 70}, -20, 20)}, {"axis", axis}})}, 1e-6);
  }
  Graph g;
  Value* x = g.input({4, 30, 70}, 3, 5);
  Value* image = g.input({2, 17, 9, 11}, -3, 5);
  expect_same(
      g,
      {g.op("layer_norm", {{"x", x}, {"axes", Tensor::i32({-1})}, {"gamma", g.random({70})}, {"beta", g.random({70})}}),
       g.op("layer_norm", {{"x", x}, {"axes", Tensor::i32({1, 2})}, {"gamma", g.random({30, 70})}}),
       g.op("layer_norm", {{"x", x}, {"axes", Tensor::i32({2})}, {"beta", g.random({70})}}),
       g.op("instance_norm", {{"x", image}, {"gamma", g.random({17})}, {"beta", g.random({17})}}),
       g.op("l2_norm", {{"x", image}}),
       g.op(
           "batch_norm",
           {{"x", image}, {"mean", g.random({17})}, {"variance", g.random({17}, 0.5f, 2)}, {"beta", g.random({17})}})});
}

TEST(CpuNorm, RowsOfEveryLength) {
  for (int64_t n : {1, 2, 3, 7, 8, 15, 16, 17, 63, 64, 65, 130, 1000, 4096, 4097})
    for (auto [low, high] : {std::pair{-3.0f, 5.0f}, {999.0f, 1001.0f}}) {
      SCOPED_TRACE(cat(n, " numbers from ", low));
      Graph g;
      Value* x = g.input({1, 67, n}, low, high);
      const Tensor gamma = g.random({n}), beta = g.random({n});
      const auto norm = [&](std::vector<NamedArg> more) {
        more.push_back({"x", x});
        more.push_back({"axes", Tensor::i32({-1})});
        return g.op("layer_norm", std::move(more));
      };
      expect_same(
          g, {norm({}), norm({{"gamma", gamma}}), norm({{"beta", beta}}), norm({{"gamma", gamma}, {"beta", beta}})});
    }
}

/// Softmax along an axis before a few columns, of which several rows are computed as one.
TEST(CpuSoftmax, FewColumns) {
  for (int64_t columns : {1, 2, 3, 8, 100, 128, 129, 255, 256, 257})
    for (int64_t rows : {1, 2, 31, 300}) {
      SCOPED_TRACE(cat(rows, " rows of ", columns));
      Graph g;
      expect_same(g, {g.op("softmax", {{"x", g.input({2, rows, columns}, -20, 20)}, {"axis", 1}})}, 1e-6);
    }
}

TEST(CpuMatmul, ShapesAndTransposes) {
  struct Case {
    Shape x, y;
    bool tx = false, ty = false;
  };
  const Case cases[] = {
      {.x = {5, 7}, .y = {7, 9}},
      {.x = {7, 5}, .y = {7, 9}, .tx = true},
      {.x = {5, 7}, .y = {9, 7}, .ty = true},
      {.x = {7, 5}, .y = {9, 7}, .tx = true, .ty = true},
      {.x = {2, 3, 5, 7}, .y = {2, 3, 7, 9}},
      {.x = {2, 3, 5, 7}, .y = {2, 3, 9, 7}, .ty = true},
      {.x = {2, 3, 5, 7}, .y = {7, 9}},
      {.x = {5, 7}, .y = {2, 3, 7, 9}},
      {.x = {2, 1, 5, 7}, .y = {1, 3, 7, 9}},
      {.x = {7}, .y = {7, 9}},
      {.x = {5, 7}, .y = {7}},
      {.x = {7}, .y = {7}},
      {.x = {3, 7}, .y = {2, 7, 4}},
      {.x = {1, 512}, .y = {512, 1000}},
      {.x = {4, 33, 65}, .y = {65, 17}},
  };
  for (const Case& c : cases)
    for (bool constant : {false, true}) {
      SCOPED_TRACE(cat(c.x, " ", c.y, " ", c.tx, c.ty, constant));
      Graph g;
      std::vector<NamedArg> args{{"x", g.input(c.x)}, {"transpose_x", c.tx}, {"transpose_y", c.ty}};
      if (constant)
        args.emplace_back("y", g.random(c.y));
      else
        args.emplace_back("y", g.input(c.y));
      expect_same(g, {g.op("matmul", args)});
    }
}

TEST(CpuMatmul, Linear) {
  for (const Shape& x : {Shape{1, 33}, Shape{33}, Shape{4, 5, 33}, Shape{128, 33}}) {
    Graph g;
    Value* v = g.input(x);
    Value* a = g.op("linear", {{"x", v}, {"weight", g.random({17, 33})}, {"bias", g.random({17})}});
    Value* b = g.op("linear", {{"x", v}, {"weight", g.random({64, 33})}});
    b->producer()->epilogue = {{"relu"}};
    Value* c = g.op("linear", {{"x", v}, {"weight", g.random({64, 33})}});
    c->producer()->epilogue = {{"softplus"}, {"tanh"}};
    expect_same(g, {a, b, c});
  }
}

TEST(CpuMatmul, EveryRows) {
  for (int64_t rows : {1, 2, 3, 4, 5, 8, 17, 65, 131})
    for (auto [depth, made] : {std::pair<int64_t, int64_t>{1, 1}, {7, 16}, {64, 33}, {65, 512}, {300, 200}}) {
      SCOPED_TRACE(cat(rows, " x ", depth, " x ", made));
      Graph g;
      Value* x = g.input({2, rows, depth});
      Value* a = g.op("linear", {{"x", x}, {"weight", g.random({made, depth})}, {"bias", g.random({made})}});
      a->producer()->epilogue = {{"gelu"}};
      expect_same(g, {a, g.op("matmul", {{"x", x}, {"y", g.random({depth, made})}})});
    }
}

TEST(CpuMatmul, ThreadsGiveTheSameBits) {
  struct Case {
    int64_t rows, depth, made;
    std::string_view by = "gemm";
  };
  const Case cases[] = {
      {.rows = 3, .depth = 1024, .made = 768},
      {.rows = 5, .depth = 3000, .made = 300},
      {.rows = 64, .depth = 512, .made = 512},
      {.rows = 64, .depth = 4096, .made = 16},
      {.rows = 197, .depth = 256, .made = 768},
      {.rows = 198, .depth = 384, .made = 384},
      {.rows = 90, .depth = 301, .made = 300},
      {.rows = 200, .depth = 512, .made = 1000, .by = "strassen"},
      {.rows = 300, .depth = 1030, .made = 768, .by = "strassen"},
      {.rows = 300, .depth = 64, .made = 1000},
  };
  for (const auto& [rows, depth, made, by] : cases) {
    SCOPED_TRACE(cat(rows, " x ", depth, " x ", made));
    Graph a;
    expect_same_bits(
        a,
        a.op("linear",
             {{"x", a.input({rows, depth})}, {"weight", a.random({made, depth})}, {"bias", a.random({made})}}),
        cat("cpu.linear.", by), "linear");
    Graph b;
    expect_same_bits(b, b.op("matmul", {{"x", b.input({rows, depth})}, {"y", b.random({depth, made})}}),
                     cat("cpu.matmul.", by), "matmul");
  }
}

/// Neither operand is constant.
TEST(CpuMatmul, ComputedOperandsThreadsGiveTheSameBits) {
  struct Case {
    int64_t batch, rows, depth, made;
  };
  const Case cases[] = {
      {.batch = 1, .rows = 64, .depth = 4096, .made = 16}, {.batch = 1, .rows = 64, .depth = 512, .made = 512},
      {.batch = 1, .rows = 3, .depth = 1024, .made = 768}, {.batch = 1, .rows = 1, .depth = 4096, .made = 64},
      {.batch = 1, .rows = 7, .depth = 600, .made = 300},  {.batch = 2, .rows = 500, .depth = 700, .made = 1},
      {.batch = 1, .rows = 16, .depth = 8192, .made = 8},  {.batch = 12, .rows = 64, .depth = 128, .made = 64},
      {.batch = 3, .rows = 197, .depth = 64, .made = 197}, {.batch = 2, .rows = 300, .depth = 1000, .made = 33},
  };
  for (const auto& [batch, rows, depth, made] : cases)
    for (bool tx : {false, true})
      for (bool ty : {false, true}) {
        SCOPED_TRACE(cat(batch, " x ", rows, " x ", depth, " x ", made, tx ? " tx" : "", ty ? " ty" : ""));
        Graph g;
        Value* x = g.input(tx ? Shape{batch, depth, rows} : Shape{batch, rows, depth});
        Value* y = g.input(ty ? Shape{batch, made, depth} : Shape{batch, depth, made});
        Value* out = g.op("matmul", {{"x", x}, {"y", y}, {"transpose_x", tx}, {"transpose_y", ty}});
        Value* biased =
            g.op("matmul", {{"x", x}, {"y", y}, {"transpose_x", tx}, {"transpose_y", ty}, {"bias", g.random({made})}});
        expect_same(g, {out, biased});
        expect_same_bits(g, out, "cpu.matmul.packing", "matmul");
      }
}

/// Shapes that are large enough for panels, with bias, addend and epilogues.
TEST(CpuMatmul, Panels) {
  struct Case {
    int64_t rows, depth, made;
  };
  for (const Case& c : {Case{8, 700, 1024}, {129, 513, 1024}, {300, 300, 2048}, {43, 1030, 1003}, {40, 2048, 512}}) {
    SCOPED_TRACE(cat(c.rows, " x ", c.depth, " x ", c.made));
    Graph g;
    Value* x = g.input({1, c.rows, c.depth});
    Value* residual = g.input({1, c.rows, c.made});
    Tensor w = g.random({c.made, c.depth}, -0.1f, 0.1f);
    Value* a = g.op("linear", {{"x", x}, {"weight", w}, {"bias", g.random({c.made})}});
    a->producer()->epilogue = {{"gelu"}, {"clip", -0.5f, 0.5f}};
    Value* b = g.op("linear", {{"x", x}, {"weight", w}, {"bias", g.random({c.made})}, {"addend", residual}});
    b->producer()->epilogue = {{"relu"}};
    Value* d = g.op("matmul", {{"x", x}, {"y", g.random({c.depth, c.made}, -0.1f, 0.1f)}, {"addend", residual}});
    Value* e = g.op("matmul", {{"x", x}, {"y", w}, {"transpose_y", true}, {"bias", g.random({c.made})}});
    Value* last = g.op("linear", {{"x", a}, {"weight", g.random({c.made, c.made}, -0.1f, 0.1f)}, {"addend", e}});
    expect_same(g, {a, b, d, last});
    g.function().body().set_outputs({a, b, d, last});
    auto one = run(g.function(), g.inputs(), true, 1), two = run(g.function(), g.inputs(), true, 2);
    ASSERT_TRUE(one.ok() && two.ok());
    for (size_t i = 0; i < one->outputs.size(); i++) {
      const auto p = one->outputs[i].as<float>(), q = two->outputs[i].as<float>();
      EXPECT_TRUE(std::equal(p.begin(), p.end(), q.begin(), q.end())) << "output " << i << " with one and two threads";
    }
  }
}

/// The scale of a channel is infinite, which subtracting its mean must not turn into NaN. Also blocked.
TEST(CpuNorm, BatchNormOfInfiniteScales) {
  const float inf = std::numeric_limits<float>::infinity();
  for (bool is_blocked : {false, true}) {
    Graph g;
    Value* x = g.input({2, 19, 5, 7});
    if (is_blocked) x = g.op("conv", {{"x", x}, {"weight", g.random({19, 19, 1, 1})}});
    Tensor gamma = g.random({19}), variance = g.random({19}, 0.5f, 1);
    gamma.mut<float>()[3] = inf;
    gamma.mut<float>()[18] = -inf;
    variance.mut<float>()[7] = 0;
    expect_same(g, {g.op("batch_norm", {{"x", x},
                                        {"mean", g.random({19}, 10, 20)},
                                        {"variance", variance},
                                        {"gamma", gamma},
                                        {"beta", g.random({19})},
                                        {"epsilon", 0.0f}})});
  }
}

TEST(CpuNorm, GroupsOfChannels) {
  for (const auto& [channels, groups] : std::vector<std::pair<int64_t, int>>{
           {32, 8}, {48, 1}, {48, 2}, {40, 5}, {24, 3}, {20, 20}, {20, 10}, {17, 1}, {96, 4}, {66, 11}, {3, 1}})
    for (bool is_blocked : {false, true})
      for (int64_t width : {1, 9, 90}) {
        SCOPED_TRACE(cat(channels, " channels, ", groups, " groups, width ", width, is_blocked ? ", blocked" : ""));
        Graph g;
        Value* x = g.input({2, channels, 3, width}, 20, 22);
        if (is_blocked) x = g.op("conv", {{"x", x}, {"weight", g.random({channels, channels, 1, 1})}});
        Value* y = g.op("moka_group_norm", {{"x", x},
                                            {"groups", groups},
                                            {"gamma", g.random({channels})},
                                            {"beta", g.random({channels})},
                                            {"epsilon", 0.5f}});
        Value* z = g.op("moka_group_norm", {{"x", x}, {"groups", groups}, {"epsilon", 0.5f}});
        y->producer()->epilogue = {{"silu"}};
        expect_same(g, {y, z, g.op("conv", {{"x", y}, {"weight", g.random({16, channels, 1, 1})}})}, 3e-5);
      }
}

/// Layer norms over the channels of images, in blocks and in planes.
TEST(CpuNorm, Channels) {
  for (int64_t channels : {1, 5, 16, 24, 70, 200})
    for (bool is_blocked : {false, true})
      for (int64_t width : {1, 7, 150}) {
        SCOPED_TRACE(cat(channels, " channels, ", width, is_blocked ? " blocked" : " planes"));
        Graph g;
        Value* x = g.input({2, channels, 3, width}, 20, 22);
        if (is_blocked) x = g.op("conv", {{"x", x}, {"weight", g.random({channels, channels, 1, 1})}});
        const int64_t axes[] = {1};
        Value* y = g.op("layer_norm", {{"x", x},
                                       {"axes", Tensor::i32(axes)},
                                       {"gamma", g.random({channels})},
                                       {"beta", g.random({channels})},
                                       {"epsilon", 0.5f}});
        Value* z = g.op("layer_norm", {{"x", x}, {"axes", Tensor::i32(axes)}, {"epsilon", 0.5f}});
        y->producer()->epilogue = {{"silu"}};
        z->producer()->epilogue = {{"sigmoid"}};
        const auto r =
            expect_same(g, {y, z, g.op("conv", {{"x", z}, {"weight", g.random({16, channels, 1, 1})}})}, 3e-5);
        EXPECT_TRUE(r.has("cpu.channel_norm")) << r.kernels;
      }
}

/// A non-finite value makes its whole group NaN, but no other group.
TEST(CpuNorm, GroupsWithInfinities) {
  for (bool is_blocked : {false, true}) {
    Graph g;
    Tensor t = g.random({1, 32, 5, 7});
    t.mut<float>()[0] = std::numeric_limits<float>::infinity();
    Value* x = g.input_of(t);
    if (is_blocked) x = g.op("conv", {{"x", x}, {"weight", g.random({32, 1, 1, 1})}, {"groups", 32}});
    const auto r = expect_same(g, {g.op("moka_group_norm", {{"x", x}, {"groups", 8}})});
    int64_t numbers = 0;
    for (float v : r.outputs[0].as<float>()) numbers += !std::isnan(v);
    EXPECT_EQ(numbers, 28 * 35);
  }
}

/// The form in which converters write nn.BatchNorm1d of [N, C].
TEST(CpuNorm, BatchNormOfRows) {
  for (int64_t ch : {1, 5, 16, 70})
    for (bool odd : {false, true}) {
      SCOPED_TRACE(cat(ch, odd));
      Graph g;
      Tensor variance = g.random({ch}, 0.5f, 2);
      if (odd) variance.mut<float>()[static_cast<size_t>(ch / 2)] = std::numeric_limits<float>::infinity();
      Value* y = g.op("batch_norm", {{"x", g.input({37, ch, 1})},
                                     {"mean", g.random({ch})},
                                     {"variance", variance},
                                     {"gamma", g.random({ch})},
                                     {"beta", g.random({ch})}});
      y->producer()->epilogue = {{"relu"}};
      expect_same(g, {y});
    }
}

/// A blocked tensor whose channels do not fill a block.
TEST(CpuPrelu, ChannelsOfBlockedTensors) {
  for (int64_t ch : {1, 5, 16, 17, 32}) {
    SCOPED_TRACE(ch);
    Graph g;
    Value* x = g.op("conv", {{"x", g.input({2, 16, 9, 9})}, {"weight", g.random({ch, 16, 3, 3})}});
    expect_same(g, {g.op("prelu", {{"x", x}, {"alpha", g.random({ch})}})});
  }
}

/// Per-channel values, per image or shared, as the first and as the second operand, for any image size.
TEST(CpuBinary, GatesOfChannels) {
  for (int64_t ch : {1, 16, 33, 48})
    for (int64_t pixels : {1, 7, 45})
      for (const char* op : {"mul", "sub"}) {
        SCOPED_TRACE(cat(ch, " ", pixels, " ", op));
        Graph g;
        auto conv = [&](Value* v) { return g.op("conv", {{"x", v}, {"weight", g.random({ch, ch, 1, 1})}}); };
        Value* x = conv(g.input({2, ch, pixels, 13}));
        Value* each = conv(g.op("reduce_mean", {{"x", x}, {"axes", Tensor::i32({2, 3})}, {"keep_dims", true}}));
        Value* y = g.op(op, {{"x", x}, {"y", each}});
        y = g.op(op, {{"x", each}, {"y", y}});
        y->producer()->epilogue = {{"tanh"}};
        y = g.op(op, {{"x", y}, {"y", conv(g.input({1, ch, 1, 1}))}});
        y = g.op(op, {{"x", conv(y)}, {"y", g.random({ch, 1, 1})}});
        y = g.op(op, {{"x", g.random({ch, 1, 1})}, {"y", y}});
        expect_same(g, {conv(y)});
      }
}

/// The same values for all channels of a pixel, per image or shared.
TEST(CpuBinary, GatesOfPixels) {
  for (int64_t ch : {2, 16, 33})
    for (int64_t rows : {1, 7, 45})
      for (const char* op : {"mul", "sub", "real_div"}) {
        SCOPED_TRACE(cat(ch, " ", rows, " ", op));
        Graph g;
        auto conv = [&](Value* v) { return g.op("conv", {{"x", v}, {"weight", g.random({ch, ch, 1, 1})}}); };
        Value* x = conv(g.input({2, ch, rows, 13}));
        Value* y = g.op(op, {{"x", x}, {"y", g.input({2, 1, rows, 13}, 1, 2)}});
        y = g.op(op, {{"x", g.input({1, 1, rows, 13})}, {"y", g.op("exp", {{"x", y}})}});
        y->producer()->epilogue = {{"tanh"}};
        expect_same(g, {conv(y)});
      }
}

TEST(CpuNorm, InstancesInBlocks) {
  for (int64_t ch : {16, 33}) {
    Graph g;
    Value* x = g.op("conv", {{"x", g.input({2, ch, 11, 13}, 0, 2)}, {"weight", g.random({ch, ch, 1, 1})}});
    Value* a = g.op("instance_norm", {{"x", x}, {"gamma", g.random({ch})}, {"beta", g.random({ch})}});
    a->producer()->epilogue = {{"sigmoid"}};
    Value* b = g.op("instance_norm", {{"x", a}, {"epsilon", 0.1f}});
    expect_same(g, {g.op("conv", {{"x", b}, {"weight", g.random({ch, ch, 3, 3})}})});
  }
}

TEST(CpuConcat, BlockedChannels) {
  Graph g;
  Value* x = g.input({2, 32, 5, 6});
  auto conv = [&](int64_t out) {
    return g.op("conv", {{"x", x}, {"weight", g.random({out, 32, 1, 1})}, {"pad_type", "valid"}});
  };
  Value* joined = g.op("concat", {{"values", std::vector<Value*>{conv(16), conv(48), x}}, {"axis", 1}});
  Value* y = g.op("conv", {{"x", joined}, {"weight", g.random({16, 96, 3, 3})}, {"pad_type", "same"}});
  const auto r = expect_same(g, {y});
  EXPECT_TRUE(r.has("cpu.concat.blocked")) << r.kernels;
}

/// Columns are divided when there are too few rows for every thread.
TEST(CpuGemm, FewRowsKeepAllThreadsBusy) {
  for (int64_t made : {192, 200, 512}) {
    SCOPED_TRACE(cat(made, " columns"));
    Graph g;
    Value* y = g.op("linear", {{"x", g.input({1, 51, 512})}, {"weight", g.random({made, 512})}});
    y->producer()->epilogue = {{"relu"}};
    expect_same(g, {y});
    expect_same_bits(g, y, "cpu.linear.gemm", "columns");
    const auto two = run(g.function(), g.inputs(), true, 2);
    ASSERT_TRUE(two.ok()) << two.error().to_string();
    EXPECT_GE(plan::kernel_of(two->plan->sequence.steps.back())->choice->tiles, 4);
  }
}

}  // namespace
}  // namespace moka::devices_test
