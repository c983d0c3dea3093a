// SPDX-License-Identifier: Apache-2.0
#include "moka/onnx_export.h"

#include <filesystem>
#include <optional>

#include "api/internal.h"
#include "base/replace_file.h"
#include "boundary/path.h"
#include "compiler/onnx/export.h"
#include "format/onnx/write.h"
#include "passes/pass.h"

namespace moka {
namespace {

constexpr size_t kMostInside = size_t{64} << 20;  ///< limit in bytes on weights inside the .onnx file

/// Passes that make the graph smaller for every runtime. None of them depends on a device.
constexpr std::string_view kPasses[] = {"fold_constants", "remove_identities", "recognise_gru", "fuse_hard_swish"};

ir::Function& function_of(import::ImportedModel& model, const std::string& wanted) {
  const std::string& name = wanted.empty() ? model.description.default_function : wanted;
  ir::Function* f = model.program.find(name);
  if (f == nullptr && wanted.empty() && model.program.functions.size() == 1) f = model.program.functions[0].get();
  if (f == nullptr || model.description.function(name) == nullptr)
    api::raise(fail(ErrorCode::not_found, "function '", name, "': the model does not have it"));
  return *f;
}

compiler::onnx::Exported exported(import::ImportedModel& model, const OnnxExportOptions& options) {
  ir::Function& f = function_of(model, options.function);
  std::vector<passes::Remark> remarks;
  for (const std::string_view pass : kPasses)
    for (const std::string_view each : {pass, std::string_view("remove_dead_code")})
      api::unwrap(passes::run_pass(f, each, ops::table(), remarks));
  const std::string& name = options.function.empty() ? model.description.default_function : options.function;
  return api::unwrap(compiler::onnx::export_function(f, *model.description.function(name), model.description,
                                                     {options.opset, MOKA_VERSION}));
}

OnnxExport report(const compiler::onnx::Exported& e) {
  OnnxExport out;
  out.opset = static_cast<int>(e.model.opsets[0].version);
  out.operations = e.operations;
  out.nodes = e.nodes;
  for (const compiler::onnx::Unexpressed& u : e.unexpressed) out.unsupported.push_back({u.name, u.type, u.reason});
  return out;
}

/// `inputs`: the paths of the model.
OnnxExport write(import::ImportedModel model, const std::string& destination, const OnnxExportOptions& options,
                 const std::vector<std::string>& inputs = {}) {
  const compiler::onnx::Exported e = exported(model, options);
  OnnxExport out = report(e);
  if (options.check) return out;
  if (!out.unsupported.empty()) {
    const UnsupportedOperation& first = out.unsupported[0];
    const size_t others = out.unsupported.size() - 1;
    api::raise(fail(ErrorCode::unsupported, "operation '", first.name, "' (", first.type,
                    "): ONNX cannot express it: ", first.reason, others == 0 ? "" : cat(" (and ", others, " more)")));
  }
  size_t weights = 0;
  for (const format::onnx::Tensor& t : e.model.graph.initializers) weights += t.raw ? t.raw->size() : 0;
  format::onnx::WriteOptions how;
  if (options.external_data || weights > kMostInside)
    how.data_file = std::filesystem::path(destination).filename().string() + ".data";
  format::onnx::Written written = api::unwrap(format::onnx::write_model(e.model, how));
  const bool force = options.overwrite == Overwrite::any;
  const auto begin = [&](const std::string& path, OutputKind kind, const format::Rope& content) {
    FileReplacement file = api::unwrap(FileReplacement::begin(path, kind, force, inputs));
    for (const Bytes& piece : content.pieces()) api::unwrap(file.add(piece.span));
    out.files.push_back(path);
    return file;
  };
  // The weights of an older model stay as they are until the new model is complete.
  std::optional<FileReplacement> data;
  if (written.data.size() > 0) data.emplace(begin(destination + ".data", OutputKind::onnx_data, written.data));
  FileReplacement file = begin(destination, OutputKind::onnx, written.model);
  if (data) api::unwrap(data->finish(false));
  api::unwrap(file.finish(false));
  return out;
}

}  // namespace

OnnxExport export_onnx(const std::filesystem::path& path, const std::filesystem::path& destination,
                       const OnnxExportOptions& options) {
  return write(api::unwrap(import::import_model(api::unwrap(format::open_model(boundary::native(path))), {})),
               boundary::native(destination), options, {boundary::native(path)});
}

OnnxExport export_onnx(const ModelAssetView& model, const std::filesystem::path& destination,
                       const OnnxExportOptions& options) {
  std::map<std::string, Bytes> blobs;
  for (const auto& [name, data] : model.blobs) blobs.emplace(name, Bytes{data, model.owner});
  const format::ModelFile file = api::unwrap(format::open_model_bytes({model.specification, model.owner}, blobs));
  return write(api::unwrap(import::import_model(file, {})), boundary::native(destination), options);
}

OnnxExport export_mil_onnx(const std::string& text, const std::filesystem::path& destination,
                           const OnnxExportOptions& options,
                           const std::map<std::string, std::vector<std::byte>>& weights) {
  std::map<std::string, Bytes> files;
  for (const auto& [name, bytes] : weights) files.emplace(name, Bytes::copy_of(bytes));
  return write(api::unwrap(api::import_text(text, files, nullptr)), boundary::native(destination), options);
}

}  // namespace moka
