// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <string>

namespace moka::devices::gpu {

/// What kernels depend on of a card and its driver.
struct Features {
  std::string name;           ///< of the card
  bool is_processor = false;  ///< a driver that computes on the CPU, as Mesa's lavapipe does
  bool half_storage = false;  ///< buffers of float16
  bool half = false;          ///< arithmetic in float16
  bool byte_storage = false;  ///< buffers of bytes
  bool is_large = false;      ///< a GPU of its own memory, which runs many workgroups at a time
  bool local_memory = true;   ///< shared memory is a memory of its own, faster than buffers; kernels stage tiles there
  bool takes_frames = false;  ///< unpacks pictures of cameras: it computes beside the processor
  uint32_t subgroup = 1;      ///< invocations
  bool lanes = false;         ///< subgroups have 8 to 64 invocations and can add their values
  bool whole_subgroups = false;      ///< a workgroup of as many invocations as a subgroup has is one
  uint64_t max_range = 0;            ///< bytes of a buffer that a kernel can bind
  uint64_t alignment = 64;           ///< bytes, of what a kernel binds; at least 64
  std::array<uint32_t, 3> groups{};  ///< the most workgroups of a dispatch, along x, y and z
  uint32_t max_shared = 0;           ///< bytes of a workgroup's memory, at least 16384

  /// Whether kernels stage tiles in shared memory. Otherwise each invocation computes a block in registers.
  bool shares_tiles() const { return local_memory; }
  /// Invocations of a workgroup that computes blocks.
  uint32_t block_size() const;
  /// Whether a workgroup that computes blocks is one subgroup.
  bool blocks_are_subgroups() const;
  /// Rows that a workgroup multiplies by a vector.
  int64_t rows_of_group() const;
  /// The workgroups that compute `blocks` blocks of each of `planes` planes.
  std::array<int64_t, 3> block_groups(int64_t blocks, int64_t planes) const;
  /// Why the driver cannot dispatch `n` workgroups along x, y and z; empty: it can.
  std::string refusal_of_groups(const std::array<int64_t, 3>& n) const;
};

}  // namespace moka::devices::gpu
