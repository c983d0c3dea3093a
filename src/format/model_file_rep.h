#pragma once

#include <memory>
#include <string>
#include <vector>

#include "format/mlmodel/decode.h"
#include "format/model_file.h"

namespace moka::format {

struct ModelFile::Rep {
  Container container = Container::mlmodel;
  std::string path;
  Bytes raw;
  DecodedModel decoded;
  Bytes mil_text;
  WeightStore weights;
  std::vector<ModelFile> children;
  std::vector<PackageItem> items;
  std::unique_ptr<CompiledInfo> compiled;
};

/// `path` has no trailing '/'.
Result<ModelFile> open_mlmodel(const std::string& path, const OpenOptions& options);
Result<ModelFile> open_mlpackage(const std::string& path, const OpenOptions& options);
Result<ModelFile> open_mlmodelc(const std::string& path, const OpenOptions& options);

/// Decodes the bytes of a specification file and checks that they hold a model of a known type.
Result<DecodedModel> decode_file(const Bytes& bytes, const OpenOptions& options);

}  // namespace moka::format
