// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <optional>
#include <random>

#include "api/api_util.h"

/// Compares predict_rows with predict for each row.
namespace moka::test {
namespace {

namespace fs = std::filesystem;

/// Row `r` of the output column, as predict gives it.
void expect_row(const Model& m, const std::string& name, const FeatureValue& column, size_t r,
                const FeatureValue& row) {
  const std::string where = name + ", row " + std::to_string(r);
  // Sums may be fused and grouped differently from those of a single row.
  const auto near = [&](double a, double b) {
    if (std::isnan(b)) {
      EXPECT_TRUE(std::isnan(a)) << where;
      return;
    }
    if (std::isinf(b)) {
      EXPECT_EQ(a, b) << where;
      return;
    }
    EXPECT_NEAR(a, b, 1e-11 * std::max(1.0, std::abs(b))) << where;
  };
  if (const auto* text = std::get_if<std::string>(&row)) {
    EXPECT_EQ(std::get<StringSequence>(column)[r], *text) << where;
    return;
  }
  const auto& all = std::get<MultiArray>(column);
  if (const auto* v = std::get_if<int64_t>(&row)) {
    EXPECT_EQ(all.as<int64_t>()[r], *v) << where;
  } else if (const auto* d = std::get_if<double>(&row)) {
    near(all.as<double>()[r], *d);
  } else if (const auto* a = std::get_if<MultiArray>(&row)) {
    ASSERT_EQ(all.type(), a->type());
    ASSERT_EQ(std::vector<int64_t>(all.shape().begin() + 1, all.shape().end()), a->shape()) << where;
    for (int64_t i = 0; i < a->count(); i++) near(all.at(static_cast<int64_t>(r) * a->count() + i), a->at(i));
  } else {
    const auto& scores = std::get<Dictionary>(row);
    std::vector<std::string> labels = m.description().class_labels;
    if (labels.empty()) {  // a sparse one-hot vector
      ASSERT_EQ(scores.ints.size(), 1u);
      const auto& [at, one] = *scores.ints.begin();
      return near(all.at(static_cast<int64_t>(r) * all.shape()[1] + at), one);
    }
    ASSERT_EQ(all.shape(), (std::vector<int64_t>{all.shape()[0], static_cast<int64_t>(labels.size())})) << where;
    for (size_t i = 0; i < labels.size(); i++)
      near(all.at(static_cast<int64_t>(r * labels.size() + i)),
           scores.string_keys ? scores.strings.at(labels[i]) : scores.ints.at(std::stoll(labels[i])));
  }
}

/// The rows as one table; nullopt when an input cannot be a column, like dictionaries.
std::optional<Features> table_of(const Model& m, const std::vector<Features>& rows) {
  Features out;
  const auto n = static_cast<int64_t>(rows.size());
  for (const FeatureDescription& f : m.function().inputs) {
    if (rows[0].find(f.name) == nullptr) continue;
    const FeatureValue& first = rows[0].at(f.name);
    if (std::holds_alternative<std::string>(first)) {
      StringSequence texts;
      for (const Features& row : rows) texts.push_back(std::get<std::string>(row.at(f.name)));
      out[f.name] = std::move(texts);
    } else if (std::holds_alternative<int64_t>(first)) {
      MultiArray a(DataType::int64, {n});
      for (size_t r = 0; r < rows.size(); r++) a.as<int64_t>()[r] = std::get<int64_t>(rows[r].at(f.name));
      out[f.name] = a;
    } else if (std::holds_alternative<double>(first)) {
      MultiArray a(DataType::float64, {n});
      for (size_t r = 0; r < rows.size(); r++) a.as<double>()[r] = std::get<double>(rows[r].at(f.name));
      out[f.name] = a;
    } else if (const auto* array = std::get_if<MultiArray>(&first)) {
      std::vector<int64_t> shape{n};
      shape.insert(shape.end(), array->shape().begin(), array->shape().end());
      MultiArray a(DataType::float64, shape);
      for (size_t r = 0; r < rows.size(); r++)
        for (int64_t i = 0; i < array->count(); i++)
          a.as<double>()[r * static_cast<size_t>(array->count()) + static_cast<size_t>(i)] =
              std::get<MultiArray>(rows[r].at(f.name)).at(i);
      out[f.name] = a.converted(array->type());
    } else {
      return std::nullopt;
    }
  }
  return out;
}

/// Random rows with values of different magnitudes and some NaN. Linear models also get huge and infinite values.
std::vector<Features> random_rows(const Model& m, size_t count) {
  std::vector<Features> rows;
  std::mt19937 random(7);
  std::normal_distribution<double> spread(0, 2);
  const std::string type = m.description().type;
  const bool linear = type.find("glm") != std::string::npos, trees = type.find("tree") != std::string::npos;
  const double odd[] = {std::nan(""), INFINITY, -INFINITY, 1e4, -1e4, 1e300};
  for (size_t r = 0; r < count; r++) {
    Features row = m.random_inputs(r + 1);
    for (auto& [name, value] : row) {
      const bool missing = (trees || linear) && random() % 8 == 0;
      const double instead = odd[linear ? random() % std::size(odd) : 0];
      if (auto* d = std::get_if<double>(&value)) *d = missing ? instead : spread(random);
      if (auto* a = std::get_if<MultiArray>(&value); a != nullptr && a->type() == DataType::float64)
        for (double& v : a->as<double>()) v = missing ? instead : spread(random);
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

class Rows : public testing::TestWithParam<fs::path> {};

TEST_P(Rows, EqualPredictionsOfEachRow) {
  const Model m = Model::load(GetParam().string());
  // Not a multiple of a tile, and less than a tile.
  for (size_t count : {size_t{300}, size_t{3}}) {
    const std::vector<Features> rows = random_rows(m, count);
    const auto table = table_of(m, rows);
    if (!table) GTEST_SKIP() << "an input that has no column";
    Features got;
    try {
      got = m.predict_rows(*table);
    } catch (const Exception& e) {
      EXPECT_EQ(e.kind(), ErrorKind::unsupported) << e.what();
      EXPECT_NE(std::string(e.what()).find(" a table "), std::string::npos) << e.what();
      return;
    }
    ASSERT_EQ(got.size(), m.function().outputs.size());
    for (size_t r = 0; r < count; r++) {
      const Features row = m.predict(rows[r]), again = m.predict(rows[r]);
      for (const auto& [name, value] : row) {
        const auto* number = std::get_if<double>(&value);
        const bool is_drawn = number != nullptr && !std::isnan(*number) && *number != std::get<double>(again.at(name));
        if (!is_drawn) expect_row(m, name, got.at(name), r, value);
      }
      if (HasFailure()) return;
    }
  }
}

std::vector<fs::path> classic_models() {
  std::vector<fs::path> out;
  for (const auto& e : fs::directory_iterator(fs::path(MOKA_GOLDEN) / "classic"))
    if (e.path().extension() == ".mlmodel") out.push_back(e.path());
  std::sort(out.begin(), out.end());
  return out;
}

INSTANTIATE_TEST_SUITE_P(Classic, Rows, testing::ValuesIn(classic_models()),
                         [](const auto& info) { return info.param.stem().string(); });

Model golden(const char* name) { return Model::load((fs::path(MOKA_GOLDEN) / "classic" / name).string()); }

TEST(Table, ColumnsOfViewsAndOtherTypes) {
  const Model m = golden("linear_regression.mlmodel");
  const FeatureDescription& f = m.function().inputs[0];
  ASSERT_EQ(m.function().inputs.size(), 1u);
  const int64_t n = f.array.shape.empty() ? 1 : f.array.shape[0];
  MultiArray wide(DataType::float32, {200, 2 * n});
  for (int64_t i = 0; i < wide.count(); i++) wide.as<float>()[static_cast<size_t>(i)] = static_cast<float>(i % 13) - 6;
  const MultiArray view(wide.data(), DataType::float32, {200, n}, {2 * n, 1});
  const Features a = m.predict_rows({{f.name, view}}),
                 b = m.predict_rows({{f.name, view.converted(DataType::float64)}});
  const std::string& y = m.function().outputs[0].name;
  EXPECT_EQ(values(a.array(y)), values(b.array(y)));
}

TEST(Table, MistakesNameTheColumnOrTheRow) {
  const Model trees = golden("decision_tree_regressor.mlmodel");
  const std::string x = trees.function().inputs[0].name;
  expect_error(ErrorKind::invalid_argument, {"'wrong'", "not an input"}, [&] {
    trees.predict_rows({{"wrong", MultiArray(DataType::float64, {2})}});
  });
  expect_error(ErrorKind::invalid_argument, {"at least one row"}, [&] { trees.predict_rows({}); });
  expect_error(ErrorKind::invalid_argument, {x.c_str(), "axis of rows"}, [&] { trees.predict_rows({{x, 1.0}}); });

  const Model one_hot = golden("one_hot_int.mlmodel");
  const std::string in = one_hot.function().inputs[0].name;
  MultiArray categories(DataType::int64, {200});
  for (int64_t& c : categories.as<int64_t>()) c = 9;
  EXPECT_EQ(one_hot.predict_rows({{in, categories}}).size(), 1u);
  categories.as<int64_t>()[150] = 12345;
  expect_error(ErrorKind::data, {"row 150", "12345"}, [&] { one_hot.predict_rows({{in, categories}}); });
}

TEST(Table, WholeNumbersKeepAllDigits) {
  const Model m = golden("imputer_int.mlmodel");
  const std::string &x = m.function().inputs[0].name, &y = m.function().outputs[0].name;
  const std::vector<int64_t> numbers{5, (int64_t{1} << 53) + 1, std::numeric_limits<int64_t>::max()};
  MultiArray column(DataType::int64, {3});
  std::copy(numbers.begin(), numbers.end(), column.as<int64_t>().begin());
  for (const Features& columns : {Features{{x, column}}, Features{{x, Int64Sequence(numbers)}}}) {
    const Features out = m.predict_rows(columns);
    const auto got = out.array(y).as<int64_t>();
    EXPECT_EQ(std::vector<int64_t>(got.begin(), got.end()), numbers);
  }
  MultiArray doubles(DataType::float64, {3});
  doubles.as<double>()[1] = 2.5;
  expect_error(ErrorKind::invalid_argument, {"row 1", "'x'", "whole number", "2.5"}, [&] {
    m.predict_rows({{x, doubles}});
  });
}

TEST(Table, ColumnsMustHaveTheDescribedShapeAndData) {
  const Model m = golden("linear_regression.mlmodel");
  const FeatureDescription& f = m.function().inputs[0];
  const int64_t n = f.array.shape.at(0);
  expect_error(ErrorKind::invalid_argument, {f.name.c_str(), "in each row"}, [&] {
    m.predict_rows({{f.name, MultiArray(DataType::float64, {2, n, 1})}});
  });
  expect_error(ErrorKind::invalid_argument, {f.name.c_str(), "without data"}, [&] {
    m.predict_rows({{f.name, MultiArray(nullptr, DataType::float64, {2, n})}});
  });
}

TEST(Table, AFailureNamesItsRowOfManyBlocks) {
  const Model m = Model::from_mil(program("tensor<int32, []> i",
                                          "tensor<fp32, [3]> t = const()[name = string(\"t\"), val = tensor<fp32, "
                                          "[3]>([1, 2, 3])];\n"
                                          "tensor<fp32, []> y = gather(x = t, indices = i, axis = int32(0), "
                                          "validate_indices = bool(true))[name = string(\"y\")];",
                                          "y"));
  MultiArray rows(DataType::int32, {300});
  rows.as<int32_t>()[290] = 77;
  expect_error(ErrorKind::data, {"row 290", "77"}, [&] { m.predict_rows({{"i", rows}}); });
}

TEST(Table, OtherModelsPredictRowByRow) {
  const Model m = Model::from_mil(
      program("tensor<fp32, [2]> x", "tensor<fp32, [2]> y = mul(x = x, y = x)[name = string(\"y\")];", "y"));
  MultiArray x(DataType::float32, {3, 2});
  for (size_t i = 0; i < 6; i++) x.as<float>()[i] = static_cast<float>(i);
  const Features out = m.predict_rows({{"x", x}});
  EXPECT_EQ(out.array("y").shape(), (std::vector<int64_t>{3, 2}));
  EXPECT_EQ(values(out.array("y")), (std::vector<double>{0, 1, 4, 9, 16, 25}));
}

}  // namespace
/// The tree computes tiles of rows, the program predicts row by row.
TEST(RowsOptions, ChooseOutputsAndStop) {
  const Model tree = Model::load(MOKA_GOLDEN "/classic/decision_tree_classifier.mlmodel");
  const Model network = Model::from_mil(program("tensor<fp32, [4]> input", R"(
    tensor<fp32, [4]> y = exp(x = input)[name = string("y")];
    tensor<fp32, [4]> z = abs(x = input)[name = string("z")];)",
                                                "y, z"));
  for (const Model* m : {&tree, &network}) {
    const MultiArray input = counted({500, 4});
    const std::string wanted = m->function().outputs[1].name;
    PredictionOptions options;
    options.outputs = {wanted};
    const Features some = m->predict_rows({{"input", input}}, options), all = m->predict_rows({{"input", input}});
    ASSERT_EQ(some.size(), 1u);
    EXPECT_EQ(all.size(), m->function().outputs.size());
    EXPECT_EQ(values(some.array(wanted)), values(all.array(wanted)));
    options.outputs = {"nothing"};
    expect_error(ErrorKind::invalid_argument, {"'nothing'"}, [&] { m->predict_rows({{"input", input}}, options); });

    PredictionOptions stopped;
    std::stop_source source;
    stopped.stop = source.get_token();
    EXPECT_EQ(m->predict_rows({{"input", input}}, stopped).size(), all.size());
    source.request_stop();
    expect_error(ErrorKind::cancelled, {}, [&] { m->predict_rows({{"input", input}}, stopped); });
    PredictionOptions late;
    late.deadline = std::chrono::steady_clock::now() - std::chrono::seconds(1);
    expect_error(ErrorKind::deadline_exceeded, {}, [&] { m->predict_rows({{"input", input}}, late); });
  }
  // A stop while rows are predicted ends the table, and no row is blamed.
  const MultiArray many = counted({200'000, 4});
  PredictionOptions soon;
  soon.deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(20);
  expect_error(ErrorKind::deadline_exceeded, {}, [&] { network.predict_rows({{"input", many}}, soon); });
}

TEST(RowsOptions, RowsShareAState) {
  const Model m = Model::from_mil(program("state<tensor<fp32, [1]>> s, tensor<fp32, [1]> x", R"(
    tensor<fp32, [1]> old = read_state(input = s)[name = string("old")];
    tensor<fp32, [1]> y = add(x = old, y = x)[name = string("y")];
    write_state(data = y, input = s)[name = string("write")];)",
                                          "y"));
  State state = m.new_state();
  const std::vector<float> x{1, 2, 3, 4};
  const Features out = m.predict_rows({{"x", MultiArray::of(x, {4, 1})}}, PredictionOptions{&state});
  EXPECT_EQ(values(out.array("y")), (std::vector<double>{1, 3, 6, 10}));
  EXPECT_EQ(state.read("s").at(0), 10);
}

}  // namespace moka::test
