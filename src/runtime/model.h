#pragma once

#include <algorithm>
#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/processors.h"
#include "import/importer.h"
#include "passes/pass.h"
#include "runtime/admission.h"
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
  ~Model();
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
  /// The plan for these types of the function's inputs, made when they are new: for the host where a device has failed.
  Result<std::shared_ptr<const plan::Plan>> plan(const std::vector<ir::Type>& inputs) const;
  /// A session for these types of the function's inputs. A hit allocates nothing. Where the memory of a device is full,
  /// idle sessions of all models are dropped, then those that run are waited for; what a device still refuses is
  /// planned for the host, unless PlanOptions::strict. `observed`: all that devices compute also reaches the host.
  Result<std::unique_ptr<Session>> acquire(const std::vector<ir::Type>& inputs, bool observed = false) const;
  void release(std::unique_ptr<Session> session) const;
  /// Instead of release, where the session is of no more use.
  void discard(std::unique_ptr<Session> session) const;
  /// Runs the frame when it is this model's turn on the devices.
  Status run(Session& session) const;

  /// Whether a prediction that fails so can be replayed on the host.
  bool can_replay(const Session& session, const Error& error) const;
  /// Whether any prediction may have to be replayed.
  bool may_replay() const { return !options_.plan.strict && !devices_.empty(); }
  /// A session that computes on the host alone, in the place of one that failed.
  Result<std::unique_ptr<Session>> acquire_instead(const std::vector<ir::Type>& inputs, const Error& error) const;
  /// Why devices are no longer used; "": they are.
  std::string failure() const;

 private:
  enum class Where : uint8_t { units, host, observed };
  Result<std::shared_ptr<const plan::Plan>> plan_for(Where where, const std::vector<ir::Type>& inputs) const;
  Result<std::unique_ptr<Session>> acquire_for(Where where, const std::vector<ir::Type>& inputs) const;
  const plan::PlanOptions& options_for(Where where) const;
  bool is_fault(const Error& error) const;
  void set_up_devices();
  /// From now on all is planned for the host.
  void give_up_devices(const Error& error) const;
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
  std::vector<const kernel::Device*> devices_;  ///< with a memory of their own
  plan::PlanOptions host_, observed_;           ///< `options_.plan` without devices, with all values on the host
  mutable plan::PlanCache plans_[3];            ///< by Where
  mutable std::atomic<bool> failed_{false};
  mutable std::mutex failure_mutex_;
  mutable std::string failure_;
  mutable SessionPool sessions_;
};

}  // namespace moka::runtime
