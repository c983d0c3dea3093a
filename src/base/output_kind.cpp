// SPDX-License-Identifier: Apache-2.0
#include "base/output_kind.h"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <optional>
#include <tuple>

#include "base/bytes.h"

namespace moka {
namespace {

namespace fs = std::filesystem;
using namespace std::string_view_literals;

constexpr size_t kHead = 4096;  ///< bytes at the start of a file that tell its kind

std::string_view without_spaces(std::string_view text, std::string& to) {
  std::copy_if(text.begin(), text.end(), std::back_inserter(to), [](unsigned char c) { return std::isspace(c) == 0; });
  return to;
}

/// JSON whose first member is "format" with this value.
bool has_format(std::string_view head, std::string_view format) {
  std::string plain, expected;
  return without_spaces(head.substr(0, 256), plain)
      .starts_with(cat("{\"format\":\"", without_spaces(format, expected), "\""));
}

/// A field of a message of protobuf. The reader stops at the first byte that does not fit.
struct Field {
  uint64_t number = 0;
  uint32_t wire_type = 0;
  std::string_view content;  ///< of a field with a length
};
class FieldReader {
 public:
  explicit FieldReader(std::string_view bytes) : rest_(bytes) {}
  std::optional<Field> next() {
    uint64_t key = 0, length = 0;
    if (rest_.empty() || !varint(key)) return damage();
    Field out{key >> 3, static_cast<uint32_t>(key & 7), {}};
    if (out.wire_type == 0) return varint(length) ? std::optional(out) : damage();
    if (out.wire_type == 1) length = 8;
    if (out.wire_type == 5) length = 4;
    if (out.wire_type == 2 && !varint(length)) return damage();
    if ((length == 0 && out.wire_type != 2) || length > rest_.size()) return damage();
    out.content = rest_.substr(0, static_cast<size_t>(length));
    rest_.remove_prefix(static_cast<size_t>(length));
    return out;
  }
  bool is_damaged() const { return damaged_; }

 private:
  std::optional<Field> damage() {
    damaged_ = !rest_.empty();
    return std::nullopt;
  }
  bool varint(uint64_t& to) {
    to = 0;
    for (int shift = 0; shift < 64 && !rest_.empty(); shift += 7) {
      const auto byte = static_cast<uint8_t>(rest_.front());
      rest_.remove_prefix(1);
      to |= static_cast<uint64_t>(byte & 0x7f) << shift;
      if (byte < 0x80) return true;
    }
    return false;
  }
  std::string_view rest_;
  bool damaged_ = false;
};

/// Message Model: its version, its description, and a kind of model, whose fields have the numbers from 200 on.
bool is_specification(std::string_view all) {
  bool version = false, description = false, type = false;
  FieldReader reader(all);
  while (const auto field = reader.next()) {
    if (field->number == 1 && field->wire_type == 0)
      version = true;
    else if (field->number == 2 && field->wire_type == 2)
      description = true;
    else if (field->number >= 200 && field->number < 4000 && field->wire_type == 2)
      type = true;
    else if (field->number != 10)
      return false;
  }
  return !reader.is_damaged() && version && description && type;
}

/// ModelProto: the version of the format, a graph and operator sets.
bool is_onnx(std::string_view all) {
  bool version = false, graph = false, operators = false;
  FieldReader reader(all);
  while (const auto field = reader.next()) {
    version |= field->number == 1 && field->wire_type == 0;
    graph |= field->number == 7 && field->wire_type == 2;
    operators |= field->number == 8 && field->wire_type == 2;
    if (field->number > 25) return false;
  }
  return !reader.is_damaged() && version && graph && operators;
}

/// The first packet of Moka's traces: a time, a sequence, its flags, and a mark of the first packet.
bool is_trace(std::string_view head) {
  FieldReader packets(head);
  const auto packet = packets.next();
  if (!packet || packet->number != 1 || packet->wire_type != 2) return false;
  constexpr uint64_t expected[] = {8, 10, 13, 87};
  FieldReader fields(packet->content);
  for (const uint64_t number : expected)
    if (const auto field = fields.next(); !field || field->number != number || field->wire_type != 0) return false;
  return true;
}

bool is_json(std::string_view head) {
  const size_t at = head.find_first_not_of(" \t\r\n");
  return at != head.npos && (head[at] == '{' || head[at] == '[') && head.find('\0') == head.npos;
}

bool is_empty_property_list(std::string_view head) {
  std::string text;
  without_spaces(head, text);
  return head.starts_with("<?xml") && text.find("<plistversion=\"1.0\"><dict/></plist>") != text.npos;
}

std::string_view head_of(std::string_view all) { return all.substr(0, kHead); }

struct KindOfFile {
  OutputKind kind;
  const char* name;
  bool (*is)(std::string_view all);
};
constexpr KindOfFile kFiles[] = {
    {OutputKind::specification, "a Core ML specification", is_specification},
    {OutputKind::onnx, "an ONNX model", is_onnx},
    {OutputKind::encrypted_model, "an encrypted model",
     [](std::string_view b) {
       return b.starts_with("age-encryption.org/v1\n") || b.starts_with("-----BEGIN AGE ENCRYPTED FILE-----");
     }},
    {OutputKind::identity, "a secret key",
     [](std::string_view b) { return head_of(b).find("AGE-SECRET-KEY-1") != b.npos; }},
    {OutputKind::trace, "a trace of Moka", [](std::string_view b) { return is_trace(head_of(b)); }},
    {OutputKind::page, "a page of Moka",
     [](std::string_view b) { return head_of(b).find("<meta name=\"generator\" content=\"Moka\">") != b.npos; }},
    {OutputKind::report, "a saved report", [](std::string_view b) { return has_format(b, "moka-report"); }},
    {OutputKind::capture, "a capture", [](std::string_view b) { return has_format(b, "moka-capture"); }},
    {OutputKind::rates, "a file of rates", [](std::string_view b) { return has_format(b, "moka unit rates"); }},
    {OutputKind::kernel_times, "a kernel cache", [](std::string_view b) { return has_format(b, "moka kernel times"); }},
    {OutputKind::array, "an array (.npy)", [](std::string_view b) { return b.starts_with("\x93NUMPY"); }},
    {OutputKind::picture, "a PNG picture", [](std::string_view b) { return b.starts_with("\x89PNG\r\n\x1a\n"); }},
    {OutputKind::table, "a table of predictions", [](std::string_view b) { return b.starts_with("row,"); }},
    {OutputKind::source, "generated code",
     [](std::string_view b) { return head_of(b).find("Generated from the model; edits are lost.") != b.npos; }},
    {OutputKind::property_list, "an empty property list",
     [](std::string_view b) { return is_empty_property_list(head_of(b)); }},
    // After a crash of the machine the head of a file can be lost.
    {OutputKind::packed_weights, "packed weights",
     [](std::string_view b) { return b.starts_with("\nMOKPACK") || b.starts_with("\0\0\0\0\0\0\0\0"sv); }},
    {OutputKind::digests, "digests of a model's files",
     [](std::string_view b) { return b.starts_with("moka content "); }},
    // VkPipelineCacheHeaderVersionOne: its size and its version.
    {OutputKind::pipelines, "a cache of pipelines",
     [](std::string_view b) { return b.starts_with("\x20\0\0\0\1\0\0\0"sv); }},
    {OutputKind::json, "JSON text", [](std::string_view b) { return is_json(head_of(b)); }},
};

bool has_file(const std::string& folder, const char* name) {
  std::error_code ignored;
  return fs::is_regular_file(fs::path(folder) / name, ignored);
}

bool is_package(const std::string& path) {
  if (!has_file(path, "Manifest.json")) return false;
  const auto json = map_file((fs::path(path) / "Manifest.json").string());
  return json.ok() && json->text().find("\"itemInfoEntries\"") != std::string_view::npos;
}

/// Whether `path` is the file of weights to which a model beside it refers.
bool is_onnx_data(const std::string& path) {
  const fs::path file(path);
  if (file.extension() != ".data") return false;
  const std::string model = (file.parent_path() / file.stem()).string();
  const auto bytes = map_file(model);
  return bytes.ok() && is_onnx(bytes->text()) && bytes->text().find(file.filename().string()) != std::string_view::npos;
}

}  // namespace

std::string_view describe(OutputKind kind) {
  for (const KindOfFile& k : kFiles)
    if (k.kind == kind) return k.name;
  switch (kind) {
    case OutputKind::package: return "an .mlpackage";
    case OutputKind::compiled_model: return "a compiled model";
    case OutputKind::model: return "a Core ML model";
    case OutputKind::onnx_data: return "the weights of the ONNX model beside it";
    default: return "a folder";
  }
}

bool is_folder(OutputKind kind) {
  return kind == OutputKind::package || kind == OutputKind::compiled_model || kind == OutputKind::folder;
}

bool holds(const std::string& path, OutputKind kind) {
  std::error_code ignored;
  const bool folder = fs::is_directory(path, ignored);
  switch (kind) {
    case OutputKind::package: return folder && is_package(path);
    case OutputKind::compiled_model: return folder && has_file(path, "coremldata.bin");
    case OutputKind::folder: return folder;
    case OutputKind::model:
      return holds(path, OutputKind::specification) || holds(path, OutputKind::package) ||
             holds(path, OutputKind::compiled_model);
    case OutputKind::onnx_data: return is_onnx_data(path);
    default: break;
  }
  if (folder) return false;
  const auto bytes = map_file(path);
  return bytes.ok() && std::any_of(std::begin(kFiles), std::end(kFiles),
                                   [&](const KindOfFile& k) { return k.kind == kind && k.is(bytes->text()); });
}

std::string described_content(const std::string& path) {
  for (const OutputKind kind : {OutputKind::package, OutputKind::compiled_model, OutputKind::folder})
    if (holds(path, kind)) return std::string(describe(kind));
  const auto bytes = map_file(path);
  if (bytes.ok())
    for (const KindOfFile& k : kFiles)
      if (k.is(bytes->text())) return k.name;
  return "another file";
}

}  // namespace moka
