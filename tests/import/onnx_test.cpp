// SPDX-License-Identifier: Apache-2.0
#include "import/onnx_model.h"

namespace moka::import::onnx {
namespace {

TEST(OnnxImport, ComputesAPerceptron) {
  const auto file =
      model({node("Gemm", {"x", "w", "b"}, {"h"}, {integer("transB", 1)}), node("Relu", {"h"}, {"y"})},
            {tensor("x", kFloat, {1, 2})}, {tensor("y", kFloat, {1, 3})},
            {weight<float>("w", kFloat, {3, 2}, {1, 2, 3, 4, -5, -6}), weight<float>("b", kFloat, {3}, {0.5f, 0, 1})});
  const Imported m = imported(file);
  EXPECT_EQ(m.outputs[0].value->name, "y");
  EXPECT_EQ(run(m, Tensor::f32({1, 2}, std::vector<float>{1, 10})), (std::vector<float>{21.5f, 43, 0}));
  // linear and relu: one operation for each node.
  size_t operations = 0;
  for (const auto& op : m.program.functions[0]->body().ops()) operations += op->type_name() != "const";
  EXPECT_EQ(operations, 2u);
}

TEST(OnnxImport, KeepsTheNamesOfOutputs) {
  struct Case {
    const char* name;
    std::vector<format::Node> nodes;
    std::vector<std::string> outputs, expected;
  };
  const Case cases[] = {
      {"bool", {node("Greater", {"x", "c"}, {"y"})}, {"y"}, {"y"}},
      {"scalar", {node("ReduceSum", {"x"}, {"y"}, {integer("keepdims", 0)})}, {"y"}, {"y"}},
      {"weight", {}, {"c"}, {"c"}},
      {"folded", {node("Add", {"c", "c"}, {"y"})}, {"y"}, {"y"}},
      {"shape", {node("Shape", {"x"}, {"y"})}, {"y"}, {"y"}},
      {"passed through", {node("Identity", {"x"}, {"y"})}, {"y"}, {"y"}},
      {"an alias first", {node("Relu", {"x"}, {"z"}), node("Identity", {"z"}, {"w"})}, {"w", "z"}, {"w", "z"}},
      {"an alias last", {node("Relu", {"x"}, {"z"}), node("Identity", {"z"}, {"w"})}, {"z", "w"}, {"z", "w"}},
      {"inside", {node("Relu", {"x"}, {"a.b"}), node("Neg", {"a.b"}, {"a_b"})}, {"a_b"}, {"a_b"}},
      {"an input", {node("Relu", {"x"}, {"y"})}, {"x", "y"}, {"x_1", "y"}},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    std::vector<format::ValueInfo> outputs;
    for (const std::string& name : c.outputs) outputs.push_back(tensor(name, kFloat, {2}));
    const Imported m =
        imported(model(c.nodes, {tensor("x", kFloat, {2})}, outputs, {weight<float>("c", kFloat, {2}, {1, 2})}));
    std::vector<std::string> names;
    for (const Feature& f : m.outputs) names.push_back(f.value->name);
    EXPECT_EQ(names, c.expected);
    EXPECT_EQ(m.inputs[0].value->name, "x");
  }
}

TEST(OnnxImport, MakesFeaturesOfTheElementsOfSequences) {
  format::ValueInfo sequence;
  sequence.name = "s";
  sequence.type.kind = format::Type::Kind::sequence;
  sequence.type.inner = std::make_shared<format::Type>(tensor("", kFloat, {2}).type);
  const auto file = model({node("ConcatFromSequence", {"s"}, {"y"}, {integer("axis", 0)})}, {sequence},
                          {tensor("y", kFloat, {6}), sequence});
  Options options;
  options.lengths["s"] = 3;
  const Imported m = imported(file, options);
  ASSERT_EQ(m.inputs.size(), 3u);
  EXPECT_EQ(m.inputs[2].value->name, "s_2");
  EXPECT_EQ(m.inputs[2].element, 2);
  EXPECT_EQ(m.outputs.size(), 4u);
  std::vector<ir::RuntimeValue> inputs;
  for (float v = 0; v < 6; v += 2) inputs.emplace_back(Tensor::f32({2}, std::vector<float>{v, v + 1}));
  const auto out = ir::evaluate(*m.program.functions[0], inputs);
  ASSERT_TRUE(out.ok()) << out.error().to_string();
  const auto joined = (*out)[0].tensor.as<float>();
  EXPECT_EQ(std::vector<float>(joined.begin(), joined.end()), (std::vector<float>{0, 1, 2, 3, 4, 5}));
  EXPECT_NE(refusal(file).find("input 's': Core ML has no sequences; give its length"), std::string::npos);
  options.lengths["s"] = -1;
  EXPECT_NE(refusal(file, options).find("expected a length from 0 to 4096, got -1"), std::string::npos);
  options.lengths = {{"s", 3}, {"t", 1}};
  EXPECT_NE(refusal(file, options).find("'t': expected the name of an input that is a sequence ('s')"),
            std::string::npos);
  options = {.lengths = {{"s", 3}}, .absent = {"s"}};
  EXPECT_NE(refusal(file, options).find("'s': expected the name of an optional input (the model has none)"),
            std::string::npos);
}

/// Shape, Gather, Concat and Reshape as PyTorch writes `x.view(x.shape[0], -1)`.
TEST(OnnxImport, KeepsNamedDimensionsFlexible) {
  const auto file = model(
      {node("Shape", {"x"}, {"s"}), node("Gather", {"s", "zero"}, {"n"}), node("Unsqueeze", {"n", "axes"}, {"n1"}),
       node("Concat", {"n1", "rest"}, {"target"}, {integer("axis", 0)}), node("Reshape", {"x", "target"}, {"y"})},
      {tensor("x", kFloat, {-1, 2, 3})}, {tensor("y", kFloat, {-1, 6})},
      {weight<int64_t>("zero", kInt64, {}, {0}), weight<int64_t>("axes", kInt64, {1}, {0}),
       weight<int64_t>("rest", kInt64, {1}, {-1})});
  const Imported m = imported(file);
  const ir::Type& type = m.outputs[0].value->type;
  ASSERT_EQ(type.rank(), 2);
  EXPECT_EQ(type.shape()[0], m.inputs[0].value->type.shape()[0]);  // the same symbol
  EXPECT_EQ(type.shape()[1], 6);
  EXPECT_EQ(m.inputs[0].dimensions[0], "N");
  EXPECT_EQ(run(m, Tensor::f32({1, 2, 3}, std::vector<float>{1, 2, 3, 4, 5, 6})),
            (std::vector<float>{1, 2, 3, 4, 5, 6}));
  Options options;
  options.dimensions["N"] = 4;
  EXPECT_EQ(cat(imported(file, options).outputs[0].value->type), "tensor<fp32, [4, 6]>");
}

TEST(OnnxImport, SlicesNeighborsThatAreGathered) {
  struct Case {
    const char* name;
    std::vector<int64_t> shape, indices;
    std::vector<float> expected;
    bool sliced;
  };
  const Case cases[] = {
      {"scalar", {}, {1}, {3, 4}, true},
      {"negative", {}, {-1}, {5, 6}, true},
      {"neighbors", {2}, {-2, 2}, {3, 4, 5, 6}, true},
      {"descending", {2}, {2, 1}, {5, 6, 3, 4}, false},
      {"matrix", {1, 2}, {0, 1}, {1, 2, 3, 4}, false},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    const Imported m = imported(model({node("Gather", {"x", "i"}, {"y"})}, {tensor("x", kFloat, {3, 2})},
                                      {tensor("y", kFloat, {})}, {weight("i", kInt64, c.shape, c.indices)}));
    EXPECT_EQ(run(m, Tensor::f32({3, 2}, std::vector<float>{1, 2, 3, 4, 5, 6})), c.expected);
    for (const auto& op : m.program.functions[0]->body().ops())
      EXPECT_FALSE(op->type_name() == (c.sliced ? "gather" : "slice_by_index"));
  }
}

TEST(OnnxImport, FollowsTheVersionOfSoftmax) {
  const std::vector<float> x{0, 0, 0, 0};
  const auto file = [&](int64_t opset) {
    return model({node("Softmax", {"x"}, {"y"}, {integer("axis", 1)})}, {tensor("x", kFloat, {1, 2, 2})},
                 {tensor("y", kFloat, {1, 2, 2})}, {}, opset);
  };
  // Before opset 13 over all axes from the axis on.
  EXPECT_EQ(run(imported(file(12)), Tensor::f32({1, 2, 2}, x)), (std::vector<float>{0.25f, 0.25f, 0.25f, 0.25f}));
  EXPECT_EQ(run(imported(file(13)), Tensor::f32({1, 2, 2}, x)), (std::vector<float>{0.5f, 0.5f, 0.5f, 0.5f}));
}

TEST(OnnxImport, WritesOutLoopsOfKnownLength) {
  format::Attribute body;
  body.name = "body", body.kind = format::Attribute::Kind::graph;
  body.graphs.emplace_back();
  format::Graph& g = body.graphs[0];
  g.inputs = {tensor("i", kInt64, {}), tensor("go", format::DataType::boolean, {}), tensor("v", kFloat, {2})};
  g.nodes = {node("Identity", {"go"}, {"on"}), node("Add", {"v", "v"}, {"w"})};
  g.outputs = {tensor("on", format::DataType::boolean, {}), tensor("w", kFloat, {2})};
  const auto file = model({node("Loop", {"count", "", "x"}, {"y"}, {body})}, {tensor("x", kFloat, {2})},
                          {tensor("y", kFloat, {2})}, {weight<int64_t>("count", kInt64, {}, {3})});
  EXPECT_EQ(run(imported(file), Tensor::f32({2}, std::vector<float>{1, -2})), (std::vector<float>{8, -16}));
}

TEST(OnnxImport, NamesWhatItRefuses) {
  const auto one = [](format::Node n, format::DataType type = kFloat) {
    return model({std::move(n)}, {tensor("x", type, {2})}, {tensor("y", type, {2})});
  };
  EXPECT_EQ(refusal(one(node("Frobnicate", {"x"}, {"y"}))),
            "node 'y' (Frobnicate, opset 17): Core ML has no such operator, and Moka does not compose it");
  EXPECT_NE(refusal(one(node("Relu", {"z"}, {"y"}))).find("value 'z' is neither an input nor computed"),
            std::string::npos);
  EXPECT_EQ(refusal(one(node("Relu", {"x"}, {"y"}), format::DataType::string)),
            "input 'x': Core ML's programs take no strings");
  EXPECT_EQ(refusal(one(node("Identity", {"x"}, {}))), "value 'y' is neither an input nor computed before it is read");
  EXPECT_EQ(refusal(one(node("Cosh", {}, {"y"}))), "node 'y' (Cosh, opset 17): input 0 is missing");
  auto large = model({node("Add", {"x", "c"}, {"y"})}, {tensor("x", kInt64, {1})}, {tensor("y", kInt64, {1})},
                     {weight<int64_t>("c", kInt64, {1}, {int64_t{1} << 40})});
  EXPECT_NE(refusal(large).find("1099511627776 does not fit into int32"), std::string::npos);
  auto cut = model({node("Add", {"x", "c"}, {"y"})}, {tensor("x", kFloat, {1})}, {tensor("y", kFloat, {1})},
                   {weight<float>("c", kFloat, {2}, {1})});
  EXPECT_NE(refusal(cut).find("tensor 'c': expected 8 bytes, got 4"), std::string::npos);
  auto sizes = model({node("ReduceSum", {"x", "axes"}, {"y"})},
                     {tensor("x", kFloat, {2, 2}), tensor("axes", kInt64, {1})}, {tensor("y", kFloat, {1, 2})});
  EXPECT_NE(refusal(sizes).find("axes (input 'axes'): expected a constant"), std::string::npos);
  Options options;
  options.constants["axes"] = Tensor::i32({0});
  EXPECT_EQ(imported(sizes, options).inputs.size(), 1u);
}

}  // namespace
}  // namespace moka::import::onnx
