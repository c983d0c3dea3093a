// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "ir/program.h"
#include "kernel/memory.h"
#include "plan/parameters.h"

namespace moka::plan {

class PackedCache;

struct Packed {
  std::mutex mutex;  ///< held while the entry is made, so that other entries are not blocked
  std::shared_ptr<const std::byte> bytes;
  std::byte* writable = nullptr;           ///< `bytes`, of an entry that no other pool has
  uint64_t version = 0;                    ///< ConstantPool::renew: of the parameters that it was made from
  std::shared_ptr<kernel::Buffer> buffer;  ///< used instead of bytes for a device's memory
  ir::Tensor value;                        ///< used instead of bytes for a value that is not packed
  std::vector<ir::Tensor> sources;         ///< tensors whose addresses identify the entry
};

/// How a constant value is made.
struct Identity {
  std::string text;                 ///< equal values have equal texts; empty: unknown
  std::vector<ir::Tensor> sources;  ///< large tensors that the text calls by their addresses; they must outlive it
};

/// Packed constants of all functions and configurations of one opened file. Bytes made in the same way from the same
/// data exist once, as long as they are in use. What is made from mapped files alone is shared by all stores of the
/// process, because map_file maps an unchanged file once. Thread-safe.
class PackedStore {
 public:
  enum class Sharing { process, store };
  PackedStore();
  /// `key`: what is made from the value.
  std::shared_ptr<Packed> entry(const std::string& key, Identity identity, Sharing sharing);

  struct Entries;

 private:
  const std::shared_ptr<Entries> own_;
};

/// Tensors of no file are described by their elements, or above 64 KiB by their addresses.
Identity identity_of(const ir::Value& value, const ParameterValues& parameters = {});
/// The same for a file of packed constants: large tensors are described by where they are in the model's files, or up
/// to 64 KiB by a digest. Empty when a larger one is in none of them.
std::string lasting_identity_of(const ir::Value& value, const PackedCache& cache,
                                const ParameterValues& parameters = {});

}  // namespace moka::plan
