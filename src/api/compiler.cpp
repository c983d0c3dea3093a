// SPDX-License-Identifier: Apache-2.0
#include "moka/compiler.h"

#include <filesystem>

#include "api/internal.h"
#include "boundary/path.h"
#include "compiler/class_name.h"
#include "compiler/compiler.h"
#include "compiler/decompile.h"
#include "compiler/generate/generate.h"
#include "format/mlpackage/write.h"
#include "format/write_files.h"

namespace moka {
namespace {

/// `inputs`: paths from which the model comes.
std::vector<EmbeddedNetwork> compile(const format::ModelFile& file, const std::string& name,
                                     const std::string& destination, const std::vector<std::string>& inputs,
                                     const CompilationOptions& options) {
  api::unwrap(format::refuse_encrypted(file, "compiling it"));
  const trace::Span span(trace::Lane::activity, [&] { return trace::label(cat("compile ", name), "compile"); });
  std::vector<compiler::Embedded> embedded;
  const compiler::Options inside{!options.embed_specification, options.strict, &embedded};
  api::unwrap(format::replace_folder(format::ropes_of(api::unwrap(compiler::compile(file, name, inside))), destination,
                                     OutputKind::compiled_model, options.overwrite == Overwrite::any, inputs));
  std::vector<EmbeddedNetwork> out;
  for (compiler::Embedded& e : embedded) {
    std::string text = e.text();
    out.push_back({std::move(e.model), std::move(e.layer), std::move(e.type), std::move(e.reason), std::move(text)});
  }
  return out;
}

/// Opens a model to compile it. Apple's compiler copies every text of a package.
format::ModelFile open_source(const std::filesystem::path& path) {
  format::OpenOptions options;
  options.verbatim_texts = true;
  return api::unwrap(format::open_model(boundary::native(path), options));
}

}  // namespace

std::vector<EmbeddedNetwork> compile_model(const std::filesystem::path& path, const std::filesystem::path& destination,
                                           const CompilationOptions& options) {
  return compile(open_source(path), compiler::model_name(boundary::native(path)), boundary::native(destination),
                 {boundary::native(path)}, options);
}

std::vector<EmbeddedNetwork> compile_model(const ModelAsset& asset, const std::filesystem::path& destination,
                                           const CompilationOptions& options) {
  ModelAssetView view{asset.specification, {asset.blobs.begin(), asset.blobs.end()}, nullptr};
  return compile_model(view, destination, options);
}

std::vector<EmbeddedNetwork> compile_model(const ModelAssetView& asset, const std::filesystem::path& destination,
                                           const CompilationOptions& options) {
  std::map<std::string, Bytes> blobs;
  for (const auto& [name, data] : asset.blobs) blobs.emplace(name, Bytes{data, asset.owner});
  return compile(api::unwrap(format::open_model_bytes({asset.specification, asset.owner}, blobs)),
                 compiler::model_name(boundary::native(destination)), boundary::native(destination), {}, options);
}

void decompile_model(const std::filesystem::path& from, const std::filesystem::path& to, Overwrite overwrite) {
  const std::string &path = boundary::native(from), &destination = boundary::native(to);
  const format::ModelFile file = api::unwrap(format::open_model(path));
  api::unwrap(format::refuse_encrypted(file, "decompiling it"));
  if (file.compiled() == nullptr)
    api::raise(fail(ErrorCode::invalid_argument, "'", path, "': expected a compiled model (.mlmodelc)"));
  const bool package = (to.has_filename() ? to : to.parent_path()).extension() == ".mlpackage";
  const OutputKind kind = package ? OutputKind::package : OutputKind::specification;
  const bool force = overwrite == Overwrite::any;
  api::unwrap(check_output(destination, kind, force, {path}));
  compiler::Decompiled model = api::unwrap(compiler::decompile(file));
  if (!package && model.has_program)
    api::raise(fail(ErrorCode::invalid_argument, "'", destination,
                    "': expected a path that ends with .mlpackage: the model is an ML program"));
  format::Rope specification(Bytes::from(std::move(model.specification)));
  if (!package) return api::unwrap(format::replace_file(std::move(specification), destination, kind, force, {path}));
  api::unwrap(format::replace_folder(format::package_files(std::move(specification), format::ropes_of(model.weights)),
                                     destination, kind, force, {path}));
}

std::map<std::string, std::string> generate_interface(const std::filesystem::path& path,
                                                      const InterfaceOptions& options) {
  const bool core_ml = options.language == Language::swift || options.language == Language::objective_c;
  const import::ModelDescription description =
      api::unwrap(compiler::interface_of(api::unwrap(format::open_model(boundary::native(path))), core_ml));
  return compiler::generate(description, compiler::model_name(boundary::native(path)),
                            static_cast<compiler::Language>(options.language),
                            {options.swift_version, options.public_access, options.global_module});
}

std::string model_metadata(const std::filesystem::path& path) {
  return api::unwrap(compiler::metadata_of(open_source(path), compiler::model_name(boundary::native(path)))).dump(2);
}

}  // namespace moka
