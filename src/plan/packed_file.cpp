// SPDX-License-Identifier: Apache-2.0
#include "plan/packed_file.h"

#include <cstring>
#include <vector>

#include "base/checksum.h"
#include "base/replace_file.h"

namespace moka::plan {

namespace {

constexpr uint64_t kMagic = 0x4b4341504b4f4d0a;  // "\nMOKPACK"
constexpr uint32_t kVersion = 1;
constexpr size_t kPieceAlignment = 64, kBehind = 64;  // bytes

struct Header {
  uint64_t magic;
  uint32_t version, count;
  uint64_t file_size, index_size, index_sum;
};
struct PackedEntry {
  uint64_t offset, size, sum, key_size;
};

size_t aligned(size_t n) { return (n + kPieceAlignment - 1) / kPieceAlignment * kPieceAlignment; }

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
    PackedEntry p{};
    std::string key;
    MOKA_TRY(reader.take(p));
    MOKA_TRY(reader.take(p.key_size, key));
    if (p.offset % kPieceAlignment != 0 || p.offset > file.size() || p.size > file.size() - p.offset ||
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
  for (const PackedPiece& p : pieces) size += sizeof(PackedEntry) + p.key.size();
  const size_t index_size = size - sizeof(Header), begin = size = aligned(size);
  for (const PackedPiece& p : pieces) {
    put(index, PackedEntry{size, p.bytes.size(), checksum(p.bytes), p.key.size()});
    index += p.key;
    size += aligned(p.bytes.size()) + kBehind;
  }
  std::string front;
  put(front,
      Header{kMagic, kVersion, static_cast<uint32_t>(pieces.size()), size, index_size, checksum(bytes_of(index))});
  front += index;
  front.resize(begin);

  const std::byte zeros[kPieceAlignment + kBehind] = {};
  std::vector<std::span<const std::byte>> parts{bytes_of(front)};
  for (const PackedPiece& p : pieces) {
    parts.push_back(p.bytes);
    parts.push_back(std::span(zeros).first(aligned(p.bytes.size()) - p.bytes.size() + kBehind));
  }
  return replace_file(path, OutputKind::packed_weights, parts,
                      false);  // the checksums find what a crash of the machine damages
}

}  // namespace moka::plan
