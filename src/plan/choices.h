#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "kernel/kernel.h"

/// Which kernel runs an operation where several can: by pins, measured times or the kernels' rules.
namespace moka::plan {

struct PlanOptions;

struct KernelTime {
  std::string kernel;
  double seconds = 0;
};

/// The times of the kernels that compete for one shape on one number of threads.
struct Measurement {
  std::string shape;              ///< as shape_text says
  int threads = 1;                ///< of PlanOptions
  std::string chosen, by_rule;    ///< kernels
  std::vector<KernelTime> times;  ///< in the order of the device's kernels
};

/// disturbed: by rule, since what else runs on the machine disturbed the measurement.
enum class ChosenBy : uint8_t { rule, pin, cache, measured, disturbed };
std::string_view to_string(ChosenBy by);

/// Everything that the time of a call depends on: "conv x=fp32[1,64,56,56]/blocked16 weight=const fp32[64,64,3,3] ...
/// +relu".
std::string shape_text(const kernel::MatchCall& call);

struct Candidate {
  std::unique_ptr<kernel::KernelChoice> choice;
  int threads = 1;  ///< that share its tiles
};

/// Measures kernels while a plan is made.
class KernelTimer {
 public:
  virtual ~KernelTimer() = default;
  /// Seconds of each candidate, whose choices are used up; infinite for one that fails. None: other work on the machine
  /// disturbs too much. `home`: the layouts of the results that other operations are laid out for. Errors:
  /// out_of_budget.
  virtual Result<std::optional<std::vector<double>>> time(const kernel::MatchCall& call,
                                                          std::span<Candidate> candidates,
                                                          std::span<const kernel::Layout> home,
                                                          const PlanOptions& options) = 0;
};

/// The known times of kernels, shared by all plans of a model. Thread-safe.
class KernelChoices {
 public:
  enum class Measure : uint8_t { no, missing, all };

  /// Kernels by the names of operations and by shapes.
  std::map<std::string, std::string, std::less<>> pins;
  Measure measure = Measure::no;
  std::shared_ptr<KernelTimer> timer;               ///< required unless `measure` is no
  std::function<void(std::string_view)> measuring;  ///< optional; told the operation's name before each measurement

  /// Adds the entries of a file; existing entries stay.
  void add(Measurement m);
  std::optional<Measurement> find(const std::string& shape, int threads) const;
  /// Whether this shape is to be timed now.
  bool wants(const std::string& shape, int threads) const;
  void measured(Measurement m);
  /// The measurements since the last call.
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
  std::string device, reason;  ///< of one operation
};

/// A kernel for one operation, and the reason of the choice.
struct ChosenKernel {
  const kernel::Device* device = nullptr;
  std::shared_ptr<kernel::KernelChoice> choice;
  int threads = 1;  ///< that share its tiles
  std::vector<Refusal> refusals;
  ChosenBy by = ChosenBy::rule;
  std::shared_ptr<const Measurement> measurement;  ///< that decided; nullptr: none
};

/// Asks `devices` in order. Errors: unsupported with all refusals when no kernel takes the call or a pinned one does
/// not; not_found when a pin names no kernel.
Result<ChosenKernel> choose_kernel(kernel::MatchCall call, const PlanOptions& options,
                                   std::span<const kernel::Device* const> devices);

}  // namespace moka::plan
