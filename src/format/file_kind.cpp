// SPDX-License-Identifier: Apache-2.0
#include "format/file_kind.h"

#include <algorithm>
#include <protozero/exception.hpp>
#include <protozero/pbf_reader.hpp>

#include "base/utf8.h"

namespace moka::format {
namespace {

struct Magic {
  size_t at;
  std::string_view bytes;
  const char* kind;
};

using namespace std::string_view_literals;

constexpr Magic kMagics[] = {
    {0, "version https://git-lfs"sv, "a Git LFS pointer, not the file itself (git lfs pull fetches it)"},
    {0, "\x89PNG\r\n"sv, "a PNG picture"},
    {0, "\xff\xd8\xff"sv, "a JPEG picture"},
    {0, "GIF8"sv, "a GIF picture"},
    {0, "RIFF"sv, "a WAV sound, WebP picture or other RIFF file"},
    {4, "ftyp"sv, "an MP4, MOV or HEIC file"},
    {0, "\x1f\x8b"sv, "gzip-compressed data: unpack it first"},
    {0, "BZh"sv, "bzip2-compressed data: unpack it first"},
    {0,
     "\xfd"
     "7zXZ"sv,
     "xz-compressed data: unpack it first"},
    {0, "\x28\xb5\x2f\xfd"sv, "zstd-compressed data: unpack it first"},
    {0, "7z\xbc\xaf"sv, "a 7-Zip archive: unpack it first"},
    {257, "ustar"sv, "a tar archive: unpack it first"},
    {0, "\x93NUMPY"sv, "a NumPy array"},
    {0, "\x89HDF\r\n"sv, "an HDF5 file, such as Keras writes: convert the model with coremltools first"},
    {4, "TFL3"sv, "a TensorFlow Lite model"},
    {0, "GGUF"sv, "a GGUF model of llama.cpp"},
    {0, "%PDF"sv, "a PDF document"},
    {0, "SQLite format 3"sv, "an SQLite database"},
    {0,
     "\x7f"
     "ELF"sv,
     "a Linux program or library"},
    {0, "\xcf\xfa\xed\xfe"sv, "a macOS program or library"},
    {0, "bplist00"sv, "a binary property list"},
};

/// The kind of an archive, judged by the name of its first file.
std::string kind_of_zip(std::string_view bytes) {
  constexpr size_t kHeader = 30;
  std::string_view name;
  if (bytes.size() > kHeader) {
    const size_t length = static_cast<uint8_t>(bytes[26]) | static_cast<size_t>(static_cast<uint8_t>(bytes[27])) << 8;
    name = bytes.substr(kHeader, length);
  }
  if (name.ends_with("data.pkl")) return "a PyTorch file: convert the model with coremltools first";
  if (name.ends_with(".npy")) return "NumPy arrays (.npz)";
  for (std::string_view kind : {".mlpackage", ".mlmodelc", ".mlmodel"})
    if (const size_t at = name.find(kind); at != name.npos)
      return cat("a zip archive with '", name.substr(0, at + kind.size()), "': unpack it first");
  return "a zip archive: unpack it first";
}

bool is_text_byte(char c) {
  const auto u = static_cast<uint8_t>(c);
  return u >= 0x20 ? u != 0x7f : c == '\n' || c == '\r' || c == '\t';
}

std::string kind_of_text(std::string_view text) {
  std::string_view start = text.substr(std::min(text.find_first_not_of(" \t\r\n"), text.size()));
  if (start.starts_with("{") || start.starts_with("[")) return "JSON text";
  for (std::string_view html : {"<!DOCTYPE html", "<!doctype html", "<html", "<HTML"})
    if (start.starts_with(html)) return "an HTML page: was it downloaded from a page that shows the file?";
  if (start.starts_with("<?xml") || start.starts_with("<plist")) return "XML text";
  if (start.starts_with("program(")) return "MIL text, a part of a compiled model: give the .mlmodelc folder";
  constexpr size_t kShown = 40;
  std::string_view line = start.substr(0, std::min(start.find_first_of("\r\n"), start.size()));
  return cat("text ('", shortened(line, kShown, "..."), "')");
}

/// Recognizes ONNX and TensorFlow by their field numbers.
std::string kind_of_protobuf(const Bytes& bytes) {
  bool graph = false, opset = false, nodes = false, foreign = false;
  try {
    protozero::pbf_reader reader(bytes.text().data(), bytes.size());
    while (reader.next()) {
      const bool delimited = reader.wire_type() == protozero::pbf_wire_type::length_delimited;
      graph |= reader.tag() == 7 && delimited;
      opset |= reader.tag() == 8 && delimited;
      nodes |= reader.tag() == 1 && delimited;
      foreign |= reader.tag() > 25;
      reader.skip();
    }
  } catch (const protozero::exception&) {
    return {};
  }
  if (foreign) return {};
  if (graph && opset) return "an ONNX model: 'moka convert' writes it as an .mlpackage";
  if (nodes) return "a TensorFlow graph: convert the model with coremltools first";
  return {};
}

}  // namespace

std::string foreign_kind(const Bytes& bytes) {
  const std::string_view all = bytes.text();
  if (all.starts_with("PK\x03\x04")) return kind_of_zip(all);
  for (const Magic& m : kMagics)
    if (all.size() >= m.at + m.bytes.size() && all.substr(m.at, m.bytes.size()) == m.bytes) return m.kind;
  if (all.starts_with("\x80") && all.size() > 2 && all[1] >= 2 && all[1] <= 5 && all.back() == '.')
    return "a Python pickle";
  constexpr size_t kLooked = 512;
  const std::string_view head = all.substr(0, kLooked);
  if (!head.empty() && std::all_of(head.begin(), head.end(), is_text_byte)) return kind_of_text(head);
  if (all.size() > 9 && all[8] == '{' && all.substr(1, 7).find_first_not_of('\0', 3) == all.npos)
    return "a safetensors file";
  if (all.size() >= 64 && std::all_of(all.begin(), all.end(), [](char c) { return c == '\0'; }))
    return "nothing but zero bytes";
  return kind_of_protobuf(bytes);
}

Error foreign_or(Error error, const Bytes& bytes, std::string_view expected) {
  if (error.code() != ErrorCode::malformed) return error;
  const std::string kind = bytes.empty() ? "an empty file" : foreign_kind(bytes);
  return kind.empty() ? std::move(error) : fail(ErrorCode::malformed, "expected ", expected, ", got ", kind);
}

}  // namespace moka::format
