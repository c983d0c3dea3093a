#pragma once

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "base/processors.h"
#include "import/importer.h"
#include "passes/pass.h"
#include "runtime/sessions.h"

namespace moka::runtime {

struct CompileOptions {
  std::string function_name;         ///< empty: the default one
  std::vector<std::string> outputs;  ///< those that are computed; empty: all
  bool optimize = true;
  bool exact_precision = false;
  int64_t loop_limit = 1'000'000;
  plan::PlanOptions plan;                     ///< devices, threads, budget; `constants` is set by compile
  std::shared_ptr<plan::PackedStore> packed;  ///< of all functions of the file; may be null
  std::shared_ptr<plan::PackedCache> cache;   ///< of earlier processes; may be null
  size_t idle_memory = size_t{256} << 20;     ///< bytes that sessions nobody uses may keep
};

/// One function of a model, ready to be planned for input types and run. Immutable but for its caches; thread-safe.
class Model {
 public:
  /// Runs the passes on `imported`. Errors: not_found (function), and what the passes find.
  static Result<std::unique_ptr<Model>> compile(import::ImportedModel imported, const CompileOptions& options);

  const import::ModelDescription& description() const { return imported_.description; }
  const import::FunctionDescription& function() const { return *function_; }
  const ir::Function& ir() const { return *ir_; }
  const ir::Program& program() const { return imported_.program; }
  const std::vector<passes::Remark>& remarks() const { return remarks_; }
  const plan::PlanOptions& plan_options() const { return options_.plan; }
  size_t operations_in_source() const { return operations_in_source_; }

  using Session = runtime::Session;
  /// The plan for these types of the function's inputs, made when they are new.
  Result<std::shared_ptr<const plan::Plan>> plan(const std::vector<ir::Type>& inputs) const;
  /// A session for these types of the function's inputs. A hit allocates nothing.
  Result<std::unique_ptr<Session>> acquire(const std::vector<ir::Type>& inputs) const;
  void release(std::unique_ptr<Session> session) const;

 private:
  /// Removes all outputs but `options_.outputs` and what only they need.
  Status select_outputs();
  Model(import::ImportedModel imported, const CompileOptions& options)
      : imported_(std::move(imported)),
        options_(options),
        sessions_(options.idle_memory,
                  std::max<size_t>(2 * options.plan.cached_shapes, static_cast<size_t>(processors()))) {}

  import::ImportedModel imported_;
  CompileOptions options_;
  const import::FunctionDescription* function_ = nullptr;
  ir::Function* ir_ = nullptr;
  std::vector<passes::Remark> remarks_;
  size_t operations_in_source_ = 0;
  mutable plan::PlanCache plans_;
  mutable SessionPool sessions_;
};

}  // namespace moka::runtime
