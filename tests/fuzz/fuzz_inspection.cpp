// SPDX-License-Identifier: Apache-2.0
// Input: a specification (.mlmodel) of any kind. Every weight has statistics or says why not, and every layer has as
// many sizes as blobs.
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <numeric>
#include <string>

#include "moka/inspection.h"

namespace {

/// A path in memory where there is one. On a disk, each run would wait until its file is written.
const std::string& path() {
  static const std::string path = [] {
    const std::filesystem::path memory = "/dev/shm";
    const auto folder = std::filesystem::exists(memory) ? memory : std::filesystem::temp_directory_path();
    return (folder / ("fuzz_inspection_" + std::to_string(getpid()) + ".mlmodel")).string();
  }();
  return path;
}

void check_layers(const moka::Inspection& inspection, const moka::ModelStructure& structure,
                  const std::vector<size_t>& models) {
  const std::vector<moka::LayerSizes> sizes = inspection.layer_sizes(models);
  if (sizes.size() != structure.layers.size()) std::abort();
  for (size_t i = 0; i < sizes.size(); ++i) {
    const moka::ModelStructure::Layer& layer = structure.layers[i];
    if (sizes[i].inputs.size() != layer.inputs.size() || sizes[i].outputs.size() != layer.outputs.size()) std::abort();
    for (const size_t weight : layer.weights)
      if (weight >= structure.weights.size()) std::abort();
  }
  for (const auto& function : structure.functions) (void)inspection.types_at_default_sizes(function.name, models);
}

void read_all(const moka::Inspection& inspection, const moka::ModelStructure& structure, std::vector<size_t> models) {
  check_layers(inspection, structure, models);
  for (size_t i = 0; i < structure.weights.size(); ++i) {
    try {
      const moka::WeightStatistics s = inspection.statistics(i, models);
      const uint64_t finite = std::accumulate(s.histogram.begin(), s.histogram.end(), uint64_t{0});
      if (finite + s.nan + s.infinite != s.count || s.zeros > s.count || s.minimum > s.maximum || s.distinct > s.count)
        std::abort();
    } catch (const moka::Exception& e) {
      if (e.kind() != moka::ErrorKind::unsupported) std::abort();
    }
  }
  for (size_t i = 0; i < structure.models.size(); ++i) {
    models.push_back(i);
    read_all(inspection, structure.models[i].structure, models);
    models.pop_back();
  }
}

}  // namespace

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  return std::atexit([] { unlink(path().c_str()); });
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::FILE* file = std::fopen(path().c_str(), "wb");
  if (!file || std::fwrite(data, 1, size, file) != size || std::fclose(file) != 0) std::abort();
  try {
    const moka::Inspection inspection = moka::Inspection::open(path());
    read_all(inspection, inspection.outline().structure, {});
  } catch (const moka::Exception&) {
  }
  return 0;
}
