// SPDX-License-Identifier: Apache-2.0
#define ZLIB_CONST  // zlib only reads its input
#include <zlib.h>

#include <algorithm>
#include <limits>

#include "files/error.h"
#include "files/file.h"
#include "moka/files.h"

namespace moka {
namespace files {
namespace {

constexpr uint32_t kLocalHeader = 0x04034b50, kDirectoryEntry = 0x02014b50, kDirectoryEnd = 0x06054b50;
constexpr uint32_t kEnd64 = 0x06064b50, kEnd64Locator = 0x07064b50;
constexpr uint32_t kIn64 = 0xffffffff;
constexpr size_t kEndSize = 22;

struct Member {
  std::string name;
  uint16_t flags = 0, method = 0;
  uint32_t crc = 0;
  uint64_t packed = 0, size = 0, offset = 0;
};

struct Directory {
  uint64_t count = 0, offset = 0;
};

Directory find_directory(std::span<const std::byte> bytes, std::string_view name) {
  ByteReader in(bytes, name);
  if (bytes.size() < kEndSize) damaged(name, "expected a .npz (zip) file, got ", bytes.size(), " bytes");
  const size_t lowest = bytes.size() - std::min<size_t>(bytes.size(), kEndSize + 0xffff);
  for (size_t at = bytes.size() - kEndSize + 1; at-- > lowest;) {
    in.seek(at, "zip end record");
    if (in.number<uint32_t>("zip end record") != kDirectoryEnd) continue;
    in.take(6, "zip end record");
    Directory found{in.number<uint16_t>("zip end record"), 0};
    in.take(4, "zip end record");
    found.offset = in.number<uint32_t>("zip end record");
    if (found.count != 0xffff && found.offset != kIn64) return found;
    if (at < 20) return found;
    in.seek(at - 20, "zip64 locator");
    if (in.number<uint32_t>("zip64 locator") != kEnd64Locator) return found;
    in.take(4, "zip64 locator");
    in.seek(in.number<uint64_t>("zip64 locator"), "zip64 end record");
    if (in.number<uint32_t>("zip64 end record") != kEnd64)
      damaged(name, "the zip64 end record isn't where it should be");
    in.take(28, "zip64 end record");
    found.count = in.number<uint64_t>("zip64 end record");
    in.take(8, "zip64 end record");
    found.offset = in.number<uint64_t>("zip64 end record");
    return found;
  }
  damaged(name, "expected a .npz (zip) file, found no zip directory in it");
}

Member read_member(ByteReader& in, std::string_view name) {
  if (in.number<uint32_t>("zip directory") != kDirectoryEntry) damaged(name, "the zip directory is damaged");
  Member m;
  in.take(4, "zip directory");
  m.flags = in.number<uint16_t>("zip directory");
  m.method = in.number<uint16_t>("zip directory");
  in.take(4, "zip directory");
  m.crc = in.number<uint32_t>("zip directory");
  m.packed = in.number<uint32_t>("zip directory");
  m.size = in.number<uint32_t>("zip directory");
  const size_t name_size = in.number<uint16_t>("zip directory");
  const size_t extra_size = in.number<uint16_t>("zip directory");
  const size_t comment_size = in.number<uint16_t>("zip directory");
  in.take(8, "zip directory");
  m.offset = in.number<uint32_t>("zip directory");
  m.name = in.take_text(name_size, "zip member name");
  ByteReader extra(in.take(extra_size, "zip extra field"), name);
  in.take(comment_size, "zip comment");
  while (extra.remaining() >= 4) {
    const uint16_t id = extra.number<uint16_t>("zip extra field");
    ByteReader field(extra.take(extra.number<uint16_t>("zip extra field"), "zip extra field"), name);
    if (id != 1) continue;
    for (uint64_t* value : {&m.size, &m.packed, &m.offset}) {
      if (*value == kIn64) *value = field.number<uint64_t>("zip64 sizes");
    }
  }
  return m;
}

Buffer inflate_member(std::span<const std::byte> packed, uint64_t size, std::string_view where) {
  // Deflate compresses by at most 1032 to 1, so a larger size must be wrong.
  if (size > static_cast<uint64_t>(packed.size()) * 1032 + 64) {
    damaged(where, "claims ", size, " bytes, but its ", packed.size(), " compressed bytes can't hold that much");
  }
  constexpr uint64_t kLimit = std::numeric_limits<uInt>::max();
  if (size > kLimit || packed.size() > kLimit)
    refuse(ErrorKind::unsupported, where, ": compressed members of 4 GiB or more aren't supported");
  Buffer out(size);
  z_stream stream{};
  if (inflateInit2(&stream, -MAX_WBITS) != Z_OK) refuse(ErrorKind::out_of_budget, where, ": zlib couldn't start");
  Bytef nothing = 0;
  stream.next_in = reinterpret_cast<const Bytef*>(packed.data());
  stream.avail_in = static_cast<uInt>(packed.size());
  stream.next_out = out.empty() ? &nothing : reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  const int status = inflate(&stream, Z_FINISH);
  const uint64_t got = stream.total_out;
  inflateEnd(&stream);
  if (status != Z_STREAM_END || got != size) {
    damaged(where, "expected ", size, " bytes of deflated data, got ", got,
            status == Z_STREAM_END ? "" : " and then damage");
  }
  return out;
}

Buffer unpack(std::span<const std::byte> bytes, const Member& m, const std::string& where) {
  if (m.flags & 1) refuse(ErrorKind::unsupported, where, ": encrypted archives aren't supported");
  ByteReader in(bytes, where);
  in.seek(m.offset, "zip member");
  if (in.number<uint32_t>("zip member") != kLocalHeader) damaged(where, "its zip header isn't where it should be");
  in.take(22, "zip member");
  const size_t name_size = in.number<uint16_t>("zip member");
  const size_t extra_size = in.number<uint16_t>("zip member");
  in.take(name_size + extra_size, "zip member");
  auto packed = in.take(m.packed, "zip data");
  Buffer out;
  if (m.method == 0) {
    if (m.packed != m.size) damaged(where, "expected ", m.size, " stored bytes, got ", m.packed);
    out.assign(packed.begin(), packed.end());
  } else if (m.method == 8) {
    out = inflate_member(packed, m.size, where);
  } else {
    refuse(ErrorKind::unsupported, where, ": expected zip method 0 (stored) or 8 (deflate), got ", m.method);
  }
  const auto crc = crc32_z(crc32_z(0, nullptr, 0), reinterpret_cast<const Bytef*>(out.data()), out.size());
  if (crc != m.crc) damaged(where, "its checksum doesn't match; the file is damaged");
  return out;
}

}  // namespace
}  // namespace files

Features decode_npz(std::span<const std::byte> bytes, std::string_view name) {
  const files::Directory directory = files::find_directory(bytes, name);
  files::ByteReader in(bytes, name);
  in.seek(directory.offset, "zip directory");
  Features arrays;
  uint64_t unpacked = 0;
  for (uint64_t i = 0; i < directory.count; ++i) {
    files::Member member = files::read_member(in, name);
    if (!member.name.ends_with(".npy")) continue;
    // Overlapping members could otherwise multiply one range of bytes without bound.
    if (__builtin_add_overflow(unpacked, member.packed, &unpacked) || unpacked > bytes.size())
      files::damaged(name, "its members together claim more bytes than the file has");
    const std::string where = cat(name, "[", member.name, "]");
    FeatureValue array = decode_npy(files::unpack(bytes, member, where), where);
    member.name.resize(member.name.size() - 4);
    arrays[member.name] = std::move(array);
  }
  return arrays;
}

Features read_npz(const std::filesystem::path& path) { return decode_npz(files::read_file(path), path.string()); }

std::vector<std::byte> encode_npz(const Features& arrays) {
  using namespace files;
  Buffer out, directory;
  if (arrays.size() >= 0xffff)
    refuse(ErrorKind::invalid_argument, "npz: expected fewer than 65535 arrays, got ", arrays.size());
  constexpr uint16_t kVersion = 20, kUtf8Name = 0x800, kMidnight = 0, kFirstDay = 0x21;
  for (const auto& [member, value] : arrays) {
    const Buffer data = encode_npy(arrays.array(member));
    const std::string name = member + ".npy";
    if (out.size() + data.size() + name.size() + 64 >= kIn64)
      refuse(ErrorKind::invalid_argument, "npz: expected less than 4 GiB, got more");
    if (name.size() > 0xffff)
      refuse(ErrorKind::invalid_argument, "npz: expected names shorter than 65536 bytes, got ", name.size());
    const auto crc = static_cast<uint32_t>(
        crc32_z(crc32_z(0, nullptr, 0), reinterpret_cast<const Bytef*>(data.data()), data.size()));
    const auto common = [&](Buffer& to) {
      for (uint16_t value : {kVersion, kUtf8Name, uint16_t{0}, kMidnight, kFirstDay}) put_number(to, value);
      put_number(to, crc);
      put_number(to, static_cast<uint32_t>(data.size()));
      put_number(to, static_cast<uint32_t>(data.size()));
      put_number(to, static_cast<uint16_t>(name.size()));
      put_number<uint16_t>(to, 0);
    };
    put_number(directory, kDirectoryEntry);
    put_number(directory, kVersion);
    common(directory);
    for (int i = 0; i < 3; ++i) put_number<uint16_t>(directory, 0);
    put_number<uint32_t>(directory, 0);
    put_number(directory, static_cast<uint32_t>(out.size()));
    put_text(directory, name);
    put_number(out, kLocalHeader);
    common(out);
    put_text(out, name);
    out.insert(out.end(), data.begin(), data.end());
  }
  const size_t start = out.size();
  if (start + directory.size() >= kIn64) refuse(ErrorKind::invalid_argument, "npz: expected less than 4 GiB, got more");
  out.insert(out.end(), directory.begin(), directory.end());
  put_number(out, kDirectoryEnd);
  put_number<uint32_t>(out, 0);
  put_number(out, static_cast<uint16_t>(arrays.size()));
  put_number(out, static_cast<uint16_t>(arrays.size()));
  put_number(out, static_cast<uint32_t>(directory.size()));
  put_number(out, static_cast<uint32_t>(start));
  put_number<uint16_t>(out, 0);
  return out;
}

}  // namespace moka
