// SPDX-License-Identifier: Apache-2.0
#include "outputs.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <optional>
#include <set>

#include "io/io_error.h"
#include "text.h"
#include "usage_error.h"

namespace moka::cli {
namespace {

namespace fs = std::filesystem;

/// Caches are read and written, and replace only what Moka wrote.
const std::set<std::string> kCaches{"--kernels", "--rates", "--cache"};

bool exists(const std::string& path) {
  std::error_code ignored;
  return !path.empty() && fs::exists(path, ignored);
}

struct NamedInputs {
  std::mutex mutex;
  std::set<std::string> paths;
};

NamedInputs& named_inputs() {
  static NamedInputs all;
  return all;
}

/// The file or folder that an argument names: "FILE", "@FILE", "NAME=@FILE", "NAME=FILE,type=int64",
/// "@FILE.npz:member".
std::optional<std::string> named_input(const std::string& argument) {
  std::string path = argument;
  for (int step = 0;; ++step) {
    if (path.starts_with('@')) path.erase(0, 1);
    if (exists(path)) return path;
    for (const size_t end : {path.rfind(':'), path.find(',')})
      if (end != path.npos && exists(path.substr(0, end))) return path.substr(0, end);
    const size_t equals = path.find('=');
    if (equals == path.npos || step > 0) return std::nullopt;
    path.erase(0, equals + 1);
  }
}

/// Models and encrypted models get their folder made.
bool needs_folder(FileKind kind) {
  switch (kind) {
    case FileKind::specification:
    case FileKind::package:
    case FileKind::compiled_model:
    case FileKind::model:
    case FileKind::onnx:
    case FileKind::encrypted_model:
    case FileKind::folder: return false;
    default: return true;
  }
}

/// The nearest folder above `path` that exists must accept new names.
void check_place(const std::string& path, FileKind kind) {
  std::error_code ignored;
  const fs::file_status status = fs::status(path, ignored);
  const auto fail = [&](int error) { io::fail(path, "cannot be written: ", std::strerror(error)); };
  if (fs::exists(status) && !fs::is_directory(status)) {
    if (::access(path.c_str(), W_OK) != 0) fail(errno);
    if (!fs::is_regular_file(status)) return;
  }
  fs::path folder = fs::absolute(fs::path(path).lexically_normal(), ignored);
  folder = (folder.has_filename() ? folder : folder.parent_path()).parent_path();
  if (needs_folder(kind) && !fs::exists(folder, ignored)) fail(ENOENT);
  while (!fs::exists(folder, ignored) && folder.has_relative_path()) folder = folder.parent_path();
  if (!fs::is_directory(folder, ignored)) fail(ENOTDIR);
  if (::access(folder.c_str(), W_OK | X_OK) != 0) fail(errno);
}

}  // namespace

std::shared_ptr<Outputs> Outputs::of(Arguments app) {
  std::shared_ptr<Outputs> out(new Outputs(app));
  app.add_flag("--force", out->force_, "Replace also files of other kinds, and inputs of the same kind");
  return out;
}

Option Outputs::add_option(const std::string& names, std::string& to, std::vector<KindOfName> kinds,
                           const std::string& help) {
  declared_.push_back({names, &to, std::move(kinds)});
  return app_->add_option(names, to, help);
}

bool Outputs::is_declared(const Declared& d, const std::string& name) const {
  return fmt::format(",{},", d.names).find(fmt::format(",{},", name)) != std::string::npos;
}

void add_input(const std::string& path) {
  const std::lock_guard lock(named_inputs().mutex);
  named_inputs().paths.insert(path);
}

std::vector<std::string> Outputs::inputs() const {
  std::vector<std::string> out;
  if (!app_) return out;
  {
    const std::lock_guard lock(named_inputs().mutex);
    out.assign(named_inputs().paths.begin(), named_inputs().paths.end());
  }
  for (const auto& [name, value] : app_->given()) {
    const bool written =
        std::any_of(declared_.begin(), declared_.end(), [&](const Declared& d) { return is_declared(d, name); });
    if (written || kCaches.contains(name)) continue;
    if (auto path = named_input(value)) out.push_back(std::move(*path));
  }
  return out;
}

void Outputs::check(const std::string& path, FileKind kind) const {
  const auto refused = refused_output(path, kind, inputs());
  if (refused && !(force_ && refused->can_force))
    throw UsageError(refused->reason + (refused->can_force ? " (--force replaces it)" : ""));
  check_place(path, kind);
}

void Outputs::check() const {
  if (!app_) return;
  const auto given = app_->given();
  for (const Declared& d : declared_) {
    const bool is_given =
        std::any_of(given.begin(), given.end(), [&](const auto& g) { return is_declared(d, g.first); });
    if (!is_given || d.path->empty()) continue;
    for (const KindOfName& k : d.kinds) {
      if (!has_extension(without_trailing_slashes(*d.path), k.ending)) continue;
      check(*d.path, k.kind);
      break;
    }
  }
}

void Outputs::write(const fs::path& path, FileKind kind, std::span<const std::byte> content) const {
  check(path.string(), kind);
  write_file(path.string(), kind, content, overwrite());
}

void Outputs::write(const fs::path& path, FileKind kind, std::string_view text) const {
  write(path, kind, std::as_bytes(std::span(text)));
}

void Outputs::clear_place_of_cache(std::string path, const char* variable, FileKind kind) const {
  if (const char* value = std::getenv(variable); path.empty() && value != nullptr) path = value;
  if (path.empty() || path == "default" || path == "off") return;
  const auto refused = refused_output(path, kind, inputs());
  if (!refused) return;
  check(path, kind);
  fs::remove(path);
}

void Outputs::make_folder(const std::string& path) const {
  check(path, FileKind::folder);
  std::error_code error;
  fs::create_directories(path, error);
  if (error) io::fail(path, "expected a folder to write to: ", error.message());
}

}  // namespace moka::cli
