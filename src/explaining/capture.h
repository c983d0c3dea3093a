// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "explaining/capture_commands.h"
#include "moka/capture.h"
#include "moka/compute_plan.h"
#include "runtime/frame.h"

namespace moka::explaining {

/// Keeps the content of a buffer of a command, row-major: sets what it learns in `command`. `number`: of the command
/// among Capture::commands.
using KeepValue =
    std::function<Status(CapturedCommand& command, size_t number, size_t buffer, const ir::TensorView& content)>;

/// Collects what predictions run. First call begin(), then predict, then end(), as often as is measured; at last
/// take(). With values, one more prediction of begin_values().
class Capturer final : public runtime::CaptureSink {
 public:
  /// `keep`: for begin_values, which needs it.
  explicit Capturer(KeepValue keep = nullptr);
  ~Capturer() override;

  void begin();
  /// `counts`: its times count.
  void end(bool counts);
  void begin_values();
  /// The commands in the order of their start, the devices and their memories.
  Capture take();

  Status before(const runtime::CapturedStep& step) override;
  Status step(const runtime::CapturedStep& step) override;
  Status region(const runtime::CapturedRegion& region) override;
  bool wants_values() const override { return values_; }
  Status command(const runtime::CapturedRegion& region, size_t command, bool has_run) override;
  void restart() override;

 private:
  /// A step of the host, or a region.
  using Key = std::pair<const void*, size_t>;
  struct Command {
    CapturedCommand shown;
    std::vector<StepValue> values;  ///< of a step of the host
    double current = 0;             ///< seconds in the running prediction
    int64_t runs = 0;
    bool is_measured = false;
    std::vector<double> samples;
  };
  struct Group {
    std::vector<Command> commands;
    bool is_filled = false;
  };
  Group& group(const Key& key);
  Group& filled(const runtime::CapturedRegion& region);
  Result<Command*> described(const runtime::CapturedStep& step);
  /// What it reads is looked at before it runs, and what it writes when it has run.
  Status read_values(const runtime::CapturedRegion& region, size_t command, bool has_run, Command& into);
  Status read_values(const runtime::CapturedStep& step, bool has_run, Command& into);
  Status keep(Command& of, size_t buffer, const ir::TensorView& view, kernel::Layout layout);
  Status add_device(const kernel::Device& device, kernel::Queue* queue);
  size_t number_of(const Command& command) const;

  const KeepValue keep_;
  bool values_ = false;
  int64_t start_ = 0;  ///< of the running prediction
  std::vector<std::unique_ptr<Group>> groups_;
  std::map<Key, Group*> group_of_;
  Capture out_;
  std::map<const kernel::Buffer*, int> memories_;
  std::map<std::pair<const kernel::Buffer*, size_t>, CapturedBuffer> constants_;  ///< whose values are known
};

/// The dispatches of each operation in the plan `of`, from what a capture of it collected.
void add_dispatches(const Capture& capture, std::vector<PlannedOperation>& to);

}  // namespace moka::explaining
