#include "plan/packed_file.h"

#include <fcntl.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include "base/checksum.h"

namespace moka::plan {

namespace {

constexpr uint64_t kMagic = 0x4b4341504b4f4d0a;  // "\nMOKPACK"
constexpr uint32_t kVersion = 1;
constexpr size_t kAlignment = 64, kBehind = 64;  // bytes

struct Header {
  uint64_t magic;
  uint32_t version, count;
  uint64_t file_size, index_size, index_sum;
};
struct Place {
  uint64_t offset, size, sum, key_size;
};

size_t aligned(size_t n) { return (n + kAlignment - 1) / kAlignment * kAlignment; }

/// Reads values from the front of a byte range.
class Reader {
 public:
  explicit Reader(std::span<const std::byte> bytes) : rest_(bytes) {}
  template <class T>
  Status take(T& to) {
    if (rest_.size() < sizeof to) return too_short();
    std::memcpy(&to, rest_.data(), sizeof to);
    rest_ = rest_.subspan(sizeof to);
    return {};
  }
  Status take(uint64_t size, std::string& to) {
    if (rest_.size() < size) return too_short();
    to.assign(reinterpret_cast<const char*>(rest_.data()), static_cast<size_t>(size));
    rest_ = rest_.subspan(static_cast<size_t>(size));
    return {};
  }
  Status take_text(std::string& to) {
    uint64_t size = 0;
    MOKA_TRY(take(size));
    return take(size, to);
  }
  bool empty() const { return rest_.empty(); }

 private:
  static Status too_short() { return fail(ErrorCode::malformed, "its index ends too early"); }
  std::span<const std::byte> rest_;
};

template <class T>
void put(std::string& to, const T& value) {
  to.append(reinterpret_cast<const char*>(&value), sizeof value);
}
void put_text(std::string& to, std::string_view text) {
  put(to, uint64_t{text.size()});
  to += text;
}

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

Error io_error(const std::string& path, std::string_view what) {
  return fail(ErrorCode::io, "'", path, "': ", what, ": ", std::strerror(errno));
}

Status write_all(int file, const std::string& path, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::write(file, bytes.data(), std::min(bytes.size(), size_t{1} << 30));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return io_error(path, "writing");
    bytes = bytes.subspan(static_cast<size_t>(n));
  }
  return {};
}

Status write_new(const std::string& path, std::string_view front, std::span<const PackedPiece> pieces) {
  const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
  if (file < 0) return io_error(path, "making it");
  const std::byte zeros[kAlignment + kBehind] = {};
  auto all = [&]() -> Status {
    MOKA_TRY(write_all(file, path, bytes_of(front)));
    for (const PackedPiece& p : pieces) {
      MOKA_TRY(write_all(file, path, p.bytes));
      MOKA_TRY(write_all(file, path, std::span(zeros).first(aligned(p.bytes.size()) - p.bytes.size() + kBehind)));
    }
    return {};
  };
  Status status = all();
  if (::close(file) != 0 && status.ok()) status = io_error(path, "closing");
  return status;
}

}  // namespace

bool PackedFile::Entry::whole() const {
  read_ahead(bytes.data(), bytes.size());
  return checksum(bytes.span) == sum;
}

Result<PackedFile> parse_packed_file(const Bytes& file) {
  Header h{};
  Reader front(file.span);
  MOKA_TRY(front.take(h));
  if (h.magic != kMagic) return fail(ErrorCode::malformed, "it is not a file of packed weights");
  if (h.version != kVersion) return fail(ErrorCode::unsupported, "its version is ", h.version, ", not ", kVersion);
  if (h.file_size != file.size() || h.index_size > file.size() - sizeof h)
    return fail(ErrorCode::malformed, "it has ", file.size(), " bytes instead of ", h.file_size);
  const auto index = file.span.subspan(sizeof h, static_cast<size_t>(h.index_size));
  if (checksum(index) != h.index_sum) return fail(ErrorCode::malformed, "its index is damaged");
  PackedFile out;
  Reader reader(index);
  MOKA_TRY(reader.take_text(out.scope));
  MOKA_TRY(reader.take_text(out.model));
  for (uint32_t i = 0; i < h.count; i++) {
    Place p{};
    std::string key;
    MOKA_TRY(reader.take(p));
    MOKA_TRY(reader.take(p.key_size, key));
    if (p.offset % kAlignment != 0 || p.offset > file.size() || p.size > file.size() - p.offset ||
        file.size() - p.offset - p.size < kBehind)
      return fail(ErrorCode::malformed, "an entry lies outside of it");
    Bytes bytes = file.slice(static_cast<size_t>(p.offset), static_cast<size_t>(p.size));
    if (!out.entries.try_emplace(std::move(key), PackedFile::Entry{std::move(bytes), p.sum}).second)
      return fail(ErrorCode::malformed, "it has an entry twice");
  }
  if (!reader.empty()) return fail(ErrorCode::malformed, "its index is too long");
  return out;
}

Status write_packed_file(const std::string& path, std::string_view scope, std::string_view model,
                         std::span<const PackedPiece> pieces) {
  std::string index;
  put_text(index, scope);
  put_text(index, model);
  size_t size = sizeof(Header) + index.size();
  for (const PackedPiece& p : pieces) size += sizeof(Place) + p.key.size();
  const size_t index_size = size - sizeof(Header), begin = size = aligned(size);
  for (const PackedPiece& p : pieces) {
    put(index, Place{size, p.bytes.size(), checksum(p.bytes), p.key.size()});
    index += p.key;
    size += aligned(p.bytes.size()) + kBehind;
  }
  std::string front;
  put(front,
      Header{kMagic, kVersion, static_cast<uint32_t>(pieces.size()), size, index_size, checksum(bytes_of(index))});
  front += index;
  front.resize(begin);

  std::error_code error;
  if (const auto folder = std::filesystem::path(path).parent_path(); !folder.empty()) {
    std::filesystem::create_directories(folder, error);
    if (error) return fail(ErrorCode::io, "'", folder.string(), "': ", error.message());
  }
  static std::atomic<int> number{0};
  const std::string made = cat(path, ".", getpid(), ".", number++);
  Status status = write_new(made, front, pieces);
  if (status.ok() && std::rename(made.c_str(), path.c_str()) != 0) status = io_error(path, "replacing");
  if (!status.ok()) std::remove(made.c_str());
  return status;
}

}  // namespace moka::plan
