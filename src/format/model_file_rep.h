// SPDX-License-Identifier: Apache-2.0
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
  std::string specification_name;
  bool overlaid = false;  ///< texts of a package replaced those of the specification
  std::shared_ptr<CompiledInfo> compiled;
  std::string remark;
  bool encrypted = false;
};

/// How errors name the model.
std::string place_of(const std::string& path);

/// `path` has no trailing '/' and names the model in errors.
Result<ModelFile> open_mlmodel(const std::string& path, const OpenOptions& options);
Result<ModelFile> open_mlpackage(const std::string& path, const ModelFolder& folder, const OpenOptions& options);
Result<ModelFile> open_mlmodelc(const std::string& path, const ModelFolder& folder, const OpenOptions& options);
/// The bytes of an .mlmodel.
Result<ModelFile> open_specification(const std::string& path, Bytes bytes, WeightStore weights,
                                     const OpenOptions& options);

/// Whether the bytes are an encrypted model or a tar archive.
bool is_container(const Bytes& bytes);
/// Opens the model in a container: an .mlmodel, or an archive of a package, of a compiled model or of an .mlmodel with
/// its weight files. Errors: those of age::open, read_tar and of opening the model.
Result<ModelFile> open_container(const std::string& path, const Bytes& bytes, const OpenOptions& options);

/// Decodes a specification file into `rep`. Checks that the model has a known type and no fields of newer
/// specifications.
Status decode_file(const Bytes& bytes, const OpenOptions& options, ModelFile::Rep& rep);
/// Checks the version of `message`, which has the given type. Error unsupported when the version is newer than the
/// newest known one and the message uses unknown fields. Otherwise returns a remark on the version, which is empty for
/// known versions.
Result<std::string> check_version(int version, const Bytes& message, std::string_view type);

}  // namespace moka::format
