// SPDX-License-Identifier: Apache-2.0
#include "format/model_folder.h"

#include <filesystem>
#include <system_error>

#include "format/path_guard.h"

namespace moka::format {

namespace fs = std::filesystem;

Result<ModelFolder> ModelFolder::on_disk(const std::string& path) {
  ModelFolder out;
  out.root_ = MOKA_TRY(real_path(path));
  return out;
}

ModelFolder ModelFolder::in_memory(std::map<std::string, Bytes> files) {
  ModelFolder out;
  out.files_ = std::make_shared<std::map<std::string, Bytes>>(std::move(files));
  return out;
}

Result<std::string> ModelFolder::resolve(const std::string& base, std::string_view relative) const {
  if (files_ == nullptr) return resolve_inside(root_, base, relative);
  if (relative.empty() || relative.starts_with('/')) return normalise_inside(relative);  // the error
  std::string place = MOKA_TRY(normalise_inside(base.empty() ? std::string(relative) : cat(base, "/", relative)));
  while (place.ends_with('/')) place.pop_back();
  if (files_->count(place) == 0 && !is_folder(place))
    return fail(ErrorCode::not_found, "the model refers to '", relative, "', which does not exist in it");
  return place;
}

bool ModelFolder::is_folder(const std::string& place) const {
  if (files_ == nullptr) {
    std::error_code error;
    return fs::is_directory(place, error);
  }
  const std::string inside = place + "/";
  const auto it = files_->lower_bound(inside);
  return place == "." || (it != files_->end() && it->first.starts_with(inside));
}

Result<Bytes> ModelFolder::read(const std::string& place) const {
  if (files_ == nullptr) return map_file(place);
  const auto it = files_->find(place);
  if (it == files_->end()) return fail(ErrorCode::not_found, "'", place, "' is not a file of the model");
  return it->second;
}

std::string ModelFolder::parent(const std::string& place) { return fs::path(place).parent_path().string(); }

}  // namespace moka::format
