// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "format/source.h"
#include "import/description.h"
#include "import/outline.h"
#include "ir/program.h"
#include "linting/bounds.h"

/// Rules about models, one per file src/linting/rule_*.cpp.
namespace moka::linting {

/// What float16 can hold.
inline constexpr double kHalfMax = 65504, kHalfNormal = 0x1p-14;

enum class Level : uint8_t { note, warning, error };

struct Finding {
  std::string_view rule;
  Level level = Level::warning;
  std::string function;  ///< of an ML program with several; empty: the model
  std::string place;     ///< "operation 'exp_1' (exp)", "input 'x'"
  std::string reason, evidence, remedy;
};

/// Statistics of a value over the predictions that were run.
struct Measured {
  double least = 0, greatest = 0;  ///< of the finite elements
  uint64_t count = 0;
  uint64_t nonzero = 0, vanishing = 0;  ///< those that float16 makes zero
  uint64_t nan = 0, infinite = 0;

  double magnitude() const;
  void add(double value);
};
using Measurements = std::map<std::string, Measured, std::less<>>;  ///< by the value's name

/// Why a unit would not run an operation. Remedy and source may be empty.
struct Refusal {
  std::string reason, remedy, source;
};

/// A function of the program and what is known of it.
struct FunctionView {
  const ir::Function* function = nullptr;
  const import::FunctionDescription* description = nullptr;
  std::shared_ptr<const Bounds> bounds;
  Measurements wide;  ///< computed in float32
  Measurements half;  ///< every value rounded to its type; empty where no type is float16
  /// Why the preview of the Neural Engine refuses operations, by name.
  std::map<std::string, Refusal, std::less<>> refusals;
};

/// Sizes of the inputs with which a prediction fails.
struct FailedSizes {
  std::string function, sizes, error;
};

/// A model that is looked at.
struct Subject {
  import::ModelDescription description;
  std::string model_name;                          ///< of the file, without folders and extension
  const format::ModelSource* source = nullptr;     ///< nullptr: a compiled or an encrypted model
  std::shared_ptr<const import::Outline> outline;  ///< what the file has, used or not
  std::shared_ptr<const ir::Program> program;      ///< nullptr: the model cannot be imported
  std::string load_error;                          ///< why the model cannot be loaded
  std::vector<FunctionView> functions;
  std::vector<FailedSizes> failed_sizes;
  std::string target;                   ///< the system that must run the model: "ios16"; empty: that of its version
  std::set<std::string> ranged;         ///< inputs whose numbers the user declared
  bool is_measured_with_given = false;  ///< inputs or ranges of the user, not only random ones
  bool as_float16 = false;              ///< judge float32 values as if they were float16

  /// Whether units choose the precision of its numbers: a network, or a pipeline with one.
  bool is_network() const;
  /// Whether some unit computes the value in float16.
  bool in_half(const ir::Value& value) const;
};

class Report {
 public:
  Report(std::string_view rule, std::vector<Finding>& findings) : rule_(rule), findings_(findings) {}
  struct Text {
    std::string reason, evidence, remedy;
  };
  void add(Level level, std::string place, Text text, const FunctionView* view = nullptr);

 private:
  std::string_view rule_;
  std::vector<Finding>& findings_;
};

struct Rule {
  std::string_view name;     ///< "float16-overflow"
  Level level;               ///< the highest that it reports
  std::string_view summary;  ///< what it finds
  std::string_view remedy;   ///< what helps
  void (*check)(const Subject& subject, Report& report);
  /// Repairs the model, whose predictions stay the same, and returns what was done. nullptr: the author must.
  Result<std::vector<std::string>> (*fix)(const Subject& subject, format::ModelSource& source) = nullptr;
  bool asks_neural_engine = false;  ///< reads FunctionView::refusals
};

/// All rules, sorted by the names of their files, which the build lists.
std::span<const Rule> rules();
/// nullptr: there is none of that name.
const Rule* find_rule(std::string_view name);

/// Fills `program`, `functions` and their bounds. `ranges`: allowed numbers of inputs by name.
void complete(Subject& subject, const std::map<std::string, std::pair<double, double>>& ranges);

/// Runs rules; the findings are sorted by level, the worst first.
std::vector<Finding> run_rules(const Subject& subject, std::span<const Rule* const> rules);

// Helpers for the texts of rules.

/// "operation 'exp_1' (exp)".
std::string place_of(const ir::Op& op);
/// "65504", "1.2e+06".
std::string number(double value);
/// "-3 to 7.5".
std::string range(double low, double high);

// Helpers for the patterns of rules.

/// Visits all operations except constants, including those in nested blocks.
void for_each_op(const ir::Block& block, const std::function<void(const ir::Op&)>& visit);
inline void for_each_op(const FunctionView& view, const std::function<void(const ir::Op&)>& visit) {
  for_each_op(view.function->body(), visit);
}
/// Whether an operation counts as needed without readers of its results: it writes a state, or has blocks.
bool keeps_order(const ir::Op& op);
/// The values on which the outputs or states depend.
std::set<const ir::Value*> needed(const ir::Block& body);
/// The value in front of operations that only move or convert it: reshape, transpose, cast to a float and the like.
const ir::Value* behind_moves(const ir::Value* value);
/// The operation that computes behind_moves(value); nullptr for an input.
const ir::Op* computed_by(const ir::Value* value);
bool is_op(const ir::Op* op, std::string_view type);
/// Whether the second transpose undoes the first.
bool undoes(const ir::Op& first, const ir::Op& second);
/// The number that all elements of behind_moves(value) equal; nullopt: they differ, or the value is not a constant.
std::optional<double> uniform_constant(const ir::Value* value);
/// Whether the type is a tensor of floats.
bool is_float_tensor(const ir::Type& type);
/// The statistics of a value; nullptr: it was not observed.
const Measured* measured(const Measurements& measurements, const ir::Value* value);

}  // namespace moka::linting
