// SPDX-License-Identifier: Apache-2.0
#include "moka/onnx_export.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <functional>

#include "format/onnx/read.h"
#include "moka/error.h"
#include "temporary_folder.h"

/// The structure of exported graphs. tests/python/onnx_judge.py compares their answers with onnxruntime.
namespace moka::test {
namespace {

namespace ox = format::onnx;

std::string program(const std::string& inputs, const std::string& body, const std::string& outputs,
                    const std::string& opset = "ios17") {
  return "program(1.0)\n{\nfunc main<" + opset + ">(" + inputs + ") {\n" + body + "\n} -> (" + outputs + ");\n}\n";
}

/// A constant of that type whose elements count up.
std::string constant(const std::string& name, const std::vector<int>& shape) {
  std::string dims;
  for (int d : shape) dims += (dims.empty() ? "" : ", ") + std::to_string(d);
  const std::string type = "tensor<fp32, [" + dims + "]>";
  int next = 0;
  const std::function<std::string(size_t)> nested = [&](size_t axis) -> std::string {
    if (axis == shape.size()) return std::to_string(next++ % 7) + ".5";
    std::string out;
    for (int i = 0; i < shape[axis]; i++) out += (i == 0 ? "[" : ", ") + nested(axis + 1);
    return out + "]";
  };
  return type + " " + name + " = const()[name = string(\"" + name + "\"), val = " + type + "(" + nested(0) + ")];\n";
}

class OnnxExportTest : public ::testing::Test {
 protected:
  ox::Model exported(const std::string& text, const OnnxExportOptions& options = {}) {
    const std::string path = (folder_ / "model.onnx").string();
    made_ = export_mil_onnx(text, path, options);
    auto file = ox::open_model(path);
    if (!file) throw std::runtime_error(file.error().to_string());
    return file->model;
  }
  std::string refused(const std::string& text, const OnnxExportOptions& options = {}) {
    try {
      export_mil_onnx(text, (folder_ / "model.onnx").string(), options);
    } catch (const Exception& e) {
      return e.what();
    }
    return "";
  }
  static std::vector<std::string> types(const ox::Graph& graph) {
    std::vector<std::string> out;
    for (const ox::Node& n : graph.nodes) out.push_back(n.op_type);
    return out;
  }

  TemporaryFolder folder_;
  OnnxExport made_;
};

using Types = std::vector<std::string>;

TEST_F(OnnxExportTest, HasOneNodeForEachOperation) {
  const ox::Model m =
      exported(program("tensor<fp32, [1, 3, 8, 8]> x",
                       constant("w", {2, 3, 3, 3}) +
                           R"(tensor<fp32, [1, 2, 6, 6]> c = conv(x = x, weight = w)[name = string("c")];
tensor<fp32, [1, 2, 6, 6]> r = relu(x = c)[name = string("r")];
tensor<int32, [2]> axes = const()[name = string("axes"), val = tensor<int32, [2]>([2, 3])];
bool keep = const()[name = string("keep"), val = bool(false)];
tensor<fp32, [1, 2]> p = reduce_mean(x = r, axes = axes, keep_dims = keep)[name = string("p")];
int32 axis = const()[name = string("axis"), val = int32(-1)];
tensor<fp32, [1, 2]> y = softmax(x = p, axis = axis)[name = string("y")];)",
                       "y"));
  EXPECT_EQ(types(m.graph), (Types{"Conv", "Relu", "ReduceMean", "Softmax"}));
  EXPECT_EQ(made_.operations, 4);
  EXPECT_EQ(made_.nodes, 4);
  EXPECT_EQ(m.opsets[0].version, 17);
  EXPECT_EQ(m.ir_version, 8);
  ASSERT_EQ(m.graph.inputs.size(), 1u);
  EXPECT_EQ(m.graph.inputs[0].name, "x");
  ASSERT_EQ(m.graph.outputs.size(), 1u);
  EXPECT_EQ(m.graph.outputs[0].name, "y");
  EXPECT_EQ(m.graph.nodes[1].outputs[0], "r");  // tensors keep the names of MIL
}

TEST_F(OnnxExportTest, ChoosesTheOldestOpset) {
  const std::string text = program("tensor<fp32, [2]> x",
                                   R"(string mode = const()[name = string("mode"), val = string("EXACT")];
tensor<fp32, [2]> y = gelu(x = x, mode = mode)[name = string("y")];)",
                                   "y");
  EXPECT_EQ(types(exported(text).graph), Types{"Gelu"});
  EXPECT_EQ(made_.opset, 20);
  OnnxExportOptions old;
  old.opset = 17;
  EXPECT_EQ(types(exported(text, old).graph), (Types{"Mul", "Erf", "Add", "Mul", "Mul"}));
  EXPECT_EQ(made_.opset, 17);
  old.opset = 12;
  EXPECT_EQ(refused(text, old), "opset: expected 17 to 23, got 12");
}

TEST_F(OnnxExportTest, KeepsSizesAsInt64) {
  const ox::Model m = exported(program("tensor<fp32, [?, 4]> x",
                                       R"(tensor<int32, [2]> s = shape(x = x)[name = string("s")];
tensor<int32, [1]> i = const()[name = string("i"), val = tensor<int32, [1]>([0])];
int32 axis = const()[name = string("axis"), val = int32(0)];
tensor<int32, [1]> n = gather(x = s, indices = i, axis = axis)[name = string("n")];
tensor<int32, [3]> dims = concat(values = (tensor<int32, [1]>([2]), tensor<int32, [1]>([2]), n), axis = axis)[name = string("dims")];
tensor<fp32, [?, ?, ?]> y = reshape(x = x, shape = dims)[name = string("y")];)",
                                       "y", "ios15"));
  for (const ox::Node& n : m.graph.nodes) EXPECT_NE(n.op_type, "Cast");
  ASSERT_TRUE(m.graph.inputs[0].type.shape.has_value());
  EXPECT_FALSE((*m.graph.inputs[0].type.shape)[0].param.empty());
}

TEST_F(OnnxExportTest, WritesSharedWeightsOnce) {
  const ox::Model m = exported(program("tensor<fp32, [1, 32]> x",
                                       constant("w", {32, 32}) +
                                           R"(tensor<fp32, [1, 32]> a = linear(x = x, weight = w)[name = string("a")];
tensor<fp32, [1, 32]> y = linear(x = a, weight = w)[name = string("y")];)",
                                       "y"));
  EXPECT_EQ(types(m.graph), (Types{"Gemm", "Gemm"}));
  EXPECT_EQ(m.graph.initializers.size(), 1u);
}

TEST_F(OnnxExportTest, ExpandsTheWeightsOfALoopOutside) {
  const ox::Model m = exported(program("tensor<fp32, [2, 2]> x",
                                       R"(tensor<fp32, [2, 2]> y = while_loop(loop_vars = (x))[name = string("loop")] {
block(tensor<fp32, [2, 2]> now) {
  tensor<fp32, [2, 2]> scaled = constexpr_affine_dequantize(axis = int32(0), quantized_data = tensor<int8, [2, 2]>([[1, 2], [3, 4]]), scale = fp32(0.5), zero_point = int8(0))[name = string("scaled")];
  tensor<fp32, [2, 2]> product = mul(x = now, y = scaled)[name = string("product")];
  fp32 sum = reduce_sum(x = product, keep_dims = bool(false))[name = string("sum")];
  bool goes_on = less(x = sum, y = fp32(100))[name = string("goes_on")];
} -> (goes_on);
block(tensor<fp32, [2, 2]> carried) {
  tensor<fp32, [2, 2]> w = constexpr_affine_dequantize(axis = int32(0), quantized_data = tensor<int8, [2, 2]>([[1, 2], [3, 4]]), scale = fp32(0.25), zero_point = int8(0))[name = string("w")];
  tensor<fp32, [2, 2]> next = matmul(x = carried, y = w)[name = string("next")];
} -> (next);
};)",
                                       "y"));
  EXPECT_EQ(types(m.graph), (Types{"DequantizeLinear", "Mul", "ReduceSum", "Less", "DequantizeLinear", "Loop"}));
  const ox::Node& loop = m.graph.nodes.back();
  ASSERT_EQ(loop.attributes.size(), 1u);
  const ox::Graph& body = loop.attributes[0].graphs[0];
  EXPECT_EQ(types(body), (Types{"MatMul", "Mul", "ReduceSum", "Less", "Identity", "Identity"}));
  EXPECT_EQ(body.nodes[0].inputs[1], "w");
  EXPECT_EQ(body.nodes[1].inputs[1], "scaled");  // of the first turn's condition
}

/// MIL takes any condition of one element.
TEST_F(OnnxExportTest, WritesConditionsAsScalars) {
  const ox::Model m =
      exported(program("tensor<fp32, [2]> x, tensor<int32, [1]> n, tensor<bool, [1]> p",
                       R"(tensor<int32, [1]> zero = const()[name = string("zero"), val = tensor<int32, [1]>([0])];
tensor<int32, [1]> turns, tensor<fp32, [2]> y = while_loop(loop_vars = (zero, x))[name = string("loop")] {
block(tensor<int32, [1]> i, tensor<fp32, [2]> now) { tensor<bool, [1]> more = less(x = i, y = n)[name = string("more")]; } -> (more);
block(tensor<int32, [1]> k, tensor<fp32, [2]> carried) {
  tensor<int32, [1]> next = add(x = k, y = tensor<int32, [1]>([1]))[name = string("next")];
  tensor<fp32, [2]> twice = add(x = carried, y = carried)[name = string("twice")];
} -> (next, twice);
};
tensor<fp32, [2]> z = cond(pred = p)[name = string("choice")] { block() { } -> (x); block() { } -> (y); };)",
                       "z"));
  EXPECT_EQ(types(m.graph), (Types{"Less", "Reshape", "Loop", "Reshape", "If"}));
  EXPECT_EQ(m.graph.nodes[2].inputs[1], m.graph.nodes[1].outputs[0]);
  EXPECT_EQ(m.graph.nodes[4].inputs[0], m.graph.nodes[3].outputs[0]);
  const ox::Graph& body = m.graph.nodes[2].attributes[0].graphs[0];
  ASSERT_TRUE(body.outputs[0].type.shape.has_value());
  EXPECT_TRUE(body.outputs[0].type.shape->empty());
  EXPECT_EQ(body.outputs[1].type.shape->size(), 1u);  // values keep their shape
}

TEST_F(OnnxExportTest, WritesWeightsToAFileOfTheirOwn) {
  OnnxExportOptions options;
  options.external_data = true;
  const ox::Model m = exported(
      program("tensor<fp32, [1, 32]> x",
              constant("w", {32, 32}) + R"(tensor<fp32, [1, 32]> y = linear(x = x, weight = w)[name = string("y")];)",
              "y"),
      options);
  ASSERT_EQ(m.graph.initializers.size(), 1u);
  EXPECT_TRUE(m.graph.initializers[0].is_external);
  EXPECT_EQ(made_.files.size(), 2u);
  EXPECT_GE(std::filesystem::file_size(folder_ / "model.onnx.data"), 32u * 32u * 4u);
  EXPECT_LT(std::filesystem::file_size(folder_ / "model.onnx"), 1024u);
}

TEST_F(OnnxExportTest, NamesWhatOnnxCannotExpress) {
  const std::string text = program("tensor<int32, [3]> x, tensor<int32, [1]> u",
                                   R"(tensor<int32, [1]> i = const()[name = string("i"), val = tensor<int32, [1]>([0])];
int32 axis = const()[name = string("axis"), val = int32(0)];
string mode = const()[name = string("mode"), val = string("div")];
tensor<int32, [3]> y = scatter_along_axis(data = x, indices = i, updates = u, axis = axis, mode = mode)[name = string("halve")];)",
                                   "y", "ios15");
  EXPECT_EQ(refused(text),
            "operation 'halve' (scatter_along_axis): ONNX cannot express it: ONNX's scatter does not divide integers");
  OnnxExportOptions check;
  check.check = true;
  const OnnxExport made = export_mil_onnx(text, "", check);
  ASSERT_EQ(made.unsupported.size(), 1u);
  EXPECT_EQ(made.unsupported[0].name, "halve");
  EXPECT_EQ(made.unsupported[0].type, "scatter_along_axis");
}

TEST_F(OnnxExportTest, GivesClassesAndLabels) {
  const std::string path = (folder_ / "classifier.onnx").string();
  export_onnx(std::string(MOKA_GOLDEN) + "/classic/logistic_multi.mlmodel", path);
  auto file = ox::open_model(path);
  ASSERT_TRUE(file.ok()) << file.error().to_string();
  std::string classes;
  for (const auto& [key, value] : file->model.metadata)
    if (key == "moka.classes") classes = value;
  EXPECT_EQ(classes, "[0,1,2]");
  EXPECT_EQ(file->model.graph.outputs.size(), 2u);
}

}  // namespace
}  // namespace moka::test
