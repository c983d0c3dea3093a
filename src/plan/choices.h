// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cmath>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "kernel/device.h"

/// Chooses a kernel when several can run an operation: by pins, measured times or the kernels' rules.
namespace moka::plan {

struct PlanOptions;

struct KernelTime {
  std::string kernel;
  double seconds = 0;
};

/// Times of the kernels that compete for one shape with one number of threads.
struct Measurement {
  std::string shape;              ///< result of shape_text
  int threads = 1;                ///< PlanOptions::threads
  std::string chosen, by_rule;    ///< names of kernels
  std::vector<KernelTime> times;  ///< in the order of the device's kernels
};

/// disturbed: chosen by rule, because other work on the machine disturbed the measurement.
enum class ChosenBy : uint8_t { rule, pin, cache, measured, disturbed };
std::string_view to_string(ChosenBy by);

/// Everything that the time of a call depends on: "conv x=fp32[1,64,56,56]/blocked16 weight=const fp32[64,64,3,3] ...
/// +relu".
std::string shape_text(const kernel::MatchCall& call);

struct Candidate {
  std::unique_ptr<kernel::KernelChoice> choice;
  int threads = 1;  ///< number of threads that share its tiles
};

/// Seconds of one run; infinite for a candidate that fails.
struct Timed {
  double least = HUGE_VAL;     ///< the shortest run
  double repeated = HUGE_VAL;  ///< the second shortest, so at least two runs took no longer
};

/// Measures kernels while a plan is made.
class KernelTimer {
 public:
  virtual ~KernelTimer() = default;
  /// Times each candidate and consumes its choice. nullopt: other work on the machine disturbs the measurement too
  /// much. `home`: the result layouts that other operations are planned for. Errors: out_of_budget.
  virtual Result<std::optional<std::vector<Timed>>> time(const kernel::MatchCall& call, std::span<Candidate> candidates,
                                                         std::span<const kernel::Layout> home,
                                                         const PlanOptions& options) = 0;
  /// Frees the memory that measurements share.
  virtual void rest() {}
};

/// Known times of kernels, shared by all plans of a model. Thread-safe.
class KernelChoices {
 public:
  enum class Measure : uint8_t { no, missing, all };

  /// Kernel names by operation name or by shape.
  std::map<std::string, std::string, std::less<>> pins;
  Measure measure = Measure::no;
  std::shared_ptr<KernelTimer> timer;  ///< required unless `measure` is no
  /// optional; called with the operation's name before each measurement
  std::function<void(std::string_view)> measuring;

  /// Adds the entries of a file; existing entries stay.
  void add(Measurement m);
  std::optional<Measurement> find(const std::string& shape, int threads) const;
  /// Whether this shape must be timed now.
  bool wants(const std::string& shape, int threads) const;
  void measured(Measurement m);
  /// The measurements since the previous call.
  std::vector<Measurement> take_measured();
  bool has_measured() const { return has_measured_.load(std::memory_order_relaxed); }

 private:
  struct Known {
    Measurement measurement;
    bool now = false;
  };
  mutable std::mutex mutex_;
  std::map<std::pair<std::string, int>, Known> known_;
  std::vector<Measurement> new_;
  std::atomic<bool> has_measured_{false};
};

struct Refusal {
  std::string device, reason;  ///< a device and its reason for refusing an operation
  kernel::Advice advice;
};

/// A kernel for one operation, and how it was chosen.
struct ChosenKernel {
  const kernel::Device* device = nullptr;
  std::shared_ptr<kernel::KernelChoice> choice;
  int threads = 1;  ///< number of threads that share its tiles
  std::vector<Refusal> refusals;
  ChosenBy by = ChosenBy::rule;
  std::shared_ptr<const Measurement> measurement;  ///< measurement that decided; nullptr: none
};

/// Asks `devices` in order. Errors: unsupported, with all refusals, when no kernel takes the call or a pinned one
/// refuses it; not_found when a pin names an unknown kernel.
Result<ChosenKernel> choose_kernel(kernel::MatchCall call, const PlanOptions& options,
                                   std::span<const kernel::Device* const> devices);

/// Asks one device. Without a choice, it refuses, and the last of the refusals says why. Errors: those of a pin and of
/// measurements.
Result<ChosenKernel> choose_on(const kernel::Device& device, kernel::MatchCall call, const PlanOptions& options);

}  // namespace moka::plan
