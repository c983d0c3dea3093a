// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <random>

#include "hostile/guard_util.h"
#include "hostile/mutate_util.h"
#include "moka/model.h"

namespace moka::test {
namespace {

using Json = nlohmann::json;
using Random = std::mt19937_64;

std::vector<std::string> operations() {
  std::vector<std::string> out;
  for (const auto& e : std::filesystem::directory_iterator(MOKA_CASES))
    if (e.path().extension() == ".json") out.push_back(e.path().stem().string());
  std::sort(out.begin(), out.end());
  return out;
}

/// The numbers of the case, some replaced by extreme values of their kind.
MultiArray numbers(const FeatureDescription& f, const std::vector<double>& given, bool worst, Random& r) {
  MultiArray a(DataType::float64, f.array.shape);
  bool real =
      f.array.type == DataType::float16 || f.array.type == DataType::float32 || f.array.type == DataType::float64;
  auto out = a.as<double>();
  for (size_t i = 0; i < out.size(); i++)
    out[i] = given.empty() ? static_cast<double>(r() % 5) : given[i % given.size()];
  if (worst && !out.empty()) {
    constexpr double kWorst[] = {-1, 1e9, -2147483648.0, 2147483647.0, 0, 1, -2, 65536};
    for (size_t n = 1 + r() % 3; n-- > 0;) {
      double& x = out[r() % out.size()];
      x = kWorst[r() % std::size(kWorst)];
      if (real && r() % 3 == 0)
        x = r() & 1 ? std::numeric_limits<double>::quiet_NaN() : -std::numeric_limits<double>::infinity();
    }
  }
  if (!real) {
    MultiArray whole(DataType::int64, f.array.shape);
    for (size_t i = 0; i < out.size(); i++) whole.as<int64_t>()[i] = static_cast<int64_t>(out[i]);
    return whole;
  }
  return a;
}

/// Loads a changed program. If a change makes declared types wrong, inserts the types from the error message.
Model load(std::string text, const ModelConfiguration& c) {
  for (int attempt = 0;; attempt++) {
    try {
      return Model::from_mil(text, c);
    } catch (const Exception& e) {
      const std::string what = e.what(), place = "MIL text ", before = "declared ", after = ", but its inputs give ";
      const size_t given = what.rfind(after), declared = what.rfind(before, given);
      if (attempt == 5 || !what.starts_with(place) || given == std::string::npos || declared == std::string::npos)
        throw;
      const std::string type = what.substr(declared + before.size(), given - declared - before.size());
      size_t at = 0;
      for (long line = std::stol(what.substr(place.size())); line > 1 && at != std::string::npos; line--)
        at = text.find('\n', at) + 1;
      const size_t from = text.find(type, at);
      if (from == std::string::npos) throw;
      text.replace(from, type.size(), what.substr(given + after.size()));
    }
  }
}

class HostileOperations : public testing::TestWithParam<std::string> {};

/// Programs of every operation with changed texts and extreme inputs, on every device.
TEST_P(HostileOperations, AnswerOrRefuse) {
  const std::string& op = GetParam();
  std::ifstream in(std::string(MOKA_CASES) + "/" + op + ".json");
  const Json cases = Json::parse(in).at("cases");
  ASSERT_FALSE(cases.empty());
  auto pick = [&](int i) -> const Json& { return cases[static_cast<size_t>(i) % cases.size()]; };
  // Every fifth case keeps the program and changes only the inputs.
  auto text = [&](int i) {
    std::string program = pick(i).at("program");
    return i % 5 == 0 ? program : mutate(program, Layout::program, seed_of(op, static_cast<uint64_t>(i)));
  };
  guarded(
      op, case_count(60),
      [&](int i) {
        Random r(seed_of(op, static_cast<uint64_t>(i)));
        ModelConfiguration c;
        c.memory_budget = kBudget;
        c.loop_limit = kLoopLimit;
        c.threads = 1;
        c.optimize = r() & 1;
        c.precision = r() & 1 ? Precision::exact : Precision::at_least;
        if (i % 3 == 2) c.device = "reference";
        Model m = load(text(i), c);
        count_loaded();
        Features features;
        for (const auto& f : m.function().inputs) {
          if (f.type != FeatureType::multi_array) continue;
          std::vector<double> given;
          for (const auto& [name, value] : pick(i).at("inputs").items())
            if (name == f.name)
              for (const auto& x : value.at("data"))
                given.push_back(x.is_number()    ? x.get<double>()
                                : x.is_boolean() ? static_cast<double>(x.get<bool>())
                                                 : 0.0);
          double n = 1;
          for (int64_t d : f.array.shape) n *= static_cast<double>(d);
          if (n > 1e6) return;
          features[f.name] = numbers(f, given, i % 5 == 0 || r() % 3 == 0, r);
        }
        PredictionOptions options;
        std::optional<State> state;
        if (!m.function().states.empty()) {
          state = m.new_state();
          options.state = &*state;
        }
        (void)m.predict(features, options);
        count_predicted();
      },
      [&](int i) { return keep_bytes(op + "." + std::to_string(i) + ".mil", text(i)); });
}

INSTANTIATE_TEST_SUITE_P(All, HostileOperations, testing::ValuesIn(operations()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace moka::test
