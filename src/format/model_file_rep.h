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
  std::string remark;
};

/// `path` has no trailing '/'.
Result<ModelFile> open_mlmodel(const std::string& path, const OpenOptions& options);
Result<ModelFile> open_mlpackage(const std::string& path, const OpenOptions& options);
Result<ModelFile> open_mlmodelc(const std::string& path, const OpenOptions& options);

/// Decodes the bytes of a specification file into `rep` and checks that they hold a model of a known type and nothing
/// that only a newer specification has.
Status decode_file(const Bytes& bytes, const OpenOptions& options, ModelFile::Rep& rep);
/// Error unsupported where `message`, of that type, is of a newer version than is known and has what that one has not;
/// else what to remark on the version, empty where it is known.
Result<std::string> check_version(int version, const Bytes& message, std::string_view type);

}  // namespace moka::format
