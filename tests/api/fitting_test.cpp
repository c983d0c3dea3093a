// SPDX-License-Identifier: Apache-2.0
#include "api/api_util.h"
#include "moka/build.h"

/// Sizes that a model can run with are looked for without numbers, by a limited amount of work, and errors say what was
/// tried.
namespace moka::test {
namespace {

using Scalars = std::vector<Message::Scalar>;

FeatureDescription sized_feature(const std::string& name, std::vector<int64_t> shape) {
  FeatureDescription f;
  f.name = name;
  f.array.shape = std::move(shape);
  return f;
}

/// A network of the legacy mapping: `copies` layers, then a reshape of all sequences and batches to `target`.
Model reshaping(const std::vector<int64_t>& shape, const std::vector<int64_t>& target, int copies = 0) {
  ModelDescription description;
  description.specification_version = 1;
  description.functions.push_back({});
  description.functions[0].inputs = {sized_feature("x", shape)};
  description.functions[0].outputs = {sized_feature("y", {target.begin() + 1, target.end()})};
  Message model = describe_model(description);
  Message network = model.add("neuralNetwork");
  std::string from = "x";
  const auto layer = [&](const std::string& name, const std::string& to) {
    Message out = network.add("layers");
    out.set("name", Message::Scalar(name)).set("input", Scalars{from}).set("output", Scalars{to});
    from = to;
    return out;
  };
  for (int i = 0; i < copies; ++i) layer("s" + std::to_string(i), "s" + std::to_string(i)).add("softmax");
  layer("rs", "y").add("reshape").set("targetShape", Scalars{target.begin(), target.end()});
  return ModelSource(model).load();
}

std::string refusal(const Model& model) {
  try {
    model.random_inputs();
  } catch (const Exception& e) {
    return e.what();
  }
  return "";
}

TEST(FittingSizes, AnErrorSaysWhatPredictSaysAndWhatWasTried) {
  const Model m = reshaping({8, 4, 4}, {1, 8, 3, 4});
  const char* reason =
      "operation 'rs' (reshape), parameter 'shape': expected a shape of 128 elements, as x has, got [1, 8, 3, 4]";
  expect_error(ErrorKind::invalid_argument, {reason}, [&] { m.predict({{"x", counted({8, 4, 4})}}); });
  EXPECT_EQ(refusal(m),
            std::string(reason) + "; other sizes fit no better (tried: sequences of 1 to 512; not all allowed sizes)");
  expect_error(ErrorKind::invalid_argument, {reason, "1 to 512"}, [&] { m.compute_plan(); });
}

/// The search counts operations and not seconds, so it ends at the same size each time: 4000 layers for each one.
TEST(FittingSizes, TheSearchEndsAfterALimitedNumberOfOperations) {
  const std::string text = refusal(reshaping({2, 1, 1}, {1, 3, 1, 1}, 4000));
  EXPECT_NE(text.find("(tried: sequences of 1 to 49; not all allowed sizes)"), std::string::npos) << text;
}

/// An array of the largest size would take 1 TB.
TEST(FittingSizes, NoArraysAreMade) {
  const Model m = Model::from_mil(
      program("tensor<fp32, [?, 536870912]> x",
              "tensor<fp32, [?]> sum = reduce_sum(x = x, axes = tensor<int32, [1]>([1]), keep_dims = bool(false));\n"
              "tensor<fp32, [2, ?]> two = stack(values = (sum, tensor<fp32, [2]>([1, 2])), axis = int32(0));\n"
              "tensor<fp32, [2, ?]> three = stack(values = (sum, tensor<fp32, [3]>([1, 2, 3])), axis = int32(0));",
              "two, three"));
  const std::string text = refusal(m);
  EXPECT_NE(text.find("(stack)"), std::string::npos) << text;
  EXPECT_NE(text.find("all flexible sizes equal, of 1 to 512"), std::string::npos) << text;
  EXPECT_NE(text.find("each flexible size alone, up to 64; not all allowed sizes)"), std::string::npos) << text;
}

/// Only 4321 numbers fit, which the error of the default size says.
TEST(FittingSizes, TheRefusedOperationNamesASize) {
  const Model m = Model::from_mil(
      program("tensor<fp32, [2, ?]> x",
              "tensor<fp32, [4321, 1]> w = fill(shape = tensor<int32, [2]>([4321, 1]), value = fp32(1));\n"
              "tensor<fp32, [2, 1]> y = matmul(x = x, y = w);",
              "y"));
  EXPECT_EQ(m.random_inputs().array("x").shape(), (std::vector<int64_t>{2, 4321}));
  EXPECT_EQ(m.predict({{"x", MultiArray(DataType::float32, {2, 4321})}}).array("y").count(), 2);
}

/// A network that stacks x of listed lengths, by default the first one, on 3 numbers.
ModelSource stacking(const std::vector<std::vector<int64_t>>& lengths) {
  ModelDescription description;
  description.specification_version = 4;
  description.functions.push_back({});
  description.functions[0].inputs = {sized_feature("x", lengths[0]), sized_feature("z", {3})};
  description.functions[0].inputs[0].array.enumerated = lengths;
  description.functions[0].outputs = {sized_feature("y", {2, 3})};
  Message model = describe_model(description);
  Message network = model.add("neuralNetwork");
  network.set("arrayInputShapeMapping", Message::Scalar(int64_t{1}));
  Message layer = network.add("layers");
  layer.set("name", Message::Scalar("pile")).set("input", Scalars{"x", "z"}).set("output", Scalars{"y"});
  layer.add("stack").set("axis", Message::Scalar(int64_t{0}));
  return ModelSource(model);
}

TEST(FittingSizes, TheFirstListedSizeNeedNotFit) {
  const Model m = stacking({{2}, {4}, {3}}).load();
  EXPECT_EQ(m.random_inputs().array("x").shape(), std::vector<int64_t>{3});
  EXPECT_EQ(m.predict({{"x", counted({3})}, {"z", counted({3})}}).array("y").shape(), (std::vector<int64_t>{2, 3}));
  expect_error(ErrorKind::invalid_argument, {"'pile' (stack)", "; sizes that fit: x 3, z 3"}, [&] {
    m.predict({{"x", counted({2})}, {"z", counted({3})}});
  });
}

TEST(FittingSizes, OneListedSizeMustFit) {
  expect_error(ErrorKind::malformed,
               {"with the default sizes of the inputs", "'pile' (stack)",
                "; other sizes fit no better (tried: 2 choices of listed sizes and limits)"},
               [] {
                 stacking({{2}, {4}, {5}}).load();
               });
}

/// The sequence of inputs has to be 4.
TEST(FittingSizes, PredictNamesSizesThatFit) {
  const Model m = reshaping({2, 1, 1}, {1, 8, 1, 1});
  EXPECT_EQ(m.random_inputs().array("x").shape(), (std::vector<int64_t>{4, 1, 2, 1, 1}));
  EXPECT_EQ(m.predict(m.random_inputs()).array("y").count(), 8);
  expect_error(ErrorKind::invalid_argument, {"'rs' (reshape)", "; sizes that fit: x 4 x 1 x 2 x 1 x 1"}, [&] {
    m.predict({{"x", counted({2, 1, 1})}});
  });
}

/// Only the body of a loop, or a branch, needs a size of 3.
TEST(FittingSizes, OfBlocks) {
  const std::string three = "tensor<fp32, [3]> three = const()[val = tensor<fp32, [3]>([1, 2, 3])];\n";
  const Model loop = Model::from_mil(program("tensor<fp32, [?]> x", three + R"(
      int32 n, tensor<fp32, [?]> y = while_loop(loop_vars = (int32(0), x)) {
        block test(int32 k, tensor<fp32, [?]> v) { bool more = less(x = k, y = int32(2)); } -> (more);
        block step(int32 k, tensor<fp32, [?]> v) {
          int32 after = add(x = k, y = int32(1));
          tensor<fp32, [2, ?]> pile = stack(values = (v, three), axis = int32(0));
          tensor<fp32, [?]> sum = reduce_sum(x = pile, axes = tensor<int32, [1]>([0]), keep_dims = bool(false));
        } -> (after, sum);
      };)",
                                             "y"));
  EXPECT_EQ(loop.random_inputs().array("x").shape(), std::vector<int64_t>{3});
  EXPECT_NO_THROW(loop.predict(loop.random_inputs()));
}

TEST(FittingSizes, ADescribedSizeOf0IsToBlame) {
  for (const std::vector<int64_t>& shape : {std::vector<int64_t>{8, 0, 4}, std::vector<int64_t>{0}})
    expect_error(ErrorKind::invalid_argument, {"input 'x' is described with a size of 0 (", "'rs' (reshape)"}, [&] {
      reshaping(shape, {1, 8, 3, 4}).random_inputs();
    });
}

}  // namespace
}  // namespace moka::test
