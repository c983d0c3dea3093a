// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "moka/build.h"

/// Finds what will go wrong in a model before it ships. Functions throw Exception.
namespace moka::lint {

enum class Level : uint8_t { note, warning, error };
MOKA_EXPORT std::string_view to_string(Level level);

struct Finding {
  std::string rule;  ///< "float16-overflow"
  Level level = Level::warning;
  std::string function;  ///< of an ML program with several functions
  std::string place;     ///< "operation 'exp_1' (exp)", "input 'x'", "weight 'w'"
  std::string reason;    ///< what goes wrong
  std::string evidence;  ///< the numbers that show it; may be empty
  std::string remedy;
};

struct Rule {
  std::string name;
  Level level = Level::warning;  ///< the highest that it reports
  std::string summary, remedy;
  bool can_fix = false;
};
/// All rules, by name.
MOKA_EXPORT std::vector<Rule> rules();

struct Options {
  std::vector<std::string> only, ignore;  ///< names of rules; empty `only`: all
  /// The system that must run the model, "ios16"; empty: that of its specification version.
  std::string target;
  /// Judges float32 values and weights of ML programs as if they were converted to float16.
  bool as_float16 = false;
  /// The numbers that array inputs may have, by name. Random inputs keep to them.
  std::map<std::string, std::pair<double, double>> ranges;
  bool predict = true;  ///< false: nothing is run, so nothing is measured and no sizes are tried
  /// Inputs of the default function to measure with; empty: random ones.
  std::vector<Features> inputs;
  uint64_t seed = 1;     ///< of random inputs
  std::string function;  ///< only this one of an ML program; empty: all
};

struct Report {
  std::vector<Finding> findings;     ///< the worst first
  std::vector<std::string> remarks;  ///< what could not be looked at, and why
  size_t predictions = 0;            ///< with which values were measured
  size_t sizes = 0;                  ///< combinations of input sizes that were tried
  MOKA_EXPORT bool has(Level at_least) const;
};

/// Looks at a model of any kind. A model that cannot be loaded is a finding. Throws not_found, io or malformed when
/// there is no model at all; invalid_argument (a rule, target or range that does not exist or fit).
MOKA_EXPORT Report check(const std::filesystem::path& path, const Options& options = {});

/// A repaired model.
struct Repair {
  ModelSource model;
  std::vector<std::pair<std::string, std::string>> done;  ///< rule and what it did: "dropped weight 'w' (4.2 MB)"
};
/// Repairs what the rules of `options` find and can repair. The result predicts the same: both are run and compared,
/// unless options.predict is false. Throws what check throws; internal when the predictions differ.
MOKA_EXPORT Repair fix(const std::filesystem::path& path, const Options& options = {});

}  // namespace moka::lint
