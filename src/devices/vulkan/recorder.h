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
  size_t uploaded = 0, downloaded = 0;  ///< copied bytes; 0 if host and device share memory
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
  PipelineKey key;  ///< shader null: a copy of uses[0] to uses[1]
  std::vector<Use> uses;
  std::vector<std::byte> push;
  Groups groups;
  std::optional<Chain> chain;                ///< the elementwise chain that it computes, if it is one
  std::shared_ptr<const Producer> producer;  ///< set if a reader can compute its result instead
  Absorb absorb;                             ///< merges it with the producer of uses[0]
  std::optional<size_t> functions;           ///< VulkanRecorder::may_share
};

/// Records a barrier. Later commands see everything that earlier dispatches and copies wrote.
void wait_for_earlier(const Api& api, VkCommandBuffer commands);

/// Collects dispatches and copies. Inserts a barrier before a command that conflicts with a command since the last
/// barrier: one of them writes bytes that the other uses. Merges two chains into one dispatch if the second is the only
/// reader of the first one's result. Merges a producer with its only reader in the same way, if the reader can absorb
/// it.
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
  /// The next three functions describe the dispatch that was recorded last.
  void offer(std::shared_ptr<const Producer> producer) { commands_.back().producer = std::move(producer); }
  void absorb(Absorb absorb) { commands_.back().absorb = std::move(absorb); }
  /// `functions`: index of the first of two constants that name functions. Push constants can turn these functions off
  /// (HAS_FUNCTIONS). A dispatch without functions can then use the pipeline of an otherwise equal one with functions.
  void may_share(size_t functions) { commands_.back().functions = functions; }
  /// The host or other regions read the bytes after this region has run.
  void keep(Use use) { kept_.push_back(use); }
  uint32_t new_parts() { return ++parts_; }
  /// Groups of 256 invocations for `n` independent elements (shaders/common.glsl, `index()`).
  static Groups lines(uint64_t n);

  const Context& context() const { return *context_; }
  /// Records everything into a command buffer. Returns the new pool that owns the descriptor sets.
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
