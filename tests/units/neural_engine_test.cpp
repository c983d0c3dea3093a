// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <fstream>

#include "api/api_util.h"
#include "devices/neural_engine/rules.h"
#include "temporary_folder.h"

/// Compares the preview with public recordings from Apple's chips, and tests its precision.
namespace moka::test {
namespace {

ModelConfiguration on_engine() {
  ModelConfiguration c;
  c.compute_units = ComputeUnits::cpu_and_neural_engine;
  return c;
}

/// The preview's refusal of the operation `y`; "" if it takes the operation.
std::string refusal(const std::string& inputs, const std::string& body, const std::string& outputs = "y",
                    ModelConfiguration c = on_engine()) {
  c.optimize = true;
  const ComputePlan plan = Model::from_mil(program(inputs, body, outputs), c).compute_plan();
  for (const PlannedOperation& o : plan.operations) {
    if (o.name != "y" || o.kernel.empty()) continue;
    for (const UnitBid& b : o.bids)
      if (b.unit == "neuralEngine") {
        EXPECT_EQ(b.refusal.empty(), o.device == "neural_engine") << o.device;
        return b.refusal;
      }
    return "not asked";
  }
  return "not planned";
}

std::string y(const std::string& type, const std::string& op) {
  return "tensor<" + type + "> y = " + op + "[name = string(\"y\")];";
}

std::string conv(int dilation) {
  return "string pad = const()[name = string(\"pad\"), val = string(\"same\")];\n"
         "tensor<fp16, [1, 4, 32, 32]> y = conv(dilations = tensor<int32, [2]>([" +
         std::to_string(dilation) + ", " + std::to_string(dilation) +
         "]), groups = int32(1), pad = tensor<int32, [4]>([0, 0, 0, 0]), pad_type = pad, strides = "
         "tensor<int32, [2]>([1, 1]), weight = w, x = x)[name = string(\"y\")];";
}

std::string conv_refusal(int kernel, int dilation) {
  const std::string w = "tensor<fp16, [4, 4, " + std::to_string(kernel) + ", " + std::to_string(kernel) + "]> w";
  return refusal("tensor<fp16, [1, 4, 32, 32]> x, " + w, conv(dilation));
}

TEST(NeuralEngine, TakesWhatPublicPlansPutThere) {
  // vx-lang/Vx#436: MLComputePlan lists the Neural Engine for a matmul of 4 x 4.
  EXPECT_EQ(refusal("tensor<fp16, [4, 4]> a, tensor<fp16, [4, 4]> b", y("fp16, [4, 4]", "matmul(x = a, y = b)")), "");
  // vx-lang/Vx#437: fused attention of 1 x 16 x 2048 x 64 in float16, and never in float32. (Shorter here.)
  const auto attention = [](const std::string& t) {
    const std::string v = "tensor<" + t + ", [1, 16, 64, 64]> ";
    return refusal(v + "q, " + v + "k, " + v + "v",
                   y(t + ", [1, 16, 64, 64]", "scaled_dot_product_attention(key = k, query = q, value = v)"));
  };
  EXPECT_EQ(attention("fp16"), "");
  EXPECT_NE(attention("fp32").find("float32"), std::string::npos);
  // The guide of the capability surface: kernels to 13, dilated ones too.
  EXPECT_EQ(conv_refusal(3, 1), "");
  EXPECT_EQ(conv_refusal(13, 1), "");
  EXPECT_EQ(conv_refusal(3, 4), "");
  EXPECT_EQ(refusal("tensor<fp16, [1, 8, 16, 16]> x", y("fp16, [1, 8, 16, 16]", "softmax(axis = int32(1), x = x)")),
            "");
}

TEST(NeuralEngine, RefusesWhatPublicPlansKeepOff) {
  // roboflow/rf-detr#1495: top-k, and expand_dims, tile and gather_along_axis of its indices.
  EXPECT_NE(refusal("tensor<fp16, [1, 300]> x",
                    "tensor<fp16, [1, 10]> y_0, tensor<int32, [1, 10]> y_1 = topk(axis = int32(1), k = int32(10), "
                    "x = x)[name = string(\"y\")];",
                    "y_0, y_1")
                .find("top-k"),
            std::string::npos);
  const std::string indices = "tensor<int32, [1, 10]> i";
  EXPECT_NE(refusal(indices, y("int32, [1, 40]", "tile(reps = tensor<int32, [2]>([1, 4]), x = i)")).find("int32"),
            std::string::npos);
  EXPECT_NE(refusal("tensor<fp16, [1, 300]> x, " + indices,
                    y("fp16, [1, 10]",
                      "gather_along_axis(axis = int32(1), indices = i, validate_indices = bool(false), x = x)"))
                .find("gathers"),
            std::string::npos);
  // The guide's limits: accepted at the limit, refused above it.
  EXPECT_NE(conv_refusal(14, 1).find("above 13"), std::string::npos);
  const auto relu = [](const std::string& shape) {
    return refusal("tensor<fp16, " + shape + "> x", y("fp16, " + shape, "relu(x = x)"));
  };
  EXPECT_EQ(relu("[1, 2, 1, 16384]"), "");
  EXPECT_NE(relu("[1, 2, 1, 16385]").find("16,384"), std::string::npos);
  EXPECT_EQ(relu("[1, 65536, 1, 1]"), "");
  EXPECT_NE(relu("[1, 65537, 1, 1]").find("65,536"), std::string::npos);
  EXPECT_NE(relu("[1, 1, 1, 1, 2, 2]").find("more than 5 dimensions"), std::string::npos);
  EXPECT_NE(refusal("tensor<fp16, [1, 8]> x",
                    y("fp16, [1, 1]", "reduce_prod(axes = tensor<int32, [1]>([1]), keep_dims = bool(true), x = x)"))
                .find("no hardware path"),
            std::string::npos);
  EXPECT_NE(refusal("tensor<fp16, [1, 8]> x",
                    y("fp16, [1, 8]", "cumsum(axis = int32(1), exclusive = bool(false), reverse = bool(false), x = x)"))
                .find("no public source"),
            std::string::npos);
}

TEST(NeuralEngine, RefusesSizesThatTheModelLeavesOpen) {
  const std::string text = program("tensor<fp16, [1, ?]> x", y("fp16, [1, ?]", "relu(x = x)"), "y");
  const Model m = Model::from_mil(text, on_engine());
  MultiArray x(DataType::float16, {1, 8});
  for (const PlannedOperation& o : m.compute_plan({{"x", x}}).operations)
    for (const UnitBid& b : o.bids)
      if (b.unit == "neuralEngine") {
        EXPECT_NE(b.refusal.find("leaves open"), std::string::npos) << b.refusal;
      }
}

double run(const std::string& text, std::vector<float> in, bool on) {
  const Model m = Model::from_mil(text, on ? on_engine() : ModelConfiguration{});
  MultiArray x(DataType::float32, {static_cast<int64_t>(in.size())});
  std::copy(in.begin(), in.end(), x.as<float>().begin());
  return m.predict({{"x", x}}).array("z").at(0);
}

const std::string kToHalf =
    "string h = const()[name = string(\"h\"), val = string(\"fp16\")];\n"
    "string f = const()[name = string(\"f\"), val = string(\"fp32\")];\n";

TEST(NeuralEngine, RoundsEveryValueToFloat16) {
  // 2049 lies between 2048 and 2050; halves to even. The CPU keeps float32.
  const std::string text = program("tensor<fp32, [1]> x",
                                   kToHalf +
                                       "tensor<fp16, [1]> a = cast(dtype = h, x = x)[name = string(\"a\")];\n"
                                       "tensor<fp16, [1]> b = add(x = a, y = fp16(0x1p+0))[name = string(\"b\")];\n"
                                       "tensor<fp16, [1]> c = sub(x = b, y = fp16(0x1p+11))[name = string(\"c\")];\n"
                                       "tensor<fp32, [1]> z = cast(dtype = f, x = c)[name = string(\"z\")];",
                                   "z");
  EXPECT_EQ(run(text, {2048}, true), 0);
  EXPECT_EQ(run(text, {2050}, true), 4);  // 2051 rounds to 2052
}

TEST(NeuralEngine, SumsInFloat32) {
  // 4096 ones: sums of float16 would stop at 2048.
  const std::string text = program(
      "tensor<fp32, [4096]> x",
      kToHalf +
          "tensor<fp16, [4096]> a = cast(dtype = h, x = x)[name = string(\"a\")];\n"
          "tensor<fp16, [1]> b = reduce_sum(axes = tensor<int32, [1]>([0]), keep_dims = bool(true), x = a)[name = "
          "string(\"b\")];\n"
          "tensor<fp32, [1]> z = cast(dtype = f, x = b)[name = string(\"z\")];",
      "z");
  EXPECT_EQ(run(text, std::vector<float>(4096, 1.0f), true), 4096);
}

TEST(NeuralEngine, IsAskedOnlyWhereItIsWanted) {
  const std::string text = program("tensor<fp16, [8]> x", y("fp16, [8]", "exp(x = x)"), "y");
  for (const ComputeUnits units : {ComputeUnits::all, ComputeUnits::cpu_only, ComputeUnits::cpu_and_gpu}) {
    ModelConfiguration c;
    c.compute_units = units;
    for (const PlannedOperation& o : Model::from_mil(text, c).compute_plan().operations)
      EXPECT_NE(o.device, "neural_engine");
  }
  ModelConfiguration pinned;
  pinned.pins = {{"*", "neuralEngine"}};
  bool used = false;
  for (const PlannedOperation& o : Model::from_mil(text, pinned).compute_plan().operations)
    used |= o.device == "neural_engine";
  EXPECT_TRUE(used);
}

TEST(NeuralEngine, ObeysRulesOfTheUser) {
  TemporaryFolder folder;
  ModelConfiguration c = on_engine();
  c.neural_engine_rules = folder / "my.rules";
  std::ofstream(c.neural_engine_rules) << "# An old chip.\n[dilation]\noperations = conv\nwhen = dilation above 1\n"
                                          "reason = dilated convolutions\nremedy = larger kernels\nsource = my phone\n";
  const std::string w = "tensor<fp16, [4, 4, 3, 3]> w";
  EXPECT_EQ(refusal("tensor<fp16, [1, 4, 32, 32]> x, " + w, conv(2), "y", c), "dilated convolutions");
  const ComputePlan plan =
      Model::from_mil(program("tensor<fp16, [1, 4, 32, 32]> x, " + w, conv(2), "y"), c).compute_plan();
  for (const PlannedOperation& o : plan.operations)
    for (const UnitBid& b : o.bids)
      if (b.unit == "neuralEngine") {
        EXPECT_EQ(b.remedy + " [" + b.source + "]", "larger kernels [my phone]") << o.name;
      }
  EXPECT_EQ(refusal("tensor<fp16, [1, 4, 32, 32]> x, " + w, conv(1), "y", c), "");
  std::ofstream(c.neural_engine_rules) << "[x]\noperations = conv\nwhen = rank of 5\n";
  expect_error(ErrorKind::malformed, {"my.rules", "line 3", "'rank of 5' is not a condition"},
               [&] { Model::from_mil(program("tensor<fp16, [8]> x", y("fp16, [8]", "exp(x = x)"), "y"), c); });
  c.neural_engine_rules = folder / "none.rules";
  expect_error(ErrorKind::not_found, {"rules of the Neural Engine", "none.rules"},
               [&] { Model::from_mil(program("tensor<fp16, [8]> x", y("fp16, [8]", "exp(x = x)"), "y"), c); });
}

TEST(NeuralEngineRules, EveryMistakeNamesItsLine) {
  using devices::neural_engine::Rules;
  for (const auto& [text, error] : std::vector<std::pair<std::string, std::string>>{
           {"operations = conv\n", "line 1: expected a section"},
           {"[a]\nconv\n", "line 2: expected KEY = VALUE"},
           {"[a]\nopeartions = conv\n", "line 2: unknown key 'opeartions'"},
           {"[a\n", "line 1: expected [NAME]"},
           {"[a]\noperations = conv\nreason = no\n",
            "line 1: rule 'a' needs operations, either a reason or a doubt, and a source"},
           {"[a]\noperations = conv\nreason = no\ndoubt = yes\nsource = me\n", "line 1: rule 'a' needs"},
           {"[a]\nwhen = type not fp32\n", "line 2: 'type not fp32' is not a condition"},
           {"[a]\nwhen = window is large\n", "line 2: 'window is large' is not a condition"},
           {"[a]\nwhen = kernel above many\n", "line 2: 'kernel above many' is not a condition"}}) {
    Rules rules;
    const Status s = rules.add(text);
    ASSERT_FALSE(s.ok()) << text;
    EXPECT_NE(s.error().message().find(error), std::string::npos) << s.error().message();
  }
}

/// In an ML program, float32 is meant literally, even in a pipeline. A neural network in a pipeline has no types.
TEST(NeuralEngine, KeepsFloat32OfProgramsInPipelines) {
  const auto taken = [](const char* path) {
    size_t n = 0;
    for (const PlannedOperation& o :
         Model::load(std::string(MOKA_GOLDEN) + path, on_engine()).compute_plan().operations)
      n += o.device == "neural_engine";
    return n;
  };
  EXPECT_EQ(taken("/detectors/program.mlpackage"), 0u);
  EXPECT_EQ(taken("/detectors/compiled.mlmodelc"), 0u);
  EXPECT_GT(taken("/detectors/pipeline.mlmodel"), 0u);
}

}  // namespace
}  // namespace moka::test
