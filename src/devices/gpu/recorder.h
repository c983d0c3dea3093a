// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstring>
#include <functional>

#include "devices/gpu/chain.h"
#include "devices/gpu/gpu_device.h"
#include "devices/gpu/norm.h"

namespace moka::devices::gpu {

/// Groups of a dispatch.
struct Groups {
  uint32_t x = 1, y = 1, z = 1;
};

/// A dispatch before its code is looked up.
struct Dispatch {
  std::string shader;
  std::vector<uint32_t> constants;
  std::vector<Use> uses;
  std::vector<std::byte> params;
  Groups groups;
  std::optional<size_t> functions;  ///< as CommandRecorder::may_share
};

/// How a dispatch computes its result. Another dispatch that reads the result can compute it itself instead (`Absorb`).
/// Kernels derive from this struct.
struct Producer {
  virtual ~Producer() = default;
  Use out;
  std::vector<Use> reads;
};
/// Makes one dispatch of a producer and of the dispatch that has this function; nullopt: not possible.
using Absorb = std::function<std::optional<Dispatch>(const Producer&)>;

/// A dispatch, or a copy.
struct Command {
  Specialized run;  ///< code null: a copy of uses[0] to uses[1]
  std::vector<Use> uses;
  std::vector<std::byte> params;  ///< with the starts of the bindings (Code::has_starts)
  Groups groups;
  bool waits = false;          ///< it uses what earlier commands write or use, after those that wait themselves
  std::optional<Chain> chain;  ///< the elementwise chain that it computes, if it is one
  std::shared_ptr<const Producer> producer;  ///< set if a reader can compute its result instead
  Absorb absorb;                             ///< merges it with the producer of uses[0]
  std::optional<size_t> functions;           ///< CommandRecorder::may_share
  std::optional<Norm> norm;                  ///< set if the writer of uses[0] can do this instead
  std::optional<Normed> normed;              ///< set if the dispatch can apply a norm
  std::vector<uint32_t> steps;               ///< of the region, which it computes; none: it moves values of the host
};

/// Collects dispatches and copies. A command waits if it conflicts with a command since the last one that waits: one of
/// them writes bytes that the other uses. Merges two chains into one dispatch if the second is the only reader of the
/// first one's result. Merges a producer with its only reader in the same way, if the reader can absorb it, and a norm
/// with what writes its input.
class CommandRecorder final : public kernel::Recorder {
 public:
  explicit CommandRecorder(const GpuDevice& device) : device_(device) {}

  /// Dispatches the device's code of this name.
  template <class P>
  Status dispatch(std::string_view code, std::vector<uint32_t> constants, std::vector<Use> uses, const P& params,
                  Groups groups, std::optional<Chain> chain = std::nullopt) {
    return dispatch_bytes(code, std::move(constants), std::move(uses),
                          {reinterpret_cast<const std::byte*>(&params), sizeof params}, groups, std::move(chain));
  }
  /// For code that an application supplies.
  Status dispatch(const Code& code, std::vector<uint32_t> constants, std::vector<Use> uses,
                  std::span<const std::byte> params, Groups groups);
  void copy(Use from, Use to);
  /// The next six functions describe the dispatch that was recorded last.
  void offer(std::shared_ptr<const Producer> producer) { commands_.back().producer = std::move(producer); }
  void absorb(Absorb absorb) { commands_.back().absorb = std::move(absorb); }
  void is_norm(const Norm& norm) { commands_.back().norm = norm; }
  void may_norm(Normed normed) { commands_.back().normed = std::move(normed); }
  void is_chain(Chain chain) { commands_.back().chain = std::move(chain); }
  /// `functions`: index of the first of two constants that name functions. Parameters can turn these functions off
  /// (HAS_FUNCTIONS). A dispatch without functions can then use the code of an otherwise equal one with functions.
  void may_share(size_t functions) { commands_.back().functions = functions; }
  /// The host or other regions read the bytes after this region has run.
  void keep(Use use) { kept_.push_back(use); }
  uint32_t new_parts() { return ++parts_; }
  /// What is recorded from now on computes this step of the region; nullopt: none.
  void begin_step(std::optional<uint32_t> step) { step_ = step; }
  /// Groups of 256 invocations for `n` independent elements (shaders/common.glsl, `index()`).
  static Groups lines(uint64_t n);

  const GpuDevice& device() const { return device_; }
  /// All commands in their order, merged.
  Result<std::vector<Command>> finish();

 private:
  Status dispatch_bytes(std::string_view code, std::vector<uint32_t> constants, std::vector<Use> uses,
                        std::span<const std::byte> params, Groups groups, std::optional<Chain> chain);
  Result<Command> command(std::string_view code, std::vector<uint32_t> constants, std::vector<Use> uses,
                          std::span<const std::byte> params, Groups groups) const;
  Result<Command> command(const Code& code, std::vector<uint32_t> constants, std::vector<Use> uses,
                          std::span<const std::byte> params, Groups groups) const;
  void add(Command command);
  Status join_chains();
  Status join_producers();
  Status join_norms();
  Result<bool> join_norm(size_t norm);
  void share_code();
  void order();
  bool is_needed_after(const Use& value, size_t command) const;
  bool is_written_between(const std::vector<Use>& values, size_t earlier, size_t later) const;
  bool is_untouched_between(const Use& value, size_t earlier, size_t later) const;
  std::optional<size_t> only_writer(const Use& value, size_t reader) const;

  const GpuDevice& device_;
  std::vector<Command> commands_;
  std::vector<Use> kept_;
  uint32_t parts_ = 0;
  std::optional<uint32_t> step_;
};

}  // namespace moka::devices::gpu
