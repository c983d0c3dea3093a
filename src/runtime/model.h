#pragma once

#include <algorithm>
#include <atomic>
#include <map>
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
  bool keep_sources = false;                  ///< every operation has ir::Op::source; Model::sources lists them
};

/// An operation before the passes.
struct SourceRecord {
  std::string name, type;
  std::shared_ptr<const ir::SourceOp> source;  ///< not null
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
  /// Bytes of all sessions: arenas and converted inputs.
  size_t session_bytes() const { return sessions_.bytes(); }
  const plan::PlanOptions& plan_options() const { return options_.plan; }
  size_t operations_in_source() const { return operations_in_source_; }
  /// The operations before the passes, without constants; empty without CompileOptions::keep_sources.
  const std::vector<SourceRecord>& sources() const { return sources_; }

  using Session = runtime::Session;
  /// The plan for these types of the function's inputs, made when they are new, without the devices that have failed.
  Result<std::shared_ptr<const plan::Plan>> plan(const std::vector<ir::Type>& inputs) const;
  /// A session for these types of the function's inputs. Allocates nothing if an idle session fits. If the memory of a
  /// device is full, it drops the idle sessions of all models, then waits for running ones, and at last plans without
  /// the device, unless PlanOptions::strict. `observed`: results on devices are also copied to the host.
  Result<std::unique_ptr<Session>> acquire(const std::vector<ir::Type>& inputs, bool observed = false) const;
  void release(std::unique_ptr<Session> session) const;
  /// Runs the frame when it is this model's turn on the devices.
  Status run(Session& session) const;

  /// Whether a prediction that fails with `error` can run again without the device that failed.
  bool can_replay(const Session& session, const Error& error) const;
  /// Whether a prediction may have to run again.
  bool may_replay() const { return !options_.plan.strict && !devices_.empty(); }
  /// Discards a session that failed, and returns one without the device that failed. If the device is not known, the
  /// new session runs on the host alone.
  Result<std::unique_ptr<Session>> acquire_instead(std::unique_ptr<Session> failed, const std::vector<ir::Type>& inputs,
                                                   const Error& error) const;
  /// Names the devices that failed, why, and what computes instead; "": no device failed.
  std::string failure() const;

 private:
  /// What plans with some of the devices share, and these plans.
  struct Setting {
    uint32_t without = 0;  ///< bit i: not `devices_[i]`
    plan::PlanOptions options;
    mutable plan::PlanCache plans;
  };
  const Setting& setting(uint32_t without, bool observed) const;
  Result<std::shared_ptr<const plan::Plan>> plan_for(const Setting& setting, const std::vector<ir::Type>& inputs) const;
  Result<std::unique_ptr<Session>> acquire_for(const Setting& setting, const std::vector<ir::Type>& inputs,
                                               bool observed) const;
  /// As acquire, but for devices that the caller knows to have failed in this prediction, and how.
  Result<std::unique_ptr<Session>> acquire_without(uint32_t without, std::vector<std::string> faults,
                                                   const std::vector<ir::Type>& inputs, bool observed) const;
  /// Instead of release, where the session is of no more use.
  void discard(std::unique_ptr<Session> session) const;
  bool is_fault(const Error& error) const;
  /// `without` and the device that failed; all devices where that is not known or is none of the others.
  uint32_t without_also(uint32_t without, const Error& error) const;
  void set_up_devices();
  /// From now on nothing is planned for these devices.
  void give_up(uint32_t devices, const Error& error) const;
  uint32_t all_devices() const { return static_cast<uint32_t>((uint64_t{1} << devices_.size()) - 1); }
  /// "device 'a' and the CPU", "the CPU".
  std::string units_without(uint32_t without) const;
  std::vector<const kernel::Device*> devices_of(const plan::Plan& plan, uint32_t without) const;
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
  std::vector<SourceRecord> sources_;
  std::vector<const kernel::Device*> devices_;  ///< with a memory of their own, in order of preference; 32 at most
  Setting all_;                                 ///< with all devices
  mutable std::mutex settings_mutex_;
  mutable std::map<std::pair<uint32_t, bool>, Setting> settings_;  ///< others, made when they are first asked for
  mutable std::atomic<uint32_t> lost_{0};                          ///< as Setting::without
  mutable std::mutex failure_mutex_;
  mutable std::string failure_;
  mutable SessionPool sessions_;
};

}  // namespace moka::runtime
