#include "format/path_guard.h"

#include <filesystem>
#include <system_error>

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

}  // namespace

Result<std::string> real_path(const std::string& path) {
  std::error_code e;
  fs::path real = fs::canonical(path, e);
  if (e == std::errc::no_such_file_or_directory || e == std::errc::not_a_directory)
    return fail(ErrorCode::not_found, "'", path, "' does not exist");
  if (e) return fail(ErrorCode::io, "cannot resolve '", path, "': ", e.message());
  return real.string();
}

Result<std::string> resolve_inside(const std::string& root, const std::string& base, std::string_view relative) {
  MOKA_TRY(check_form(relative));
  // First by name alone, so that nothing about files outside of the model can be learnt from the error.
  fs::path named = (fs::path(base) / relative).lexically_normal();
  if (!is_inside(root, named)) return leaves(relative);
  std::error_code e;
  fs::path real = fs::canonical(fs::path(base) / relative, e);
  if (e == std::errc::no_such_file_or_directory || e == std::errc::not_a_directory)
    return fail(ErrorCode::not_found, "the model refers to '", relative, "', which does not exist in '", base, "'");
  if (e) return fail(ErrorCode::io, "cannot resolve '", relative, "' in '", base, "': ", e.message());
  if (!is_inside(root, real)) return leaves(relative);
  return real.string();
}

Result<std::string> normalise_inside(std::string_view relative) {
  MOKA_TRY(check_form(relative));
  fs::path named = fs::path(relative).lexically_normal();
  if (named.begin() != named.end() && *named.begin() == "..") return leaves(relative);
  return named.generic_string();
}

}  // namespace moka::format
