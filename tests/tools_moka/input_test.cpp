// SPDX-License-Identifier: Apache-2.0
#include "input.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "io/file.h"
#include "io/io_error.h"
#include "usage_error.h"

namespace moka::cli {
namespace {

namespace fs = std::filesystem;

FeatureDescription array_input(std::string name, DataType type, std::vector<int64_t> shape,
                               std::vector<SizeRange> ranges = {}) {
  FeatureDescription d;
  d.name = std::move(name);
  d.array = {type, std::move(shape), std::move(ranges), {}};
  return d;
}

FeatureDescription plain_input(std::string name, FeatureType type, bool optional = false) {
  FeatureDescription d;
  d.name = std::move(name);
  d.type = type;
  d.optional = optional;
  return d;
}

std::vector<double> numbers_of(const FeatureValue& value) {
  const auto& array = std::get<MultiArray>(value);
  std::vector<double> out;
  for (int64_t i = 0; i < array.count(); ++i) out.push_back(array.at(i));
  return out;
}

std::string message_of(const std::function<void()>& act) {
  try {
    act();
  } catch (const UsageError& e) {
    return e.what();
  }
  return "no UsageError";
}

class InputFiles : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::temp_directory_path() / ("moka_input_" + std::to_string(::getpid()) + "_" +
                                           testing::UnitTest::GetInstance()->current_test_info()->name());
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }
  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  std::string text_file(const std::string& name, const std::string& content) const {
    std::ofstream(path(name), std::ios::binary) << content;
    return path(name);
  }
  void write(const std::string& name, const std::vector<std::byte>& bytes) const { io::write_file(path(name), bytes); }
  static Inputs read(std::vector<FeatureDescription> inputs, std::vector<std::string> arguments,
                     InputOptions options = {}) {
    FunctionDescription function;
    function.inputs = std::move(inputs);
    options.inputs = std::move(arguments);
    return read_inputs(function, options);
  }

  fs::path folder_;
};

TEST(InputValue, NumbersTextAndLists) {
  EXPECT_EQ(std::get<double>(value_from_text(plain_input("x", FeatureType::float64), " 2.5 ", "x")), 2.5);
  EXPECT_EQ(std::get<int64_t>(value_from_text(plain_input("x", FeatureType::int64), "-3", "x")), -3);
  EXPECT_EQ(std::get<std::string>(value_from_text(plain_input("x", FeatureType::string), " a=b", "x")), " a=b");
  const auto list = value_from_text(array_input("x", DataType::float32, {2, 2}), "1, 2 3,4", "x");
  EXPECT_EQ(std::get<MultiArray>(list).shape(), (std::vector<int64_t>{2, 2}));
  EXPECT_EQ(numbers_of(list), (std::vector<double>{1, 2, 3, 4}));
}

TEST(InputValue, NestedListsGiveTheShape) {
  const auto flexible = array_input("x", DataType::float32, {1, 2}, {{1, -1}, {2, 2}});
  const auto value = value_from_text(flexible, "[[1,2],[3,4],[5,6]]", "x");
  EXPECT_EQ(std::get<MultiArray>(value).shape(), (std::vector<int64_t>{3, 2}));
  EXPECT_THROW(value_from_text(flexible, "[[1,2],[3]]", "x"), UsageError);
  EXPECT_THROW(value_from_text(flexible, "[[1,2],3]", "x"), UsageError);
  EXPECT_THROW(value_from_text(flexible, "[1,[2,3]]", "x"), UsageError);
  EXPECT_THROW(value_from_text(flexible, "[[1,\"a\"]]", "x"), UsageError);
  EXPECT_THROW(value_from_text(flexible, std::string(5000, '['), "x"), UsageError);
}

TEST(InputValue, WrongCountsAndTypesSayWhatWasExpected) {
  const auto fixed = array_input("x", DataType::int32, {1, 4});
  EXPECT_EQ(message_of([&] { value_from_text(fixed, "1,2,3", "input 'x'"); }),
            "input 'x': expected MultiArray (Int32 1 x 4), got 3 numbers");
  EXPECT_EQ(message_of([&] { value_from_text(fixed, "1,2,3,4.5", "input 'x'"); }),
            "input 'x': expected whole numbers of type int32, got '4.5'");
  EXPECT_THROW(value_from_text(fixed, "1,2,3,3000000000", "x"), UsageError);
  EXPECT_THROW(value_from_text(fixed, "1,2,,4", "x"), UsageError);
}

TEST(InputValue, DictionariesAndSequences) {
  auto dictionary = plain_input("d", FeatureType::dictionary);
  EXPECT_EQ(std::get<Dictionary>(value_from_text(dictionary, R"({"a": 2})", "d")).strings.at("a"), 2);
  EXPECT_THROW(value_from_text(dictionary, R"({"a": "b"})", "d"), UsageError);
  EXPECT_THROW(value_from_text(dictionary, "[1]", "d"), UsageError);
  dictionary.string_keys = false;
  EXPECT_EQ(std::get<Dictionary>(value_from_text(dictionary, R"({"7": 2})", "d")).ints.at(7), 2);
  EXPECT_THROW(value_from_text(dictionary, R"({"a": 2})", "d"), UsageError);
  auto sequence = plain_input("s", FeatureType::sequence);
  EXPECT_EQ(std::get<StringSequence>(value_from_text(sequence, R"(["a","b"])", "s")), (StringSequence{"a", "b"}));
  sequence.string_keys = false;
  EXPECT_EQ(std::get<Int64Sequence>(value_from_text(sequence, "[1,2]", "s")), (Int64Sequence{1, 2}));
  EXPECT_THROW(value_from_text(sequence, "[1.5]", "s"), UsageError);
}

TEST(InputShape, OneOpenDimensionTakesTheRest) {
  const MultiArrayConstraint rows{DataType::float32, {1, 3}, {{1, 8}, {3, 3}}, {}};
  EXPECT_EQ(shape_for_count(rows, 6), (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(shape_for_count(rows, 7), std::nullopt);
  EXPECT_EQ(shape_for_count(rows, 27), std::nullopt);
  const MultiArrayConstraint listed{DataType::float32, {2}, {}, {{2}, {5}}};
  EXPECT_EQ(shape_for_count(listed, 5), (std::vector<int64_t>{5}));
  EXPECT_EQ(shape_for_count(listed, 4), std::nullopt);
  EXPECT_EQ(shape_for_count({DataType::float32, {}, {}, {}}, 4), (std::vector<int64_t>{4}));
}

TEST(InputReference, Parts) {
  EXPECT_EQ(parse_reference("a/b.NPZ").extension, "npz");
  EXPECT_EQ(parse_reference("a:b/c.npz:x:y").path, "a:b/c.npz:x:y");
  EXPECT_EQ(parse_reference("c.npz:x").member, "x");
  EXPECT_EQ(parse_reference("c.npz:x").path, "c.npz");
  EXPECT_EQ(parse_reference("a:b.png").extension, "png");
}

TEST_F(InputFiles, NamesAndMistakes) {
  const std::vector<FeatureDescription> sleep{plain_input("wake", FeatureType::float64),
                                              plain_input("coffee", FeatureType::float64),
                                              plain_input("note", FeatureType::string, true)};
  const Inputs good = read(sleep, {"wake=6", "coffee=2"});
  ASSERT_EQ(good.rows.size(), 1u);
  EXPECT_EQ(good.rows[0].size(), 2u);
  EXPECT_EQ(message_of([&] { read(sleep, {"wak=6"}); }),
            "the model has no input 'wak'; did you mean 'wake'? It takes wake: Double; coffee: Double; note: String, "
            "optional");
  EXPECT_EQ(message_of([&] { read(sleep, {"wake=6"}); }),
            "no value for input 'coffee'; expected wake: Double; coffee: Double; note: String, optional");
  EXPECT_EQ(message_of([&] { read(sleep, {"wake=6", "wake=7"}); }), "input 'wake': given twice");
  EXPECT_THROW(read(sleep, {}), UsageError);
  EXPECT_THROW(read(sleep, {"6"}), UsageError);
}

TEST_F(InputFiles, NamesMayContainEqualsSigns) {
  const Inputs in =
      read({plain_input("a", FeatureType::string, true), plain_input("a=b", FeatureType::string)}, {"a=b=c"});
  EXPECT_EQ(std::get<std::string>(in.rows[0].at("a=b")), "c");
}

TEST_F(InputFiles, ArraysFromNpyAndNpz) {
  const double four[] = {1, 2, 3, 4};
  write("x.npy", encode_npy(MultiArray(const_cast<double*>(four), DataType::float64, {4})));
  const auto x = array_input("x", DataType::float32, {1, 4});
  const Inputs npy = read({x}, {"x=@" + path("x.npy")});
  EXPECT_EQ(std::get<MultiArray>(npy.rows[0].at("x")).shape(), (std::vector<int64_t>{1, 4}));
  EXPECT_EQ(std::get<MultiArray>(npy.rows[0].at("x")).type(), DataType::float32);
  write("xy.npz", encode_npz({{"y", MultiArray::of(std::vector<float>{5, 6, 7, 8}, {1, 4})},
                              {"x", MultiArray::of(std::vector<float>{1, 2, 3, 4}, {1, 4})}}));
  const Inputs npz = read({x, array_input("y", DataType::float32, {1, 4})}, {"@" + path("xy.npz")});
  EXPECT_EQ(numbers_of(npz.rows[0].at("y")), (std::vector<double>{5, 6, 7, 8}));
  const Inputs member = read({x}, {"x=@" + path("xy.npz") + ":y"});
  EXPECT_EQ(numbers_of(member.rows[0].at("x")), (std::vector<double>{5, 6, 7, 8}));
  EXPECT_THROW(read({x}, {"x=@" + path("xy.npz") + ":z"}), io::IoError);
  EXPECT_THROW(read({x}, {"x=@" + path("absent.npy")}), io::IoError);
  EXPECT_THROW(read({x}, {"x=@" + text_file("x.exe", "")}), UsageError);
}

TEST_F(InputFiles, JsonByName) {
  const std::string file = text_file("in.json", R"({"x": [[1, 2]], "s": "hi", "d": {"a": 1}})");
  const Inputs in = read({array_input("x", DataType::float32, {1, 2}), plain_input("s", FeatureType::string),
                          plain_input("d", FeatureType::dictionary)},
                         {"@" + file});
  EXPECT_EQ(numbers_of(in.rows[0].at("x")), (std::vector<double>{1, 2}));
  EXPECT_EQ(std::get<std::string>(in.rows[0].at("s")), "hi");
  EXPECT_EQ(std::get<Dictionary>(in.rows[0].at("d")).strings.at("a"), 1);
  const Inputs whole = read({plain_input("d", FeatureType::dictionary)}, {"@" + text_file("d.json", R"({"word": 3})")});
  EXPECT_EQ(std::get<Dictionary>(whole.rows[0].at("d")).strings.at("word"), 3);
}

TEST_F(InputFiles, WhatIsWrongWithJsonIsSaid) {
  const std::vector<FeatureDescription> two{plain_input("a", FeatureType::float64),
                                            plain_input("b", FeatureType::float64)};
  const auto said = [&](const std::vector<FeatureDescription>& inputs, const std::string& content) {
    return message_of([&] { read(inputs, {"@" + text_file("in.json", content)}); }).substr(path("in.json").size());
  };
  EXPECT_EQ(said(two, "{\"a\": 1,\n \"b\" 2}"),
            ": expected JSON, but line 2, column 6: unexpected number literal; expected ':'");
  EXPECT_EQ(said(two, "[1, 2"), ": expected JSON, but column 6: unexpected end of input; expected ']'");
  EXPECT_EQ(said(two, " \n"), ": expected JSON, got nothing");
  for (const size_t depth : {33, 40, 1 << 20})
    EXPECT_EQ(said(two, std::string(depth, '[') + std::string(depth, ']')), ": expected lists nested at most 32 deep");
  EXPECT_EQ(said(two, std::string(32, '[') + std::string(32, ']')).find("nested"), std::string::npos);
  EXPECT_EQ(said(two, "7"),
            ": expected an object of inputs by name, or a list of such objects, got '7'; the inputs are a: Double; b: "
            "Double");
  EXPECT_EQ(said(two, "[{\"a\": 1, \"b\": 2}, 3]"), ": step 2: expected an object of inputs by name, got '3'");
  EXPECT_EQ(said(two, "[{\"a\": 1}]"), ": step 1: no value for input 'b'; expected a: Double; b: Double");
  EXPECT_EQ(said(two, "[{\"c\": 1}]"), ": step 1: the model has no input 'c'; it takes a: Double; b: Double");
  // One array input also takes numbers in a row, which is not JSON.
  EXPECT_EQ(
      numbers_of(
          read({array_input("x", DataType::float32, {3})}, {"@" + text_file("x.json", "1, 2, 3")}).rows[0].at("x")),
      (std::vector<double>{1, 2, 3}));
  const std::string broken = text_file("broken.json", "[[1, 2], [3, 4]");
  EXPECT_EQ(message_of([&] {
              read({array_input("x", DataType::float32, {2, 2})}, {"x=@" + broken});
            }),
            "input 'x' (" + broken + "): expected JSON, but column 16: unexpected end of input; expected ']'");
}

TEST_F(InputFiles, TablesAreBatches) {
  const std::string file = text_file("in.csv", "wake,truth,x\n6,9,\"1,2\"\n7,9,\"[3,4]\"\n");
  const Inputs in = read({plain_input("wake", FeatureType::float64), array_input("x", DataType::float32, {2}),
                          plain_input("coffee", FeatureType::int64)},
                         {"@" + file, "coffee=2"});
  EXPECT_TRUE(in.batch);
  ASSERT_EQ(in.rows.size(), 2u);
  EXPECT_EQ(std::get<double>(in.rows[1].at("wake")), 7);
  EXPECT_EQ(numbers_of(in.rows[1].at("x")), (std::vector<double>{3, 4}));
  EXPECT_EQ(std::get<int64_t>(in.rows[1].at("coffee")), 2);
  ASSERT_EQ(in.notes.size(), 1u);
  EXPECT_NE(in.notes[0].find("'truth'"), std::string::npos);
  const std::string bad = text_file("bad.csv", "wake\n6\nsix\n");
  EXPECT_EQ(message_of([&] { read({plain_input("wake", FeatureType::float64)}, {"@" + bad}); }),
            bad + ": row 2: input 'wake': expected a number, got 'six'");
}

TEST_F(InputFiles, RandomFillsWhatIsNotGivenWhereverItStands) {
  const std::vector<FeatureDescription> inputs{array_input("x", DataType::float32, {2}),
                                               plain_input("y", FeatureType::float64)};
  for (const std::vector<std::string>& arguments :
       {std::vector<std::string>{"random", "x=7,8"}, std::vector<std::string>{"x=7,8", "random"}}) {
    const Inputs in = read(inputs, arguments);
    EXPECT_EQ(numbers_of(in.rows[0].at("x")), (std::vector<double>{7, 8}));
    EXPECT_EQ(std::get<double>(in.rows[0].at("y")), 1);
  }
  const std::string file = text_file("in.csv", "y\n3\n4\n");
  const Inputs in = read(inputs, {"random", "@" + file});
  ASSERT_EQ(in.rows.size(), 2u);
  EXPECT_EQ(std::get<double>(in.rows[1].at("y")), 4);
  EXPECT_EQ(numbers_of(in.rows[0].at("x")), numbers_of(in.rows[1].at("x")));
  auto threshold = plain_input("t", FeatureType::float64, true);
  threshold.default_value = 0.5;
  EXPECT_EQ(read({threshold}, {"random"}).rows[0].find("t"), nullptr);
  EXPECT_EQ(std::get<double>(read({threshold}, {"t=random"}).rows[0].at("t")), 1);
}

TEST_F(InputFiles, CellsAndTextsMeanThemselves) {
  const std::vector<FeatureDescription> inputs{plain_input("s", FeatureType::string),
                                               plain_input("x", FeatureType::float64)};
  const Inputs table = read(inputs, {"@" + text_file("t.csv", "s,x\nrandom,2\n@@at,3\n")});
  EXPECT_EQ(std::get<std::string>(table.rows[0].at("s")), "random");
  EXPECT_EQ(std::get<std::string>(table.rows[1].at("s")), "@at");
  EXPECT_NE(message_of([&] { read(inputs, {"@" + text_file("t.csv", "s,x\na,random\n")}); }).find("'random'"),
            std::string::npos);
  InputOptions options;
  for (const char* text : {"random", "@file", "@@file", ""}) {
    options.texts = {{"s", text}, {"x", "4"}};
    EXPECT_EQ(std::get<std::string>(read(inputs, {}, options).rows[0].at("s")), text);
  }
  options.texts = {{"x", "random"}};
  EXPECT_THROW(read(inputs, {"s=a"}, options), UsageError);
  EXPECT_EQ(std::get<std::string>(read(inputs, {"s=random", "x=1"}).rows[0].at("s")), "");
}

TEST_F(InputFiles, ColumnsAreGivenOnce) {
  const std::vector<FeatureDescription> inputs{plain_input("x", FeatureType::float64)};
  EXPECT_NE(message_of([&] { read(inputs, {"@" + text_file("t.csv", "x,x\n1,2\n")}); }).find("'x': given twice"),
            std::string::npos);
  EXPECT_EQ(read(inputs, {"@" + text_file("t.csv", "x,note,note\n1,a,b\n")}).rows.size(), 1u);
}

TEST_F(InputFiles, NumbersBeyondDoublesAreNamed) {
  const std::vector<FeatureDescription> inputs{plain_input("x", FeatureType::float64),
                                               plain_input("y", FeatureType::float64)};
  const std::string file = text_file("far.json", "{\"x\": 1,\n \"y\": 1e400}"),
                    lines = text_file("far.jsonl", "{\"x\": 1, \"y\": 2}\n{\"x\": -1e999, \"y\": 2}\n");
  EXPECT_EQ(message_of([&] { read(inputs, {"@" + file}); }),
            file + ": expected numbers within the range of doubles, but line 2, column 7: '1e400'");
  EXPECT_EQ(message_of([&] { read(inputs, {"@" + lines}); }),
            lines + ": line 2: expected numbers within the range of doubles, but column 7: '-1e999'");
}

TEST_F(InputFiles, ListsOfObjectsAndLinesAreSteps) {
  const std::vector<FeatureDescription> inputs{array_input("x", DataType::float32, {2}),
                                               plain_input("s", FeatureType::string)};
  write("x.npy", encode_npy(MultiArray::of(std::vector<float>{5, 6}, {2})));
  const std::string list =
      text_file("steps.json", R"([{"x": [1, 2], "s": "@a"}, {"x": "@)" + path("x.npy") + R"(", "s": "b"}])");
  const std::string lines =
      text_file("steps.jsonl", "{\"x\": [1, 2], \"s\": \"@a\"}\n\n{\"x\": \"@" + path("x.npy") + "\", \"s\": \"b\"}");
  for (const std::string& file : {list, lines}) {
    const Inputs in = read(inputs, {"@" + file});
    EXPECT_TRUE(in.batch);
    ASSERT_EQ(in.rows.size(), 2u) << file;
    EXPECT_EQ(numbers_of(in.rows[0].at("x")), (std::vector<double>{1, 2}));
    EXPECT_EQ(std::get<std::string>(in.rows[0].at("s")), "@a");
    EXPECT_EQ(numbers_of(in.rows[1].at("x")), (std::vector<double>{5, 6}));
  }
  const Inputs one = read({inputs[0]}, {"@" + text_file("one.jsonl", "[1, 2]\n[3, 4]\n")});
  ASSERT_EQ(one.rows.size(), 2u);
  EXPECT_EQ(numbers_of(one.rows[1].at("x")), (std::vector<double>{3, 4}));
  // A list of lists is one array.
  const Inputs array =
      read({array_input("x", DataType::float32, {2, 2})}, {"@" + text_file("array.json", "[[1, 2], [3, 4]]")});
  EXPECT_FALSE(array.batch);
  EXPECT_EQ(array.rows.size(), 1u);

  const std::string bad = text_file("bad.jsonl", "{\"x\": [1, 2], \"s\": \"a\"}\n{\"x\": [1, 2]}\n");
  EXPECT_EQ(message_of([&] { read(inputs, {"@" + bad}); }),
            bad + ": line 2: no value for input 's'; expected x: MultiArray (Float32 2); s: String");
  const std::string wrong = text_file("wrong.json", R"([{"x": [1, 2], "s": "a"}, {"x": [1, "b"], "s": "a"}])");
  EXPECT_NE(message_of([&] { read(inputs, {"@" + wrong}); }).find("step 2: "), std::string::npos);
  const std::string other = text_file("other.json", R"([{"x": [1, 2], "t": "a"}])");
  EXPECT_NE(message_of([&] { read(inputs, {"@" + other}); }).find("no input 't'"), std::string::npos);
  const std::string broken = text_file("broken.jsonl", "{\"x\": [1, 2]");
  EXPECT_NE(message_of([&] { read(inputs, {"@" + broken}); }).find("line 1: expected JSON"), std::string::npos);
}

TEST_F(InputFiles, ArraysBecomePictures) {
  auto input = plain_input("image", FeatureType::image);
  input.image.width = 3;
  input.image.height = 2;
  input.image.color = ColorSpace::grayscale_float16;
  uint16_t bits[] = {0x3c00, 0x3800, 0xbc00, 0x4000, 0x0000, 0x5bf8};  // 1 0.5 -1 2 0 255
  write("half.npy", encode_npy(MultiArray(bits, DataType::float16, {1, 2, 3})));
  const auto image = std::get<Image>(read({input}, {"image=@" + path("half.npy")}).rows[0].at("image"));
  EXPECT_EQ(image.format, PixelFormat::gray_float32);
  ASSERT_EQ(image.width, 3);
  ASSERT_EQ(image.height, 2);
  const auto* second = reinterpret_cast<const float*>(image.pixels.get() + image.row_bytes);
  EXPECT_EQ(reinterpret_cast<const float*>(image.pixels.get())[2], -1);
  EXPECT_EQ(second[0], 2);
  EXPECT_EQ(second[2], 255);

  input.image.color = ColorSpace::rgb;
  std::vector<uint8_t> colors(18);
  for (size_t i = 0; i < colors.size(); ++i) colors[i] = static_cast<uint8_t>(i);
  write("rows.npy", encode_npy(MultiArray(colors.data(), DataType::uint8, {2, 3, 3})));
  const auto rows = std::get<Image>(read({input}, {path("rows.npy").insert(0, "image=@")}).rows[0].at("image"));
  EXPECT_EQ(rows.pixels.get()[rows.row_bytes + 3 + 2], 9 + 3 + 2);
  std::vector<float> planes(18);
  for (size_t i = 0; i < planes.size(); ++i) planes[i] = static_cast<float>(i);
  write("planes.npy", encode_npy(MultiArray::of(planes, {1, 3, 2, 3})));
  const auto from_planes = std::get<Image>(read({input}, {"image=@" + path("planes.npy")}).rows[0].at("image"));
  EXPECT_EQ(from_planes.pixels.get()[from_planes.row_bytes + 3 + 2], 2 * 6 + 3 + 1);
  planes[4] = 0.5f;
  write("planes.npy", encode_npy(MultiArray::of(planes, {1, 3, 2, 3})));
  EXPECT_NE(message_of([&] { read({input}, {"image=@" + path("planes.npy")}); }).find("whole numbers from 0 to 255"),
            std::string::npos);
  write("flat.npy", encode_npy(MultiArray::of(std::vector<float>(6), {2, 3})));
  EXPECT_NE(message_of([&] { read({input}, {"image=@" + path("flat.npy")}); }).find("got float32 of shape 2 x 3"),
            std::string::npos);
}

TEST_F(InputFiles, ChannelsAreMixed) {
  write("s.wav", encode_wav({8000, 2, {0.5f, -0.5f, 0.25f, 0.25f, 0.75f, 0.25f}}));
  const Inputs in = read({array_input("audio", DataType::float32, {1, 3})}, {"@" + path("s.wav")});
  EXPECT_EQ(numbers_of(in.rows[0].at("audio")), (std::vector<double>{0, 0.25, 0.5}));
}

TEST_F(InputFiles, SoundIsPaddedOrCutOnDemand) {
  write("s.wav", encode_wav({8000, 1, {0.5f, 0.25f, -0.5f}}));
  const auto longer = array_input("audio", DataType::float32, {1, 5, 1});
  const std::string message = message_of([&] { read({longer}, {"audio=@" + path("s.wav")}); });
  EXPECT_NE(message.find("expected 5 samples, got 3"), std::string::npos) << message;
  InputOptions options;
  options.pad = true;
  EXPECT_EQ(numbers_of(read({longer}, {"audio=@" + path("s.wav")}, options).rows[0].at("audio")),
            (std::vector<double>{0.5, 0.25, -0.5, 0, 0}));
  const Inputs cut = read({array_input("audio", DataType::float32, {2})}, {"audio=@" + path("s.wav")}, options);
  EXPECT_EQ(numbers_of(cut.rows[0].at("audio")), (std::vector<double>{0.5, 0.25}));
  EXPECT_EQ(cut.notes.size(), 1u);
  const Inputs free =
      read({array_input("audio", DataType::float32, {1, 1}, {{1, 1}, {1, -1}})}, {"audio=@" + path("s.wav")});
  EXPECT_EQ(std::get<MultiArray>(free.rows[0].at("audio")).shape(), (std::vector<int64_t>{1, 3}));
}

TEST_F(InputFiles, PicturesBecomeTheImageTheModelWants) {
  Image picture(4, 2, PixelFormat::rgb8);
  for (int i = 0; i < 8; ++i) picture.pixels.get()[3 * i] = 255;
  write("red.png", encode_png(picture));
  auto input = plain_input("image", FeatureType::image);
  input.image.width = 2;
  input.image.height = 2;
  const Inputs rgb = read({input}, {path("red.png")});
  const auto& image = std::get<Image>(rgb.rows[0].at("image"));
  EXPECT_EQ(image.width, 2);
  EXPECT_EQ(image.format, PixelFormat::rgb8);
  EXPECT_EQ(image.pixels.get()[0], 255);
  EXPECT_EQ(image.pixels.get()[1], 0);
  input.image.color = ColorSpace::grayscale;
  const Inputs gray = read({input}, {"image=@" + path("red.png")});
  EXPECT_EQ(std::get<Image>(gray.rows[0].at("image")).pixels.get()[0], 76);  // 0.299 * 255
  EXPECT_THROW(read({input}, {"image=@" + text_file("not.png", "hello")}), io::IoError);
  EXPECT_THROW(read({input}, {"image=3"}), UsageError);
}

}  // namespace
}  // namespace moka::cli
