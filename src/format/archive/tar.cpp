// SPDX-License-Identifier: Apache-2.0
#include "format/archive/tar.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <set>

#include "format/path_guard.h"

namespace moka::format {
namespace {

constexpr size_t kRecord = 512, kMostFiles = 65536, kMostExtra = size_t{1} << 20;

struct Field {
  size_t at, size;
};
constexpr Field kName{0, 100}, kMode{100, 8}, kOwner{108, 8}, kGroup{116, 8}, kSize{124, 12}, kTime{136, 12},
    kSum{148, 8}, kMagic{257, 8}, kPrefix{345, 155};
constexpr size_t kType = 156;

std::string_view text_of(std::string_view record, Field f) {
  const std::string_view whole = record.substr(f.at, f.size);
  return whole.substr(0, whole.find('\0'));
}

uint64_t sum_of(std::string_view record) {
  uint64_t sum = 0;
  for (size_t i = 0; i < kRecord; ++i) {
    const bool blank = i >= kSum.at && i < kSum.at + kSum.size;
    sum += blank ? ' ' : static_cast<unsigned char>(record[i]);
  }
  return sum;
}

/// Reads an octal number, or the binary form that GNU tar uses for sizes above 8 GiB.
bool read_number(std::string_view field, uint64_t& out) {
  out = 0;
  if (!field.empty() && static_cast<unsigned char>(field[0]) == 0x80) {
    for (const char c : field.substr(1)) {
      if (out >> 55 != 0) return false;
      out = out << 8 | static_cast<unsigned char>(c);
    }
    return true;
  }
  const size_t first = field.find_first_not_of(' ');
  if (first == std::string_view::npos) return false;
  field = field.substr(first);
  field = field.substr(0, field.find_first_of(std::string_view(" \0", 2)));
  const auto [end, error] = std::from_chars(field.data(), field.data() + field.size(), out, 8);
  return error == std::errc() && end == field.data() + field.size();
}

bool is_header(std::string_view record) {
  uint64_t sum = 0;
  return record.size() >= kRecord && text_of(record, kMagic).starts_with("ustar") &&
         read_number(record.substr(kSum.at, kSum.size), sum) && sum == sum_of(record);
}

Error bad(size_t at, std::string_view what) { return fail(ErrorCode::malformed, "tar archive, byte ", at, ": ", what); }

/// What a pax header says about the file after it.
struct Extra {
  std::string path;
  uint64_t size = 0;
  bool has_size = false;
};

Status read_pax(std::string_view text, size_t at, Extra& out) {
  while (!text.empty()) {
    size_t length = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), length);
    const auto digits = static_cast<size_t>(end - text.data());
    if (error != std::errc() || length > text.size() || length < digits + 3 || text[digits] != ' ' ||
        text[length - 1] != '\n')
      return bad(at, "a pax record has the wrong length");
    const std::string_view record = text.substr(digits + 1, length - digits - 2);
    const size_t equal = record.find('=');
    if (equal == std::string_view::npos) return bad(at, "a pax record has no value");
    const std::string_view key = record.substr(0, equal), value = record.substr(equal + 1);
    if (key.starts_with("GNU.sparse"))
      return fail(ErrorCode::unsupported, "tar archive, byte ", at, ": sparse files are not supported");
    if (key == "path") out.path = value;
    if (key == "size") {
      const auto [stop, wrong] = std::from_chars(value.data(), value.data() + value.size(), out.size);
      if (wrong != std::errc() || stop != value.data() + value.size()) return bad(at, "a pax size is not a number");
      out.has_size = true;
    }
    text.remove_prefix(length);
  }
  return {};
}

void put(std::string& record, Field f, std::string_view text) { text.copy(record.data() + f.at, f.size); }

void put_number(std::string& record, Field f, uint64_t value) {
  std::string digits(f.size - 1, '0');
  for (size_t i = digits.size(); i > 0; --i, value >>= 3) digits[i - 1] = static_cast<char>('0' + (value & 7));
  put(record, f, digits);
}

std::string header(std::string_view name, std::string_view prefix, uint64_t size, char type) {
  constexpr uint64_t file_mode = 0644, folder_mode = 0755;
  std::string record(kRecord, '\0');
  put(record, kName, name);
  put(record, kPrefix, prefix);
  put_number(record, kMode, type == '5' ? folder_mode : file_mode);
  put_number(record, kOwner, 0);
  put_number(record, kGroup, 0);
  put_number(record, kSize, size);
  put_number(record, kTime, 0);
  record[kType] = type;
  put(record, kMagic, std::string_view("ustar\00000", 8));
  put_number(record, {kSum.at, kSum.size - 1}, sum_of(record));
  record[kSum.at + kSum.size - 1] = ' ';
  return record;
}

std::string padding(uint64_t size) { return std::string((kRecord - size % kRecord) % kRecord, '\0'); }

std::string pax_record(std::string_view key, std::string_view value) {
  size_t length = key.size() + value.size() + 3;
  while (std::to_string(length).size() + key.size() + value.size() + 3 != length)
    length = std::to_string(length).size() + key.size() + value.size() + 3;
  return cat(length, " ", key, "=", value, "\n");
}

/// The records before a file's content.
std::string headers(const std::string& name, uint64_t size, char type) {
  constexpr uint64_t largest = uint64_t{1} << 33;
  const bool fits = size < largest;
  if (name.size() <= kName.size && fits) return header(name, {}, size, type);
  std::string pax;
  if (name.size() > kName.size) pax += pax_record("path", name);
  if (!fits) pax += pax_record("size", std::to_string(size));
  return header("pax", {}, pax.size(), 'x') + pax + padding(pax.size()) +
         header(name.substr(0, kName.size), {}, fits ? size : 0, type);
}

}  // namespace

bool is_tar(const Bytes& bytes) { return is_header(bytes.text().substr(0, kRecord)); }

Result<std::map<std::string, Bytes>> read_tar(const Bytes& archive) {
  std::map<std::string, Bytes> out;
  Extra extra;
  for (size_t at = 0;;) {
    if (archive.size() - at < kRecord) return bad(at, "the archive is cut off");
    const std::string_view record = archive.text().substr(at, kRecord);
    if (record.find_first_not_of('\0') == std::string_view::npos) return out;
    if (!is_header(record)) return bad(at, "expected the header of a file");
    uint64_t size = 0;
    if (!read_number(record.substr(kSize.at, kSize.size), size)) return bad(at, "the size of a file is not a number");
    const char type = record[kType];
    const bool is_file = type == '0' || type == '\0' || type == '7';
    if (extra.has_size && is_file) size = extra.size;
    const size_t begin = at + kRecord;
    if (size > archive.size() - begin) return bad(at, "a file ends after the archive");
    const Bytes content = archive.slice(begin, size);
    at = begin + size;
    at += std::min((kRecord - size % kRecord) % kRecord, archive.size() - at);
    if (type == 'x' || type == 'g' || type == 'L') {
      if (size > kMostExtra) return bad(begin, "an extended header is too large");
      if (type == 'x') MOKA_TRY(read_pax(content.text(), begin, extra));
      if (type == 'L') extra.path = content.text().substr(0, content.text().find('\0'));
      continue;
    }
    std::string name(extra.path);
    if (name.empty()) {
      const std::string_view prefix = text_of(record, kPrefix);
      name = cat(prefix, prefix.empty() ? "" : "/", text_of(record, kName));
    }
    extra = {};
    if (type == '5') continue;
    if (!is_file) return fail(ErrorCode::unsupported, "tar archive: '", name, "' is neither a file nor a folder");
    name = MOKA_TRY_IN(normalise_inside(name), "tar archive");
    if (out.size() == kMostFiles) return fail(ErrorCode::unsupported, "tar archive: more than ", kMostFiles, " files");
    if (!out.emplace(name, content).second) return bad(begin - kRecord, cat("the file '", name, "' appears twice"));
  }
}

Rope write_tar(const FileContents& files) {
  Rope out;
  std::set<std::string> folders;
  for (const auto& [name, content] : files) {
    for (size_t slash = name.find('/'); slash != std::string::npos; slash = name.find('/', slash + 1))
      if (const std::string folder = name.substr(0, slash + 1); folders.insert(folder).second)
        out.append(std::string_view(headers(folder, 0, '5')));
    out.append(std::string_view(headers(name, content.size(), '0')));
    for (const Bytes& piece : content.pieces()) out.append(piece);
    out.append(std::string_view(padding(content.size())));
  }
  out.append(std::string_view(std::string(2 * kRecord, '\0')));
  return out;
}

}  // namespace moka::format
