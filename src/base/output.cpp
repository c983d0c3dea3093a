// SPDX-License-Identifier: Apache-2.0
#include "base/output.h"

#include <sys/stat.h>

#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>

namespace moka {
namespace {

namespace fs = std::filesystem;

/// The file system's number of a file or folder.
struct Identity {
  dev_t device = 0;
  ino_t number = 0;
  bool operator==(const Identity&) const = default;
};

std::optional<Identity> identity_of(const std::string& path) {
  struct stat s {};
  if (::stat(path.c_str(), &s) != 0 || !(S_ISREG(s.st_mode) || S_ISDIR(s.st_mode))) return std::nullopt;
  return Identity{s.st_dev, s.st_ino};
}

/// The folders above `path`, without symbolic links, from the nearest one on.
std::vector<std::string> folders_above(const std::string& path) {
  std::error_code error;
  fs::path at = fs::weakly_canonical(fs::absolute(path, error), error);
  if (!at.has_filename()) at = at.parent_path();
  std::vector<std::string> out;
  while (!error && at.has_relative_path()) out.push_back((at = at.parent_path()).string());
  return out;
}

std::optional<Refusal> refused_place(const std::string& path, OutputKind kind, const std::vector<std::string>& inputs) {
  const auto own = identity_of(path);
  for (const std::string& input : inputs)
    if (own && identity_of(input) == own)
      return Refusal{cat("'", path, "' is the input '", input, "' itself and is not replaced"),
                     holds(path, kind) && !(kind == OutputKind::folder && holds(path, OutputKind::model))};
  for (const std::string& folder : folders_above(path))
    if (holds(folder, OutputKind::package) || holds(folder, OutputKind::compiled_model))
      return Refusal{cat("'", path, "': lies in the model '", folder, "', which is not changed")};
  return std::nullopt;
}

std::optional<Refusal> refused_folder(const std::string& path, OutputKind kind,
                                      const std::vector<std::string>& inputs) {
  if (kind == OutputKind::folder) return std::nullopt;
  const auto own = identity_of(path);
  for (const std::string& input : inputs)
    for (const std::string& folder : folders_above(input))
      if (own && identity_of(folder) == own)
        return Refusal{cat("'", path, "': contains the input '", input, "' and is not replaced"),
                       holds(path, OutputKind::model)};
  std::error_code error;
  if (fs::is_empty(path, error) || holds(path, kind)) return std::nullopt;
  if (holds(path, OutputKind::model))
    return Refusal{cat("'", path, "': expected a new path or ", describe(kind), ", got ", described_content(path),
                       ", which is not replaced")};
  return Refusal{cat("'", path, "': expected a new path, ", describe(kind),
                     " or an empty folder, got a folder that holds other files and is never replaced"),
                 false};
}

}  // namespace

int named_descriptor(const std::string& path) {
  if (path == "/dev/stdout") return 1;
  if (path == "/dev/stderr") return 2;
  for (const std::string_view folder : {"/dev/fd/", "/proc/self/fd/"}) {
    if (!path.starts_with(folder)) continue;
    int out = -1;
    const char* end = path.data() + path.size();
    const auto [at, error] = std::from_chars(path.data() + folder.size(), end, out);
    if (error == std::errc() && at == end) return out;
  }
  return -1;
}

std::optional<Refusal> refusal(const std::string& path, OutputKind kind, const std::vector<std::string>& inputs) {
  const bool folder = is_folder(kind);
  if (path.empty()) return Refusal{"expected a path, got none", false};
  if (!folder && named_descriptor(path) >= 0) return std::nullopt;
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (!fs::status_known(status) || status.type() == fs::file_type::none)
    return Refusal{cat("'", path, "': cannot be written: ", error.message()), false};
  if (auto refused = refused_place(path, kind, inputs)) return refused;
  switch (status.type()) {
    case fs::file_type::not_found: return std::nullopt;
    case fs::file_type::directory:
      if (folder || kind == OutputKind::model) return refused_folder(path, kind, inputs);
      return Refusal{cat("'", path, "': expected the path of a file, got a folder"), false};
    case fs::file_type::character:
    case fs::file_type::fifo:
    case fs::file_type::socket:
      if (!folder) return std::nullopt;
      [[fallthrough]];
    default:
      if (folder) return Refusal{cat("'", path, "': expected the path of a folder, got a file"), false};
  }
  if (status.type() == fs::file_type::regular) {
    if (fs::file_size(path, error) == 0) return std::nullopt;
    if (kind == OutputKind::identity)
      return Refusal{cat("'", path, "' exists already and is not replaced: a key that is lost opens no model again")};
    if (holds(path, kind)) return std::nullopt;
  }
  return Refusal{cat("'", path, "': expected a new path or ", describe(kind), ", got ", described_content(path),
                     ", which is not replaced")};
}

Status check_output(const std::string& path, OutputKind kind, bool force, const std::vector<std::string>& inputs) {
  const auto refused = refusal(path, kind, inputs);
  if (!refused || (force && refused->can_force)) return {};
  return fail(ErrorCode::invalid_argument, refused->reason);
}

}  // namespace moka
