// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "models_folder.h"
#include "temporary_folder.h"

namespace moka::test {

/// Every model below `folder`: .mlmodel files, .mlpackage and .mlmodelc folders, .mlmodel.gz files; sorted.
std::vector<std::filesystem::path> find_models(const std::filesystem::path& folder);

std::string read_file(const std::filesystem::path& path);
void write_file(const std::filesystem::path& path, std::string_view content);
/// The specification of an identity model.
std::string identity_model();
/// Manifest.json of a package whose specification is at `path`, relative to Data. `extra` is text that follows the
/// first item, such as `, "B": {"path": "weights"}`.
std::string package_manifest(std::string_view path, std::string_view extra = "");
std::string gunzip(const std::filesystem::path& path);

/// Builds little-endian streams such as coremldata.bin.
struct Stream {
  std::string bytes;
  Stream& u32(uint32_t v) { return raw(&v, sizeof v); }
  Stream& u64(uint64_t v) { return raw(&v, sizeof v); }
  Stream& str(std::string_view s) {
    u64(s.size());
    bytes += s;
    return *this;
  }
  Stream& raw(const void* p, size_t n) {
    bytes.append(static_cast<const char*>(p), n);
    return *this;
  }
};

/// coremldata.bin up to where the target's own part starts.
Stream coremldata_header(uint32_t type, std::string_view target, uint32_t spec_version);

}  // namespace moka::test
