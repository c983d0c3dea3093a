#pragma once

#include <cstring>

#include "devices/vulkan/memory.h"
#include "devices/vulkan/pipelines.h"

namespace moka::devices::vulkan {

/// What a submission does each time it runs.
struct Counters {
  size_t dispatches = 0, barriers = 0, copies = 0;
  size_t uploaded = 0, downloaded = 0;  ///< bytes that cross by a copy; none where memory is unified
};

/// A stretch of a buffer that a dispatch uses.
struct Use {
  const kernel::Buffer* buffer = nullptr;
  size_t offset = 0, bytes = 0;
  size_t element = 4;  ///< bytes
  bool written = false;
  uint32_t parts = 0;  ///< not 0: of other elements than all other uses with this number (VulkanRecorder::new_parts)

  static Use read(const kernel::BufferView& v) { return of(v, false); }
  static Use write(const kernel::BufferView& v) { return of(v, true); }
  static Use read(const std::shared_ptr<const kernel::Buffer>& b, size_t element) {
    return {b.get(), 0, b->bytes(), element};
  }
  static Use of(const kernel::BufferView& v, bool written);
  Use to_read() const { return {buffer, offset, bytes, element, false}; }
  /// What begins with element `first`.
  Use from(int64_t first) const {
    const size_t skipped = static_cast<size_t>(first) * element;
    return {buffer, offset + skipped, bytes - skipped, element, written};
  }
  /// The same, `count` elements of it.
  Use part(int64_t first, int64_t count) const {
    return {buffer, offset + static_cast<size_t>(first) * element, static_cast<size_t>(count) * element, element,
            written};
  }
};

/// Groups of a dispatch.
struct Groups {
  uint32_t x = 1, y = 1, z = 1;
};

/// Collects dispatches and copies. Barriers are its own business: it puts one where a stretch of a buffer is used that
/// an earlier command since the last barrier has written, or written that one has used.
class VulkanRecorder final : public kernel::Recorder {
 public:
  explicit VulkanRecorder(std::shared_ptr<Context> context) : context_(std::move(context)) {}

  /// The shader's push constants are the first elements of `uses` in their bindings, one uint each, then `params`.
  template <class P>
  Status dispatch(std::string_view shader, std::vector<uint32_t> constants, std::vector<Use> uses, const P& params,
                  Groups groups) {
    return dispatch_bytes(shader, std::move(constants), std::move(uses),
                          {reinterpret_cast<const std::byte*>(&params), sizeof params}, groups);
  }
  void copy(Use from, Use to);
  uint32_t new_parts() { return ++parts_; }
  /// The same for `n` independent elements in groups of 256 (shaders/common.glsl, `index()`).
  static Groups lines(uint64_t n);

  const Context& context() const { return *context_; }
  /// Records all into a command buffer. Descriptor sets come from `pool`, which is made here.
  Result<VkDescriptorPool> finish(VkCommandBuffer commands, Counters& counters);

 private:
  struct Command {
    PipelineKey key;  // shader null: a copy of uses[0] to uses[1]
    std::vector<Use> uses;
    std::vector<std::byte> push;
    Groups groups;
    bool barrier = false;
  };
  Status dispatch_bytes(std::string_view shader, std::vector<uint32_t> constants, std::vector<Use> uses,
                        std::span<const std::byte> params, Groups groups);
  void add(Command c);

  std::shared_ptr<Context> context_;
  std::vector<Command> commands_;
  std::vector<Use> pending_;  // since the last barrier
  uint32_t parts_ = 0;
};

}  // namespace moka::devices::vulkan
