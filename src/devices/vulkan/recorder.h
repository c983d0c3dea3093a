#pragma once

#include <cstring>
#include <functional>

#include "devices/vulkan/chain.h"
#include "devices/vulkan/memory.h"
#include "devices/vulkan/pipelines.h"

namespace moka::devices::vulkan {

/// What a submission does each time it runs.
struct Counters {
  size_t dispatches = 0, barriers = 0, copies = 0;
  size_t uploaded = 0, downloaded = 0;  ///< bytes that cross by a copy; none where memory is unified
};

/// Groups of a dispatch.
struct Groups {
  uint32_t x = 1, y = 1, z = 1;
};

/// A dispatch before its shader and its buffers are looked up.
struct Dispatch {
  std::string shader;
  std::vector<uint32_t> constants;
  std::vector<Use> uses;
  std::vector<std::byte> params;
  Groups groups;
  std::optional<size_t> functions;  ///< as VulkanRecorder::may_share
};

/// How a dispatch computes its result, for another one that can compute it while it reads it. Kernels derive from it.
struct Producer {
  virtual ~Producer() = default;
  Use out;
  std::vector<Use> reads;
};
/// A dispatch that does what a producer does and what it did; nullopt: it cannot.
using Absorb = std::function<std::optional<Dispatch>(const Producer&)>;

/// A dispatch, or a copy.
struct Command {
  PipelineKey key;  ///< shader null: a copy of uses[0] to uses[1]
  std::vector<Use> uses;
  std::vector<std::byte> push;
  Groups groups;
  std::optional<Chain> chain;                ///< what it computes, where that is a chain
  std::shared_ptr<const Producer> producer;  ///< what it computes, where others can
  Absorb absorb;                             ///< of what uses[0] is the result
  std::optional<size_t> functions;           ///< VulkanRecorder::may_share
};

/// Records a barrier: what comes behind it sees all that dispatches and copies in front of it wrote.
void wait_for_earlier(const Api& api, VkCommandBuffer commands);

/// Collects dispatches and copies. It inserts a barrier before a command that uses bytes which a command since the last
/// barrier wrote, or writes bytes which one used. Where a chain is the only reader of another chain's result, or a
/// dispatch that can absorb a producer is the only reader of one's, the two become one dispatch.
class VulkanRecorder final : public kernel::Recorder {
 public:
  explicit VulkanRecorder(std::shared_ptr<Context> context) : context_(std::move(context)) {}

  /// The shader's push constants are the first elements of `uses` in their bindings, one uint each, then `params`.
  template <class P>
  Status dispatch(std::string_view shader, std::vector<uint32_t> constants, std::vector<Use> uses, const P& params,
                  Groups groups, std::optional<Chain> chain = std::nullopt) {
    return dispatch_bytes(shader, std::move(constants), std::move(uses),
                          {reinterpret_cast<const std::byte*>(&params), sizeof params}, groups, std::move(chain));
  }
  /// For a shader that the build does not know.
  Status dispatch(const Shader& shader, std::vector<uint32_t> constants, std::vector<Use> uses,
                  std::span<const std::byte> params, Groups groups);
  void copy(Use from, Use to);
  /// The next three describe the dispatch that was recorded last.
  void offer(std::shared_ptr<const Producer> producer) { commands_.back().producer = std::move(producer); }
  void absorb(Absorb absorb) { commands_.back().absorb = std::move(absorb); }
  /// Two of its constants, of which this is the index of the first, name functions that its push constants can leave
  /// out (HAS_FUNCTIONS): without functions it uses the pipeline of a dispatch that has some and is otherwise the same.
  void may_share(size_t functions) { commands_.back().functions = functions; }
  /// The bytes are read after the region has run, by the host or by other regions.
  void keep(Use use) { kept_.push_back(use); }
  uint32_t new_parts() { return ++parts_; }
  /// The same for `n` independent elements in groups of 256 (shaders/common.glsl, `index()`).
  static Groups lines(uint64_t n);

  const Context& context() const { return *context_; }
  /// Records all into a command buffer. Descriptor sets come from `pool`, which is made here.
  Result<VkDescriptorPool> finish(VkCommandBuffer commands, Counters& counters);

 private:
  Status dispatch_bytes(std::string_view shader, std::vector<uint32_t> constants, std::vector<Use> uses,
                        std::span<const std::byte> params, Groups groups, std::optional<Chain> chain);
  Result<Command> command(std::string_view shader, std::vector<uint32_t> constants, std::vector<Use> uses,
                          std::span<const std::byte> params, Groups groups) const;
  Result<Command> command(const Shader& shader, std::vector<uint32_t> constants, std::vector<Use> uses,
                          std::span<const std::byte> params, Groups groups) const;
  Status join_chains();
  Status join_producers();
  void share_pipelines();
  bool is_needed_after(const Use& value, size_t command) const;
  bool is_written_between(const std::vector<Use>& values, size_t earlier, size_t later) const;
  std::optional<size_t> only_writer(const Use& value, size_t reader) const;

  std::shared_ptr<Context> context_;
  std::vector<Command> commands_;
  std::vector<Use> kept_;
  uint32_t parts_ = 0;
};

}  // namespace moka::devices::vulkan
