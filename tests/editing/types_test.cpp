// SPDX-License-Identifier: Apache-2.0
#include "edit_util.h"

namespace moka::edit_test {
namespace {

DataType type_of(const ModelSource& source, bool input) {
  const FunctionDescription f = source.load().description().functions[0];
  return (input ? f.inputs : f.outputs)[0].array.type;
}

TEST(Types, FeaturesOfAProgramBecomeFloat16AndBack) {
  ModelSource model = edit::set_type(program("ios15"), "x", "float16");
  model = edit::set_type(model, "y", "float16");
  EXPECT_EQ(type_of(model, true), DataType::float16);
  EXPECT_EQ(type_of(model, false), DataType::float16);
  EXPECT_EQ(model.specification().values("specificationVersion").at(0), Message::Scalar(int64_t{7}));
  EXPECT_EQ(predict(model, {{"x", kInput.converted(DataType::float16)}}, "y"), relu(middle_of(kX)));
  // Back: the casts go away instead of piling up.
  const size_t operations = program("ios15").load().structure().functions[0].body.operations.size();
  model = edit::set_type(edit::set_type(model, "x", "float32"), "y", "float32");
  EXPECT_EQ(model.load().structure().functions[0].body.operations.size(), operations);
  EXPECT_EQ(type_of(model, true), DataType::float32);
  EXPECT_EQ(predict(model, {{"x", kInput}}, "y"), relu(middle_of(kX)));
}

TEST(Types, IntegersOfAProgram) {
  const ModelSource model = edit::set_type(program(), "x", "int32");
  EXPECT_EQ(predict(model, {{"x", array({1, -2, 3, 7}, {1, 4}).converted(DataType::int32)}}, "y"),
            relu(middle_of({1, -2, 3, 7})));
}

TEST(Types, FeaturesOfANetwork) {
  ModelSource model = edit::set_type(network(), "x", "float64");
  model = edit::set_type(model, "y", "float64");
  EXPECT_EQ(type_of(model, true), DataType::float64);
  EXPECT_EQ(predict(model, {{"x", array(kX, {4}).converted(DataType::float64)}}, "y"), relu(middle_of(kX)));
}

TEST(Types, MistakesAreNamed) {
  EXPECT_EQ(message_of([&] { edit::set_type(program(), "x", "float64"); }),
            "'x': features of an ML program cannot be float64");
  EXPECT_EQ(message_of([&] { edit::set_type(network(), "x", "float16"); }),
            "'x': features of a neural network cannot be float16");
  EXPECT_EQ(message_of([&] { edit::set_type(program(), "x", "text"); }),
            "element type: expected one of float16, float32, float64, int32, int8, got 'text'");
}

TEST(Metadata, TextsAreSetAndRemoved) {
  ModelSource model = edit::set_metadata(program(), "author", "somebody");
  model = edit::set_user_defined(edit::set_user_defined(model, "a", "1"), "b", "2");
  model = edit::set_user_defined(model, "a", "");
  model = edit::describe_feature(model, "x", "four numbers");
  const ModelDescription d = model.load().description();
  EXPECT_EQ(d.author, "somebody");
  EXPECT_EQ(d.user_defined, (std::map<std::string, std::string>{{"b", "2"}}));
  EXPECT_EQ(d.functions[0].inputs[0].description, "four numbers");
  EXPECT_EQ(edit::set_metadata(model, "author", "").load().description().author, "");
}

}  // namespace
}  // namespace moka::edit_test
