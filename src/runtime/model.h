// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <tuple>
#include <vector>

#include "base/processors.h"
#include "import/importer.h"
#include "passes/pass.h"
#include "runtime/admission.h"
#include "runtime/parameters.h"
#include "runtime/prediction.h"

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
  std::vector<std::string> parameters;        ///< patterns of the weights that are parameters
  /// By name, of the parameters' types. The others have the model's own values.
  std::map<std::string, ir::Tensor> parameter_values;
};

/// An operation before the passes.
struct SourceRecord {
  std::string name, type;
  std::shared_ptr<const ir::SourceOp> source;  ///< not null
};

class BoundStates;

/// For each input of the body: where its description is among the inputs of the function, or behind them among its
/// states. Error malformed: it has none.
Result<std::vector<size_t>> features_of(const ir::Block& body, const import::FunctionDescription& function);

/// One function of a model, ready to be planned for input types and run. Immutable but for its caches; thread-safe.
class Model {
 public:
  ~Model();
  /// Runs the passes on `imported`. Errors: not_found (function), and what the passes find.
  static Result<std::unique_ptr<Model>> compile(import::ImportedModel imported, const CompileOptions& options);
  /// The same function with other values of its parameters, by name; they must have the parameters' types. It shares
  /// the program, and through CompileOptions::packed all that was packed from values that stay. `budget` takes the
  /// place of PlanOptions::budget.
  std::unique_ptr<Model> with_parameters(const std::map<std::string, ir::Tensor>& values,
                                         std::shared_ptr<MemoryBudget> budget) const;
  /// The bytes of CompileOptions::parameter_values have changed. Brings up to date what plans made from them.
  /// Precondition: PlanOptions::renewable, neither CompileOptions::packed nor cache, and no prediction is running.
  Status renew_parameters() const;
  /// Weights that may be replaced, in the order of the program.
  const std::vector<Parameter>& parameters() const { return compiled_->parameters; }
  /// The current value of a parameter, expanded if the model stores it compressed.
  Result<ir::Tensor> parameter_value(const Parameter& parameter) const;

  const import::ModelDescription& description() const { return compiled_->imported.description; }
  const import::FunctionDescription& function() const { return *compiled_->function; }
  const ir::Function& ir() const { return *compiled_->ir; }
  const ir::Program& program() const { return compiled_->imported.program; }
  const std::vector<passes::Remark>& remarks() const { return compiled_->remarks; }
  /// Bytes of all sessions: arenas and converted inputs.
  size_t session_bytes() const { return sessions_.bytes(); }
  const plan::PlanOptions& plan_options() const { return options_.plan; }
  size_t operations_in_source() const { return compiled_->operations_in_source; }
  /// The operations before the passes, without constants; empty without CompileOptions::keep_sources.
  const std::vector<SourceRecord>& sources() const { return compiled_->sources; }

  /// The description of input or state `i` of the function's body.
  const import::FeatureDescription& feature(size_t i) const;
  /// Where `feature(i)` is: among the inputs of the description, or behind them among its states.
  std::span<const size_t> features() const { return compiled_->features; }

  /// The plan for these types of the function's inputs, made when they are new, without the devices that have failed.
  Result<std::shared_ptr<const plan::Plan>> plan(const std::vector<ir::Type>& inputs) const;
  /// Predicts when it is this model's turn on the devices. Allocates nothing but outputs if an idle session fits. If
  /// the memory of a device is full, it drops the idle sessions of all models, then waits for running ones, and at last
  /// plans without the device. If a device fails, it predicts again without that device, or on the host alone if it is
  /// not known which one failed. With PlanOptions::strict, both are errors.
  Prediction predict(const PredictionRequest& request) const;
  /// Names the devices that failed, why, and what computes instead; "": no device failed.
  std::string failure() const;

 private:
  friend class Prediction;
  /// What plans with some of the devices share, and these plans.
  struct Setting {
    uint32_t without = 0;  ///< bit i: not `devices_[i]`
    plan::PlanOptions options;
    mutable plan::PlanCache plans;
  };
  /// `frame_bytes`: PlanOptions::frame_bytes.
  const Setting& setting(uint32_t without, bool observed, size_t frame_bytes) const;
  /// For the pictures of cameras of a request.
  size_t frame_bytes_for(uint32_t without, const PredictionRequest& request) const;
  Result<std::shared_ptr<const plan::Plan>> plan_for(const Setting& setting, const std::vector<ir::Type>& inputs) const;
  Result<std::unique_ptr<Session>> acquire_for(const Setting& setting, const PredictionRequest& request) const;
  /// A session for the types of the function's inputs. Errors: also those of the request's stop.
  Result<std::unique_ptr<Session>> acquire(const PredictionRequest& request) const;
  /// As acquire, but for devices that the caller knows to have failed in this prediction, and how.
  Result<std::unique_ptr<Session>> acquire_without(uint32_t without, std::vector<std::string> faults,
                                                   const PredictionRequest& request) const;
  /// Discards a session that failed, and returns one without the device that failed.
  Result<std::unique_ptr<Session>> acquire_instead(std::unique_ptr<Session> failed, const PredictionRequest& request,
                                                   const Error& error) const;
  /// Gives the session its inputs and runs it.
  Status compute(const PredictionRequest& request, BoundStates& states, Session& session) const;
  /// Runs the frame when it is this model's turn on the devices.
  Status run(Session& session) const;
  void release(std::unique_ptr<Session> session) const;
  /// Instead of release, where the session is of no more use.
  void discard(std::unique_ptr<Session> session) const;
  /// Whether the devices can have caused the error, and the prediction may do without them.
  bool is_fault(const Error& error) const;
  bool may_replay_on(const Session& session) const { return !options_.plan.strict && !session.devices.empty(); }
  /// `without` and the device that failed; all devices where that is not known or is none of the others.
  uint32_t without_also(uint32_t without, const Error& error) const;
  void set_up_devices();
  /// From now on nothing is planned for these devices.
  void give_up(uint32_t devices, const Error& error) const;
  uint32_t all_devices() const { return static_cast<uint32_t>((uint64_t{1} << devices_.size()) - 1); }
  /// "device 'a' and the CPU", "the CPU".
  std::string units_without(uint32_t without) const;
  std::vector<const kernel::Device*> devices_of(const plan::Plan& plan, uint32_t without) const;
  /// What all versions of the parameters share.
  struct Compiled {
    import::ImportedModel imported;
    const import::FunctionDescription* function = nullptr;
    ir::Function* ir = nullptr;
    std::vector<size_t> features;  ///< as Model::features
    std::vector<passes::Remark> remarks;
    size_t operations_in_source = 0;
    std::vector<SourceRecord> sources;
    std::vector<Parameter> parameters;

    /// Removes all outputs but these and what only they need.
    Status select_outputs(const std::vector<std::string>& names);
  };
  static Result<std::shared_ptr<Compiled>> compile_function(import::ImportedModel imported,
                                                            const CompileOptions& options);
  /// Makes the pool of constants for the values of CompileOptions::parameter_values.
  void set_up_constants();
  Model(std::shared_ptr<const Compiled> compiled, const CompileOptions& options)
      : compiled_(std::move(compiled)),
        options_(options),
        sessions_(options.idle_memory,
                  std::max<size_t>(2 * options.plan.cached_shapes, static_cast<size_t>(processors()))) {}

  std::shared_ptr<const Compiled> compiled_;
  CompileOptions options_;
  std::vector<const kernel::Device*> devices_;  ///< with a memory of their own, in order of preference; 32 at most
  Setting all_;                                 ///< with all devices
  mutable std::mutex settings_mutex_;
  mutable std::map<std::tuple<uint32_t, bool, size_t>, Setting>
      settings_;                           ///< others, made when they are first asked for
  mutable std::atomic<uint32_t> lost_{0};  ///< as Setting::without
  mutable std::mutex failure_mutex_;
  mutable std::string failure_;
  mutable SessionPool sessions_;
};

}  // namespace moka::runtime
