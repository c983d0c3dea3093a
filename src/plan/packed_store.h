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
  std::mutex mutex;  ///< held while it is made, so that others go on with theirs
  std::shared_ptr<const std::byte> bytes;
  std::shared_ptr<const kernel::Buffer> buffer;  ///< instead of bytes: in a device's memory
  std::vector<ir::Tensor> sources;               ///< by whose addresses it is known
};

/// Packed constants of all functions that are made from one file: bytes made of the same data in the same way are there
/// once, for as long as somebody holds them. Thread-safe.
class PackedStore {
 public:
  std::shared_ptr<Packed> entry(const std::string& key, std::vector<ir::Tensor> sources);

 private:
  std::mutex mutex_;
  std::map<std::string, std::weak_ptr<Packed>> packed_;
};

/// A text that describes how a constant value is made. Equal values have equal texts. Large tensors are described by
/// their addresses, so `sources` must live as long as the words are used. Empty: not known.
std::string identity_of(const ir::Value& value, std::vector<ir::Tensor>& sources);
/// The same for a file of packed constants: large tensors are described by where they are in the model's files. Empty
/// when one is in none of them.
std::string lasting_identity_of(const ir::Value& value, const PackedCache& cache);

}  // namespace moka::plan
