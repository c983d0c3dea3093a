// SPDX-License-Identifier: Apache-2.0
#include "moka/encryption.h"

#include <filesystem>

#include "api/internal.h"
#include "base/lazy_memory.h"
#include "base/replace_file.h"
#include "boundary/path.h"
#include "format/age/age.h"
#include "format/archive/tar.h"
#include "format/path_guard.h"
#include "format/write_files.h"

namespace moka {
namespace {

namespace fs = std::filesystem;
namespace age = format::age;

age::Lock lock_of(const EncryptionOptions& options) {
  constexpr unsigned most_work = 22;
  if (options.work_factor < 1 || options.work_factor > most_work)
    throw Exception(ErrorKind::invalid_argument, cat("work_factor: expected 1 to 22, got ", options.work_factor));
  age::Lock lock;
  lock.passphrase = options.passphrase;
  lock.work_factor = options.work_factor;
  for (const std::string& text : options.recipients) {
    auto keys = age::read_recipients(text);
    if (!keys.ok()) api::raise(fail(ErrorCode::invalid_argument, "recipient: ", keys.error().to_string()));
    lock.recipients.insert(lock.recipients.end(), keys->begin(), keys->end());
  }
  return lock;
}

/// The content of the file in which a model is encrypted.
format::Rope content_of(const std::string& path) {
  if (!fs::is_directory(path)) return format::Rope(api::unwrap(map_file(path)));
  const fs::path root = api::unwrap(format::real_path(path));
  format::FileContents files;
  for (auto it = fs::recursive_directory_iterator(root); it != fs::recursive_directory_iterator(); ++it) {
    if (!it->is_regular_file()) continue;
    const std::string name = it->path().lexically_relative(root).string();
    const std::string inside = api::unwrap(format::resolve_inside(root.string(), root.string(), name));
    files[(root.filename() / name).string()] = format::Rope(api::unwrap(map_file(inside)));
  }
  return format::write_tar(files);
}

age::KeySource keys_for(const std::string& path, const KeySource& key) {
  return [path, source = api::key_source(key)](age::Wanted wanted) {
    return format::key_of(source, path, wanted == age::Wanted::passphrase);
  };
}

/// Sink functions cannot read memory of map_blocks that is not there yet, because system calls cannot.
format::Rope ready(const Bytes& bytes) {
  read_ahead(bytes.data(), bytes.size());
  return format::Rope(bytes);
}

class ReaderSource : public BlockSource {
 public:
  explicit ReaderSource(const ModelReader& reader) : reader_(reader) {}
  size_t size() const override { return reader_.size; }
  bool fill(size_t index, std::span<std::byte> to) const override {
    try {
      reader_.read(index * block_size, to);
    } catch (...) {
      thrown = std::current_exception();
      return false;
    }
    return true;
  }
  mutable std::exception_ptr thrown;

 private:
  const ModelReader& reader_;
};

}  // namespace

namespace api {

format::KeySource key_source(const KeySource& source) {
  if (!source) return nullptr;
  return [source](const std::string& model, bool passphrase) -> Result<std::string> {
    return source({model, passphrase});
  };
}

Bytes read_model(const ModelReader& reader) {
  if (!reader.read) raise(fail(ErrorCode::invalid_argument, "the reader of a model has no function"));
  const auto source = std::make_shared<ReaderSource>(reader);
  Result<Bytes> bytes = map_blocks(source, true);
  if (source->thrown) std::rethrow_exception(source->thrown);
  return unwrap(std::move(bytes));
}

}  // namespace api

KeyPair generate_key_pair() {
  age::KeyPair pair = api::unwrap(age::new_key_pair());
  return {std::move(pair.identity), std::move(pair.recipient)};
}

std::vector<std::string> recipients_of(const std::string& identities) {
  std::vector<std::string> out;
  for (const age::Secret& identity : api::unwrap(age::read_identities(identities)))
    out.push_back(age::recipient_of(identity));
  return out;
}

void encrypt_model(const std::filesystem::path& path, const std::filesystem::path& destination,
                   const EncryptionOptions& options) {
  const age::Lock lock = lock_of(options);
  const std::string trimmed = boundary::native(path.has_filename() ? path : path.parent_path());
  const format::ModelFile model =
      api::unwrap(format::open_model(trimmed, {nullptr, true, [](const std::string&, bool) -> Result<std::string> {
                                                 return fail(ErrorCode::invalid_argument, "it is encrypted already");
                                               }}));
  const format::Rope content = content_of(trimmed);
  FileReplacement file = api::unwrap(FileReplacement::begin(boundary::native(destination), OutputKind::encrypted_model,
                                                            options.overwrite == Overwrite::any, {trimmed}));
  uint64_t done = 0;
  api::unwrap(age::encrypt(content, lock, [&](std::span<const std::byte> part) {
    done += part.size();
    if (options.progress) options.progress(std::min<uint64_t>(done, content.size()), content.size());
    return file.add(part);
  }));
  api::unwrap(file.finish(false));
}

void decrypt_model(const std::filesystem::path& from, const std::filesystem::path& to, const KeySource& key,
                   Overwrite overwrite) {
  const std::string &path = boundary::native(from), &destination = boundary::native(to);
  const Bytes file = api::unwrap(map_file(path));
  if (!age::is_encrypted(file)) api::raise(fail(ErrorCode::invalid_argument, "'", path, "' is not encrypted"));
  const bool force = overwrite == Overwrite::any;
  api::unwrap(check_output(destination, OutputKind::model, force, {path}));
  Result<Bytes> opened = age::open(file, keys_for(path, key));
  if (!opened.ok()) api::raise(std::move(opened).error().in(cat("'", path, "'")));
  if (!format::is_tar(*opened))
    return api::unwrap(format::replace_file(ready(*opened), destination, OutputKind::specification, force, {path}));
  // The archive holds one folder, whose name becomes that of the destination.
  const auto files = api::unwrap(format::read_tar(*opened));
  format::FileContents contents;
  for (const auto& [name, bytes] : files) {
    const size_t slash = name.find('/');
    const std::string top = files.begin()->first.substr(0, slash == std::string::npos ? 0 : slash + 1);
    const bool one_folder = slash != std::string::npos && files.rbegin()->first.starts_with(top);
    contents[one_folder ? name.substr(slash + 1) : name] = ready(bytes);
  }
  const OutputKind kind = contents.contains("Manifest.json") ? OutputKind::package : OutputKind::compiled_model;
  api::unwrap(format::replace_folder(std::move(contents), destination, kind, force, {path}));
}

std::vector<std::byte> encrypt(std::span<const std::byte> bytes, const EncryptionOptions& options) {
  std::vector<std::byte> out;
  api::unwrap(age::encrypt(format::Rope(Bytes{bytes, nullptr}), lock_of(options), [&](auto part) -> Status {
    out.insert(out.end(), part.begin(), part.end());
    return {};
  }));
  return out;
}

void set_key_source(KeySource source) { format::set_default_key_source(api::key_source(source)); }
std::string read_identity_file(const std::filesystem::path& path) {
  return api::unwrap(format::read_identity_file(boundary::native(path)));
}
std::string read_passphrase_file(const std::filesystem::path& path) {
  return api::unwrap(format::read_passphrase_file(boundary::native(path)));
}

}  // namespace moka
