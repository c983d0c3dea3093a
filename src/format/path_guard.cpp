// SPDX-License-Identifier: Apache-2.0
#include "format/path_guard.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <optional>

namespace moka::format {
namespace {

namespace fs = std::filesystem;

bool is_inside(const fs::path& root, const fs::path& path) {
  auto r = root.begin();
  auto p = path.begin();
  for (; r != root.end(); ++r, ++p)
    if (p == path.end() || *p != *r) return false;
  return true;
}

/// Whether `folder` is in a snapshot of a repository in Hugging Face's cache, and `file` is a blob of that repository.
/// The files of a snapshot are symbolic links to blobs:
/// models--owner--name/snapshots/revision/x.mlpackage/Manifest.json leads to models--owner--name/blobs/digest.
bool is_blob_of(const fs::path& folder, const fs::path& file) {
  const fs::path blobs = file.parent_path(), repository = blobs.parent_path();
  return blobs.filename() == "blobs" && repository.filename().string().find("--") != std::string::npos &&
         is_inside(repository / "snapshots", folder);
}

Error leaves(std::string_view relative) {
  return fail(ErrorCode::malformed, "the path '", relative, "' leads outside of the model");
}

Status check_form(std::string_view relative) {
  if (relative.empty()) return fail(ErrorCode::malformed, "a path inside the model is empty");
  if (relative.find('\0') != std::string_view::npos)
    return fail(ErrorCode::malformed, "a path inside the model holds a zero byte");
  if (relative.front() == '/') return fail(ErrorCode::malformed, "the path '", relative, "' is absolute");
  return {};
}

/// The path without symbolic links; nullopt, with errno set, when it does not exist. Not fs::canonical: libraries in
/// the same process bring their own std::filesystem (PyTorch does), whose error codes do not equal std::errc here.
std::optional<std::string> canonical(const std::string& path) {
  const std::unique_ptr<char, decltype(&std::free)> real(::realpath(path.c_str(), nullptr), &std::free);
  if (real == nullptr) return std::nullopt;
  return std::string(real.get());
}

bool is_absent(int error) { return error == ENOENT || error == ENOTDIR; }

}  // namespace

Result<std::string> real_path(const std::string& path) {
  if (auto real = canonical(path)) return *std::move(real);
  const int e = errno;
  if (is_absent(e)) return fail(ErrorCode::not_found, "'", path, "' does not exist");
  return fail(ErrorCode::io, "cannot resolve '", path, "': ", std::strerror(e));
}

Result<std::string> folder_of(const std::string& path) {
  const fs::path parent = fs::path(path).parent_path();
  const fs::path named = MOKA_TRY(real_path(parent.empty() ? "." : parent.string()));
  const fs::path file = MOKA_TRY(real_path(path));
  return (is_blob_of(named, file) ? named : file.parent_path()).string();
}

Result<std::string> resolve_inside(const std::string& root, const std::string& base, std::string_view relative) {
  MOKA_TRY(check_form(relative));
  // Checks the name first, so that the error reveals nothing about files outside the model.
  fs::path named = (fs::path(base) / relative).lexically_normal();
  if (!is_inside(root, named)) return leaves(relative);
  auto real = canonical((fs::path(base) / relative).string());
  const int e = errno;
  if (!real && is_absent(e))
    return fail(ErrorCode::not_found, "the model refers to '", relative, "', which does not exist in '", base, "'");
  if (!real) return fail(ErrorCode::io, "cannot resolve '", relative, "' in '", base, "': ", std::strerror(e));
  if (!is_inside(root, *real) && !is_blob_of(root, *real))
    return fail(ErrorCode::malformed, "the symbolic link '", relative,
                "' leads outside of the model; copy the model with the files that its links lead to (cp -rL)");
  return *std::move(real);
}

Result<std::string> normalise_inside(std::string_view relative) {
  MOKA_TRY(check_form(relative));
  fs::path named = fs::path(relative).lexically_normal();
  if (named.begin() != named.end() && *named.begin() == "..") return leaves(relative);
  return named.generic_string();
}

}  // namespace moka::format
