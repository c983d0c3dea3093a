// SPDX-License-Identifier: Apache-2.0
#include "format/write_files.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <system_error>

#include "base/replace_file.h"
#include "format/path_guard.h"

namespace moka::format {
namespace {

namespace fs = std::filesystem;

Status cannot_write(const std::string& path, const std::string& why) {
  return fail(ErrorCode::io, "'", path, "': cannot be written: ", why);
}

/// `shown`: the path in errors.
Status write_new(const fs::path& path, Rope content, const fs::path& shown) {
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  for (const Bytes& piece : content.pieces())
    out.write(piece.text().data(), static_cast<std::streamsize>(piece.size()));
  out.close();
  return out ? Status() : cannot_write(shown.string(), std::strerror(errno));
}

Status write_all(FileContents files, const fs::path& folder, const fs::path& shown) {
  for (auto& [name, content] : files) {
    const std::string inside = MOKA_TRY(normalise_inside(name));
    std::error_code ec;
    fs::create_directories((folder / inside).parent_path(), ec);
    if (ec) return cannot_write((shown / inside).string(), ec.message());
    MOKA_TRY(write_new(folder / inside, std::move(content), shown / inside));
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

/// Gives the folder `made` the name `path`. A folder that was there is at `made` afterwards, or gone.
Status put(const std::string& made, const std::string& path) {
  std::error_code ec;
  if (fs::exists(path, ec)) {
    if (::renameat2(AT_FDCWD, made.c_str(), AT_FDCWD, path.c_str(), RENAME_EXCHANGE) == 0) return {};
    // Not every file system exchanges names.
    const std::string old = beside(path);
    if (std::rename(path.c_str(), old.c_str()) != 0) return cannot_write(path, std::strerror(errno));
    if (std::rename(made.c_str(), path.c_str()) == 0) {
      fs::remove_all(old, ec);
      return {};
    }
    const int error = errno;
    fs::rename(old, path, ec);
    return cannot_write(path, std::strerror(error));
  }
  fs::rename(made, path, ec);
  return ec ? cannot_write(path, ec.message()) : Status();
}

}  // namespace

FileContents ropes_of(const std::map<std::string, Bytes>& files) {
  FileContents out;
  for (const auto& [name, bytes] : files) out.emplace(name, Rope(bytes));
  return out;
}

Status write_file(const std::string& path, Rope content) { return write_new(path, std::move(content), path); }

Status replace_file(Rope content, const std::string& path, OutputKind kind, bool force,
                    const std::vector<std::string>& inputs) {
  FileReplacement file = MOKA_TRY(FileReplacement::begin(path, kind, force, inputs));
  for (const Bytes& piece : content.pieces()) MOKA_TRY(file.add(piece.span));
  return file.finish(false);
}

Status replace_folder(FileContents files, const std::string& name, OutputKind kind, bool force,
                      const std::vector<std::string>& inputs) {
  MOKA_TRY(check_output(name, kind, force, inputs));
  const std::string path = MOKA_TRY(link_target(name)), made = beside(path);
  Status status = write_all(std::move(files), made, path);
  if (status.ok()) status = put(made, path);
  // After an exchange this is the old folder.
  std::error_code ignored;
  fs::remove_all(made, ignored);
  return status;
}

}  // namespace moka::format
