#include "format/write_files.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <system_error>

#include "base/replace_file.h"
#include "format/path_guard.h"

namespace moka::format {
namespace {

namespace fs = std::filesystem;

Status make_folder(const fs::path& folder) {
  std::error_code ec;
  if (!folder.empty()) fs::create_directories(folder, ec);
  if (ec) return fail(ErrorCode::io, "'", folder.string(), "': cannot be made: ", ec.message());
  return {};
}

Status write_all(FileContents files, const fs::path& folder) {
  for (auto& [name, content] : files) {
    const fs::path path = folder / MOKA_TRY(normalise_inside(name));
    MOKA_TRY(make_folder(path.parent_path()));
    MOKA_TRY(write_file(path.string(), std::move(content)));
  }
  return {};
}

/// An unused name in the folder of `path`.
std::string beside(const std::string& path) {
  const fs::path whole = fs::path(path).lexically_normal();
  const std::string stem = (whole.has_filename() ? whole : whole.parent_path()).string();
  std::error_code ec;
  for (int i = 0;; ++i)
    if (std::string name = cat(stem, ".", getpid(), "-", i, ".tmp"); !fs::exists(name, ec)) return name;
}

Status move_to(const std::string& from, const std::string& to) {
  std::error_code ec;
  fs::rename(from, to, ec);
  if (ec) return fail(ErrorCode::io, "'", from, "': cannot be moved to '", to, "': ", ec.message());
  return {};
}

}  // namespace

Status write_file(const std::string& path, Rope content) {
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  for (const Bytes& piece : content.pieces())
    out.write(piece.text().data(), static_cast<std::streamsize>(piece.size()));
  out.close();
  if (!out) return fail(ErrorCode::io, "'", path, "': cannot be written: ", std::strerror(errno));
  return {};
}

Status write_folder(FileContents files, const std::string& folder) {
  std::error_code ec;
  if (fs::exists(folder, ec) && !(fs::is_directory(folder, ec) && fs::is_empty(folder, ec)))
    return fail(ErrorCode::invalid_argument, "'", folder,
                "': expected a new or empty folder, got one that holds files");
  Status status = write_all(std::move(files), folder);
  if (!status.ok()) fs::remove_all(folder, ec);
  return status;
}

Status write_folder(const std::map<std::string, Bytes>& files, const std::string& folder) {
  FileContents ropes;
  for (const auto& [name, bytes] : files) ropes.emplace(name, Rope(bytes));
  return write_folder(std::move(ropes), folder);
}

Status replace_file(Rope content, const std::string& path) {
  FileReplacement file = MOKA_TRY(FileReplacement::begin(path));
  for (const Bytes& piece : content.pieces()) MOKA_TRY(file.add(piece.span));
  return file.finish(false);
}

Status replace_package(FileContents files, const std::string& name) {
  const std::string path = MOKA_TRY(link_target(name));
  std::error_code ec;
  const bool exists = fs::exists(path, ec);
  if (exists && !fs::is_directory(path, ec))
    return fail(ErrorCode::invalid_argument, "'", path, "': expected the path of a folder, got a file");
  if (exists && !fs::is_empty(path, ec) && !fs::exists(fs::path(path) / "Manifest.json", ec))
    return fail(ErrorCode::invalid_argument, "'", path,
                "': expected a package, or a new or empty folder, got a folder that holds other files");
  const std::string made = beside(path);
  MOKA_TRY(write_folder(std::move(files), made));
  if (!exists) return move_to(made, path);
  const std::string old = beside(path);
  MOKA_TRY(move_to(path, old));
  if (Status moved = move_to(made, path); !moved.ok()) {
    fs::rename(old, path, ec);
    return moved;
  }
  fs::remove_all(old, ec);
  return {};
}

}  // namespace moka::format
