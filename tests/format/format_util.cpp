// SPDX-License-Identifier: Apache-2.0
#include "format/format_util.h"

#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <stdexcept>

#include "base/error.h"
#include "format/proto/model.pb.h"

namespace moka::test {

namespace fs = std::filesystem;

std::vector<fs::path> find_models(const fs::path& folder) {
  std::vector<fs::path> out;
  for (auto it = fs::recursive_directory_iterator(folder); it != fs::recursive_directory_iterator(); ++it) {
    auto extension = it->path().extension();
    if (it->is_directory() && (extension == ".mlpackage" || extension == ".mlmodelc")) {
      out.push_back(it->path());
      it.disable_recursion_pending();
    } else if (it->is_regular_file() && (extension == ".mlmodel" || it->path().string().ends_with(".mlmodel.gz"))) {
      out.push_back(it->path());
    }
  }
  std::sort(out.begin(), out.end());
  return out;
}

std::string read_file(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) throw std::runtime_error("cannot read " + path.string());
  std::ostringstream out;
  out << in.rdbuf();
  return out.str();
}

std::string identity_model() {
  proto::Model model;
  model.set_specificationversion(1);
  model.mutable_identity();
  return model.SerializeAsString();
}

std::string package_manifest(std::string_view path, std::string_view extra) {
  return cat(R"({"fileFormatVersion": "1.0.0", "rootModelIdentifier": "A", "itemInfoEntries": {"A": {"path": ")", path,
             R"(", "name": "m", "author": "a", "description": "d"})", extra, "}}");
}

void write_file(const fs::path& path, std::string_view content) {
  fs::create_directories(path.parent_path());
  std::ofstream out(path, std::ios::binary);
  out.write(content.data(), static_cast<std::streamsize>(content.size()));
  if (!out) throw std::runtime_error("cannot write " + path.string());
}

std::string gunzip(const fs::path& path) {
  gzFile file = gzopen(path.c_str(), "rb");
  if (!file) throw std::runtime_error("cannot read " + path.string());
  std::string out;
  char buffer[65536];
  int n;
  while ((n = gzread(file, buffer, sizeof buffer)) > 0) out.append(buffer, static_cast<size_t>(n));
  gzclose(file);
  if (n < 0) throw std::runtime_error("cannot inflate " + path.string());
  return out;
}

Stream coremldata_header(uint32_t type, std::string_view target, uint32_t spec_version) {
  Stream s;
  s.u32(type).u64(1).u64(2).u64(3).str(target).u32(spec_version);
  s.bytes.append(28, '\0');
  return s;
}

}  // namespace moka::test
