#include "format/mlmodelc/write.h"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <system_error>

#include "format/mlmodelc/coremldata.h"
#include "format/path_guard.h"
#include "format/proto/model.pb.h"

namespace moka::format {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t program_version = 5;  // what Apple's compilers write for ML programs; informational

Status write_file(const fs::path& path, std::string_view bytes) {
  std::error_code ec;
  fs::create_directories(path.parent_path(), ec);
  if (ec) return fail(ErrorCode::io, "'", path.parent_path().string(), "': cannot be made: ", ec.message());
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  out.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  out.close();
  if (!out) return fail(ErrorCode::io, "'", path.string(), "': cannot be written: ", std::strerror(errno));
  return {};
}

Status write_all(const ModelFile& model, std::string_view mil, uint64_t functions,
                 const std::map<std::string, Bytes>& weights, const fs::path& folder) {
  CoreMLData data;
  data.type = static_cast<uint32_t>(model.spec().Type_case());
  data.spec_version = static_cast<uint32_t>(model.spec().specificationversion());
  if (data.is_program()) {
    data.version[0] = program_version;
    data.target = "generic";
    data.description = Bytes::from(model.spec().description().SerializeAsString());
    data.functions = functions;
    MOKA_TRY(write_file(folder / "model.mil", mil));
  } else {
    data.version[0] = 1;
    data.target = "spec";
    data.spec = model.raw();
  }
  for (const auto& [name, bytes] : weights)
    MOKA_TRY(write_file(folder / MOKA_TRY(normalise_inside(name)), bytes.text()));
  return write_file(folder / "coremldata.bin", write_coremldata(data));
}

}  // namespace

Status write_mlmodelc(const ModelFile& model, std::string_view mil, uint64_t functions,
                      const std::map<std::string, Bytes>& weights, const std::string& folder) {
  if (model.compiled() != nullptr)
    return fail(ErrorCode::invalid_argument, "'", model.path(), "': expected a model to compile, got a compiled one");
  std::error_code ec;
  if (fs::exists(folder, ec) && !(fs::is_directory(folder, ec) && fs::is_empty(folder, ec)))
    return fail(ErrorCode::invalid_argument, "'", folder,
                "': expected a new or empty folder, got one that holds files");
  Status status = write_all(model, mil, functions, weights, folder);
  if (!status.ok()) fs::remove_all(folder, ec);
  return status;
}

}  // namespace moka::format
