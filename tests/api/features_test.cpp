// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>

#include "api/api_util.h"
#include "models_folder.h"

namespace moka::test {
namespace {

namespace fs = std::filesystem;

Model doubled() {
  return Model::from_mil(
      program("tensor<fp32, [2, 3]> x", "tensor<fp32, [2, 3]> y = add(x = x, y = x)[name = string(\"twice\")];", "y"));
}

TEST(Features, MissingNamesTheFeature) {
  Model m = doubled();
  expect_error(ErrorKind::invalid_argument, {"'x'", "Float32 2 x 3", "got nothing"}, [&] { m.predict({}); });
  expect_error(ErrorKind::invalid_argument, {"'x'", "got nothing"}, [&] { m.predict({{"x", FeatureValue{}}}); });
}

TEST(Features, ExtraNamesTheInputs) {
  Model m = doubled();
  MultiArray x(DataType::float32, {2, 3});
  expect_error(ErrorKind::invalid_argument, {"'z'", "not an input", "'x'"}, [&] { m.predict({{"x", x}, {"z", x}}); });
}

TEST(Features, WrongShape) {
  Model m = doubled();
  for (const std::vector<int64_t>& shape :
       {std::vector<int64_t>{3, 2}, {6}, {2, 3, 1}, {}, {2, 0}, {1 << 20, 1 << 10}}) {
    // The elements are never read, because the shape is refused first.
    float one = 0;
    MultiArray x(&one, DataType::float32, shape);
    expect_error(ErrorKind::invalid_argument, {"'x'", "expected", "2 x 3"}, [&] { m.predict({{"x", x}}); });
  }
}

TEST(Features, WrongKind) {
  Model m = doubled();
  for (const FeatureValue& v :
       {FeatureValue(std::string("text")), FeatureValue(Image(2, 3, PixelFormat::rgba8)), FeatureValue(Dictionary{}),
        FeatureValue(StringSequence{"a"}), FeatureValue(Int64Sequence{1}), FeatureValue(1.5)})
    expect_error(ErrorKind::invalid_argument, {"'x'", "expected"}, [&] { m.predict({{"x", v}}); });
}

TEST(Features, ImpossibleArrays) {
  expect_error(ErrorKind::invalid_argument, {"-1"}, [] { MultiArray(DataType::float32, {2, -1}); });
  expect_error(ErrorKind::invalid_argument, {},
               [] { MultiArray(DataType::float32, {std::numeric_limits<int64_t>::min()}); });
  expect_error(ErrorKind::invalid_argument, {}, [] {
    MultiArray(DataType::float32, {int64_t{1} << 40, int64_t{1} << 40});
  });
  expect_error(ErrorKind::invalid_argument, {"dimensions"},
               [] { MultiArray(DataType::float32, std::vector<int64_t>(50, 1)); });
  expect_error(ErrorKind::invalid_argument, {"strides"}, [] {
    float x[4];
    MultiArray(x, DataType::float32, {2, 2}, {1});
  });
  expect_error(ErrorKind::invalid_argument, {"aligned"}, [] {
    alignas(8) char x[16];
    MultiArray(x + 1, DataType::float32, {2});
  });
  MultiArray a(DataType::int32, {3});
  expect_error(ErrorKind::invalid_argument, {"3"}, [&] { (void)a.at(3); });
  expect_error(ErrorKind::invalid_argument, {}, [&] { (void)a.at(-1); });
  expect_error(ErrorKind::invalid_argument, {"4", "3"}, [] { MultiArray::of(std::vector<float>(3), {2, 2}); });
  expect_error(ErrorKind::invalid_argument, {"65536"}, [] { Image(0, 4, PixelFormat::rgba8); });
}

TEST(Features, NotANumberPassesThrough) {
  MultiArray x(DataType::float32, {2, 3});
  x.as<float>()[4] = std::numeric_limits<float>::quiet_NaN();
  Features out = doubled().predict({{"x", x}});
  EXPECT_TRUE(std::isnan(out.array("y").at(4)));
  EXPECT_EQ(out.array("y").at(0), 0);
}

TEST(Features, WrongOutputsAskedFor) {
  Features out{{"y", 1.0}};
  expect_error(ErrorKind::invalid_argument, {"'y'", "MultiArray", "Double"}, [&] { (void)out.array("y"); });
  expect_error(ErrorKind::not_found, {"'z'", "'y'"}, [&] { (void)out.at("z"); });
}

/// Element types of the caller are converted to those of the model.
TEST(Features, EveryElementType) {
  Model m = doubled();
  for (DataType t :
       {DataType::float16, DataType::float32, DataType::float64, DataType::int8, DataType::int16, DataType::int32,
        DataType::int64, DataType::uint8, DataType::uint16, DataType::uint32, DataType::uint64}) {
    MultiArray x = MultiArray::of(std::vector<float>{1, 2, 3, 4, 5, 6}, {2, 3}).converted(t);
    EXPECT_EQ(values(m.predict({{"x", x}}).array("y")), (std::vector<double>{2, 4, 6, 8, 10, 12})) << to_string(t);
  }
}

TEST(Features, Strides) {
  Model m = doubled();
  float columns[6] = {1, 4, 2, 5, 3, 6}, padded[8] = {1, 2, 3, 99, 4, 5, 6, 99}, backwards[6] = {6, 5, 4, 3, 2, 1},
        row[3] = {1, 2, 3};
  const std::vector<double> expected{2, 4, 6, 8, 10, 12};
  EXPECT_EQ(values(m.predict({{"x", MultiArray(columns, DataType::float32, {2, 3}, {1, 2})}}).array("y")), expected);
  EXPECT_EQ(values(m.predict({{"x", MultiArray(padded, DataType::float32, {2, 3}, {4, 1})}}).array("y")), expected);
  EXPECT_EQ(values(m.predict({{"x", MultiArray(backwards + 5, DataType::float32, {2, 3}, {-3, -1})}}).array("y")),
            expected);
  EXPECT_EQ(values(m.predict({{"x", MultiArray(row, DataType::float32, {2, 3}, {0, 1})}}).array("y")),
            (std::vector<double>{2, 4, 6, 2, 4, 6}));
  EXPECT_EQ(values(MultiArray(columns, DataType::float32, {2, 3}, {1, 2}).converted(DataType::int32)),
            (std::vector<double>{1, 2, 3, 4, 5, 6}));
}

TEST(Features, OutputBackings) {
  Model m = doubled();
  MultiArray x = MultiArray::of(std::vector<float>{1, 2, 3, 4, 5, 6}, {2, 3});
  float room[8] = {9, 9, 9, 9, 9, 9, 9, 9};
  Features out{{"y", MultiArray(room, DataType::float32, {2, 3}, {4, 1})}};
  m.predict({{"x", x}}, out);
  EXPECT_EQ((std::vector<float>(room, room + 8)), (std::vector<float>{2, 4, 6, 9, 8, 10, 12, 9}));
  Features small{{"y", MultiArray(DataType::float32, {3, 2})}};
  expect_error(ErrorKind::invalid_argument, {"'y'", "2 x 3", "3 x 2"}, [&] { m.predict({{"x", x}}, small); });
  Features half{{"y", MultiArray(DataType::float16, {2, 3})}};
  expect_error(ErrorKind::invalid_argument, {"'y'", "Float32", "Float16"}, [&] { m.predict({{"x", x}}, half); });
  Features text{{"y", std::string()}};
  expect_error(ErrorKind::invalid_argument, {"'y'", "MultiArray", "String"}, [&] { m.predict({{"x", x}}, text); });
  Features none{{"y", FeatureValue{}}};
  m.predict({{"x", x}}, none);
  EXPECT_EQ(none.array("y").at(5), 12);
  // The input and the output share memory.
  Features same{{"y", x}};
  m.predict({{"x", x}}, same);
  EXPECT_EQ(x.at(5), 12);
}

TEST(Features, BatchNamesTheItem) {
  Model m = doubled();
  MultiArray x(DataType::float32, {2, 3});
  std::vector<Features> batch{{{"x", x}}, {{"x", x}}, {}};
  expect_error(ErrorKind::invalid_argument, {"batch item 2", "'x'"}, [&] { m.predict_batch(batch); });
  batch.pop_back();
  EXPECT_EQ(m.predict_batch(batch).size(), 2u);
  EXPECT_TRUE(m.predict_batch({}).empty());
}

TEST(Features, Async) {
  std::future<Features> answer, failure;
  {
    Model m = doubled();
    answer = m.predict_async({{"x", MultiArray::of(std::vector<float>{1, 2, 3, 4, 5, 6}, {2, 3})}});
    failure = m.predict_async({});
  }
  EXPECT_EQ(answer.get().array("y").at(2), 6);
  expect_error(ErrorKind::invalid_argument, {"'x'"}, [&] { failure.get(); });
}

TEST(Load, SaysWhatIsWrongWithThePath) {
  fs::path folder = fs::temp_directory_path() / "moka_api_load";
  fs::remove_all(folder);
  fs::create_directories(folder / "empty.mlpackage");
  fs::create_directories(folder / "empty.mlmodelc");
  fs::create_directories(folder / "escape.mlpackage");
  std::ofstream(folder / "empty.mlmodel");
  std::ofstream(folder / "text.mlmodel") << "this is no model";
  std::ofstream(folder / "broken.mlpackage") << "a file";
  std::ofstream(folder / "escape.mlpackage/Manifest.json")
      << R"({"fileFormatVersion":"1.0.0","rootModelIdentifier":"A","itemInfoEntries":{"A":{"path":"../../text.mlmodel","name":"m","author":"a","description":""}}})";
  for (const char* name : {"absent.mlmodel", "empty.mlpackage", "empty.mlmodelc", "empty.mlmodel", "text.mlmodel",
                           "broken.mlpackage", "escape.mlpackage"}) {
    try {
      Model::load((folder / name).string());
      ADD_FAILURE() << name << " loaded";
    } catch (const Exception& e) {
      EXPECT_NE(e.kind(), ErrorKind::internal) << e.what();
      EXPECT_GT(std::string(e.what()).size(), 10u) << name;
    }
  }
  expect_error(ErrorKind::not_found, {"absent.mlmodel"}, [&] { Model::load((folder / "absent.mlmodel").string()); });
  // A part that a link leads to outside the package is refused.
  auto models = models_folder();
  if (models) {
    fs::path copy = folder / "linked.mlpackage";
    fs::copy(*models / "rnn_forecast/MyModel.mlpackage", copy, fs::copy_options::recursive);
    fs::path weights = copy / "Data/com.apple.CoreML/weights/weight.bin";
    fs::copy(weights, folder / "weight.bin");
    fs::remove(weights);
    fs::create_symlink(folder / "weight.bin", weights);
    EXPECT_THROW(Model::load(copy.string()), Exception);
    fs::remove(weights);
    fs::copy(folder / "weight.bin", weights);
    EXPECT_NO_THROW(Model::load(copy.string()));
  }
  fs::remove_all(folder);
}

TEST(Load, UnknownFunctionAndDevice) {
  ModelConfiguration c;
  c.function_name = "other";
  std::string text = program("tensor<fp32, [1]> x", "tensor<fp32, [1]> y = relu(x = x)[name = string(\"r\")];", "y");
  expect_error(ErrorKind::not_found, {"'main'", "'other'"}, [&] { Model::from_mil(text, c); });
  c = {};
  c.device = "toaster";
  try {
    Model::from_mil(text, c);
    ADD_FAILURE();
  } catch (const Exception& e) {
    EXPECT_NE(std::string(e.what()).find("toaster"), std::string::npos) << e.what();
  }
  c = {};
  c.memory_budget = 16;
  std::string big = program("tensor<fp32, [100]> x",
                            "tensor<fp32, [100]> z = exp(x = x)[name = string(\"e\")]; tensor<fp32, [100]> y = relu(x "
                            "= z)[name = string(\"r\")];",
                            "y");
  expect_error(ErrorKind::out_of_budget, {"16"}, [&] {
    Model::from_mil(big, c).predict({{"x", MultiArray(DataType::float32, {100})}});
  });
}

TEST(Load, LoopLimit) {
  ModelConfiguration c;
  c.loop_limit = 100;
  std::string body = R"(bool yes = const()[name = string("yes"), val = bool(true)];
    tensor<fp32, [1]> y = while_loop(loop_vars = (x))[name = string("forever")] {
      block condition(tensor<fp32, [1]> a) { bool on = identity(x = yes)[name = string("on")]; } -> (on);
      block body(tensor<fp32, [1]> b) { tensor<fp32, [1]> d = add(x = b, y = b)[name = string("d")]; } -> (d);
    };)";
  expect_error(ErrorKind::data, {"forever", "100"}, [&] {
    Model::from_mil(program("tensor<fp32, [1]> x", body, "y"), c).predict({{"x", MultiArray(DataType::float32, {1})}});
  });
}

}  // namespace
}  // namespace moka::test
