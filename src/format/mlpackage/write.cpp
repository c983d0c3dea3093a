// SPDX-License-Identifier: Apache-2.0
#include "format/mlpackage/write.h"

#include <nlohmann/json.hpp>

#include "base/sha256.h"

namespace moka::format {
namespace {

/// A UUID of version 8 made from a hash.
std::string identifier(std::string_view of, const std::array<std::byte, 32>& specification) {
  std::string seed(of);
  for (std::byte b : specification) seed += static_cast<char>(b);
  auto bits = sha256(std::as_bytes(std::span(seed)));
  bits[6] = (bits[6] & std::byte{0x0f}) | std::byte{0x80};
  bits[8] = (bits[8] & std::byte{0x3f}) | std::byte{0x80};
  constexpr char digits[] = "0123456789ABCDEF";
  std::string out;
  for (size_t i = 0; i < 16; ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) out += '-';
    out += digits[static_cast<unsigned>(bits[i]) >> 4];
    out += digits[static_cast<unsigned>(bits[i]) & 15];
  }
  return out;
}

nlohmann::json item(const char* description, const char* name) {
  return {{"author", "com.apple.CoreML"},
          {"description", description},
          {"name", name},
          {"path", std::string("com.apple.CoreML/") + name}};
}

}  // namespace

std::map<std::string, Rope> package_files(Rope specification, std::map<std::string, Rope> weights) {
  Sha256 hasher;
  for (const Bytes& piece : specification.pieces()) hasher.add(piece.span);
  const auto hash = hasher.finish();
  const std::string model = identifier("model", hash);
  nlohmann::json manifest{{"fileFormatVersion", "1.0.0"}, {"rootModelIdentifier", model}};
  manifest["itemInfoEntries"][model] = item("CoreML Model Specification", "model.mlmodel");
  if (!weights.empty())
    manifest["itemInfoEntries"][identifier("weights", hash)] = item("CoreML Model Weights", "weights");
  const std::string data = "Data/com.apple.CoreML/";
  std::map<std::string, Rope> files;
  for (auto& [path, content] : weights) files[data + path] = std::move(content);
  files[data + "model.mlmodel"] = std::move(specification);
  files["Manifest.json"] = Rope(Bytes::from(manifest.dump(4)));
  return files;
}

}  // namespace moka::format
