#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "ir/program.h"
#include "kernel/memory.h"

namespace moka::plan {

class PackedCache;

struct Packed {
  std::mutex mutex;  ///< held while the entry is made, so that other entries are not blocked
  std::shared_ptr<const std::byte> bytes;
  std::shared_ptr<const kernel::Buffer> buffer;  ///< used instead of bytes for a device's memory
  std::vector<ir::Tensor> sources;               ///< tensors whose addresses identify the entry
};

/// Packed constants of all functions of one file. Bytes made in the same way from the same data exist once, as long as
/// they are in use. Thread-safe.
class PackedStore {
 public:
  std::shared_ptr<Packed> entry(const std::string& key, std::vector<ir::Tensor> sources);

 private:
  std::mutex mutex_;
  std::map<std::string, std::weak_ptr<Packed>> packed_;
};

/// A text that describes how a constant value is made. Equal values have equal texts. The text identifies large tensors
/// by their addresses, so `sources` must outlive it. Empty: unknown.
std::string identity_of(const ir::Value& value, std::vector<ir::Tensor>& sources);
/// The same for a file of packed constants: large tensors are described by where they are in the model's files, or up
/// to 64 KiB by a digest. Empty when a larger one is in none of them.
std::string lasting_identity_of(const ir::Value& value, const PackedCache& cache);

}  // namespace moka::plan
