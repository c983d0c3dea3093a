// SPDX-License-Identifier: Apache-2.0
#include "view/save.h"

#include <fmt/format.h>

#include <filesystem>

#include "edit_actions.h"
#include "moka/compiler.h"
#include "moka/edit.h"
#include "moka/onnx_export.h"
#include "usage_error.h"

namespace moka::cli {
namespace {

namespace fs = std::filesystem;

fs::path target_of(const Json& request) {
  const std::string text = request.at("path").get<std::string>();
  if (text.empty()) throw UsageError("path: expected a file to write, got none");
  fs::path path = fs::absolute(text).lexically_normal();
  if (!path.has_filename()) path = path.parent_path();
  if (fs::exists(path)) throw UsageError(fmt::format("'{}' exists already; choose another name", path.string()));
  return path;
}

}  // namespace

Json save_model(const LoadOptions& load, const Json& request) {
  const fs::path path = target_of(request);
  const std::string function = request.value("function", std::string()), extension = path.extension().string();
  const auto shapes = request.value("shapes", std::vector<std::string>());
  if (extension == ".mlmodel" || extension == ".mlpackage") {
    ModelSource source = ModelSource::open(load.path);
    if (!function.empty()) source = edit::extract_function(source, function);
    if (!shapes.empty()) source = edit_action("--shape")->apply(source, fmt::format("{}", fmt::join(shapes, ",")));
    edit::check(source);
    source.save(path.string());
  } else if (extension == ".onnx") {
    if (!shapes.empty()) throw UsageError("sizes are set in an .mlmodel or .mlpackage");
    export_onnx(load.path, path.string(), {.function = function});
  } else if (extension == ".mlmodelc") {
    if (!shapes.empty() || !function.empty())
      throw UsageError("a compiled model has all functions and sizes; save an .mlpackage first, and compile that");
    compile_model(load.path, path.string());
  } else {
    throw UsageError(
        fmt::format("'{}': expected a name that ends in .mlmodel, .mlpackage, .mlmodelc or .onnx", path.string()));
  }
  return {{"written", path.string()}};
}

}  // namespace moka::cli
