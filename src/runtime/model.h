#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "import/importer.h"
#include "passes/pass.h"
#include "runtime/frame.h"

namespace moka::runtime {

struct CompileOptions {
  std::string function_name;  ///< empty: the default one
  bool optimize = true;
  bool exact_precision = false;
  int64_t loop_limit = 1'000'000;
  plan::PlanOptions plan;                     ///< devices, threads, budget; `constants` is set by compile
  std::shared_ptr<plan::PackedStore> packed;  ///< of all functions of the file; may be null
  std::shared_ptr<plan::PackedCache> cache;   ///< of earlier processes; may be null
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

  /// What one prediction at a time needs of a plan.
  struct Session {
    std::shared_ptr<const plan::Plan> plan;
    ExecContext context;
    std::unique_ptr<Frame> frame;
    std::vector<std::vector<std::byte>> staging;  ///< by input: what had to be converted
    std::vector<std::vector<std::string>> string_staging;
    std::vector<ir::Dict> dict_staging;
  };
  /// The plan for these types of the function's inputs, made when they are new.
  Result<std::shared_ptr<const plan::Plan>> plan(const std::vector<ir::Type>& inputs) const;
  /// A session for these types of the function's inputs. A hit allocates nothing.
  Result<std::unique_ptr<Session>> acquire(const std::vector<ir::Type>& inputs) const;
  void release(std::unique_ptr<Session> session) const;

 private:
  Model(import::ImportedModel imported, const CompileOptions& options)
      : imported_(std::move(imported)), options_(options) {}

  import::ImportedModel imported_;
  CompileOptions options_;
  const import::FunctionDescription* function_ = nullptr;
  ir::Function* ir_ = nullptr;
  std::vector<passes::Remark> remarks_;
  size_t operations_in_source_ = 0;
  mutable plan::PlanCache plans_;
  mutable std::mutex mutex_;
  mutable std::vector<std::unique_ptr<Session>> idle_;
};

}  // namespace moka::runtime
