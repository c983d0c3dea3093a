// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "arguments.h"
#include "moka/output.h"

namespace moka::cli {

/// The kind of an output whose name ends so; "" for any other name.
struct KindOfName {
  std::string_view ending;
  FileKind kind;
};

/// What a command writes, and its option --force: the rule of docs/writing.md. Every existing file or folder that the
/// command line names elsewhere is an input, except caches, and so are the files that inputs name (add_input).
class Outputs {
 public:
  /// Adds --force.
  static std::shared_ptr<Outputs> of(Arguments app);
  /// Outputs without a command know no input and force nothing.
  Outputs() = default;
  /// Adds an option or a positional argument that names what is written. Names that end with none of `kinds` are left
  /// to the command.
  Option add_option(const std::string& names, std::string& to, std::vector<KindOfName> kinds, const std::string& help);

  /// Throws UsageError for the first given option whose path may not be written. run() calls it before the command.
  void check() const;
  /// The same for a path that no option names. IoError: the folder of a file does not exist or is protected.
  void check(const std::string& path, FileKind kind) const;
  void write(const std::filesystem::path& path, FileKind kind, std::span<const std::byte> content) const;
  void write(const std::filesystem::path& path, FileKind kind, std::string_view text) const;
  /// Lets the library write a cache. `path`: as in ModelConfiguration::rates; `variable`: of the environment, used
  /// where it is empty. With --force a file of another kind is removed.
  void clear_place_of_cache(std::string path, const char* variable, FileKind kind) const;
  /// Makes a folder for files. Throws UsageError, IoError.
  void make_folder(const std::string& path) const;
  Overwrite overwrite() const { return force_ ? Overwrite::any : Overwrite::own_kind; }

 private:
  struct Declared {
    std::string names;  ///< "-o,--out", "OUT"
    const std::string* path;
    std::vector<KindOfName> kinds;
  };
  explicit Outputs(Arguments app) : app_(app) {}
  bool is_declared(const Declared& d, const std::string& name) const;
  std::vector<std::string> inputs() const;

  std::optional<Arguments> app_;
  std::vector<Declared> declared_;
  bool force_ = false;
};

/// Adds a file that an input names, as a row of a table does, to the inputs of all commands of this process.
void add_input(const std::string& path);

inline constexpr KindOfName kSpecificationName{".mlmodel", FileKind::specification};
inline constexpr KindOfName kPackageName{".mlpackage", FileKind::package};

}  // namespace moka::cli
