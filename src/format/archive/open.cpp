// SPDX-License-Identifier: Apache-2.0
#include "format/age/age.h"
#include "format/archive/tar.h"
#include "format/model_file_rep.h"

namespace moka::format {
namespace {

/// The folder that the model is in: the one nearest to the root that has a file `mark`.
const std::string* nearest(const std::map<std::string, Bytes>& files, std::string_view mark) {
  const std::string* found = nullptr;
  for (const auto& [name, content] : files) {
    const bool matches = name == mark || (name.ends_with(mark) && name[name.size() - mark.size() - 1] == '/');
    if (matches && (found == nullptr || name.size() < found->size())) found = &name;
  }
  return found;
}

std::map<std::string, Bytes> below(const std::map<std::string, Bytes>& files, const std::string& file) {
  const std::string folder = file.substr(0, file.rfind('/') + 1);
  std::map<std::string, Bytes> out;
  for (const auto& [name, content] : files)
    if (name.starts_with(folder)) out.emplace(name.substr(folder.size()), content);
  return out;
}

Result<ModelFile> open_files(const std::string& path, const std::map<std::string, Bytes>& files,
                             const OpenOptions& options) {
  if (const std::string* manifest = nearest(files, "Manifest.json"))
    return open_mlpackage(path, ModelFolder::in_memory(below(files, *manifest)), options);
  if (const std::string* data = nearest(files, "coremldata.bin"))
    return open_mlmodelc(path, ModelFolder::in_memory(below(files, *data)), options);
  const std::string* model = nullptr;
  for (const auto& [name, content] : files) {
    if (!name.ends_with(".mlmodel")) continue;
    if (model != nullptr)
      return fail(ErrorCode::malformed, place_of(path), ": the archive holds '", *model, "' and '", name,
                  "', expected one model");
    model = &name;
  }
  if (model == nullptr)
    return fail(
        ErrorCode::malformed, place_of(path), ": the archive of ", files.size(),
        " files holds no model: neither Manifest.json (.mlpackage) nor coremldata.bin (.mlmodelc) nor an .mlmodel");
  std::map<std::string, Bytes> beside = below(files, *model);
  const Bytes specification = files.at(*model);
  return open_specification(path, specification, WeightStore::in_memory(std::move(beside)), options);
}

}  // namespace

Result<ModelFile> open_specification(const std::string& path, Bytes bytes, WeightStore weights,
                                     const OpenOptions& options) {
  auto rep = std::make_shared<ModelFile::Rep>();
  rep->path = path;
  rep->raw = std::move(bytes);
  MOKA_TRY_IN(decode_file(rep->raw, options, *rep), place_of(path));
  rep->weights = std::move(weights);
  return ModelFile(std::move(rep));
}

std::string place_of(const std::string& path) { return path.empty() ? "model from memory" : cat("'", path, "'"); }

bool is_container(const Bytes& bytes) { return age::is_encrypted(bytes) || is_tar(bytes); }

Result<ModelFile> open_container(const std::string& path, const Bytes& bytes, const OpenOptions& options) {
  const bool encrypted = age::is_encrypted(bytes);
  const auto keys = [&](age::Wanted wanted) { return key_of(options.keys, path, wanted == age::Wanted::passphrase); };
  const Bytes plain = encrypted ? MOKA_TRY_IN(age::open(bytes, keys, options.budget.get()), place_of(path)) : bytes;
  const ModelFile opened =
      MOKA_TRY(is_tar(plain) ? open_files(path, MOKA_TRY_IN(read_tar(plain), place_of(path)), options)
                             : open_specification(path, plain, {}, options));
  return encrypted ? opened.as_encrypted() : opened;
}

}  // namespace moka::format
