// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "api/api_util.h"
#include "moka/moka.hpp"
#include "temporary_folder.h"

/// Tests for the paths that the public interface takes.
namespace moka::test {
namespace {

namespace fs = std::filesystem;

#define MOKA_PATHS_MODEL MOKA_GOLDEN "/cached/model.mlpackage"

/// The calls below take a path in each form that a program may have it in.
template <class Path>
void read_and_write(const Path& model, const Path& source, const Path& package, const Path& compiled,
                    const Path& graph) {
  EXPECT_EQ(Model::load(model).function().outputs.size(), 1u);
  ASSERT_TRUE(Model::try_load(model).has_value());
  EXPECT_EQ(Model::describe(model).functions.size(), 1u);
  EXPECT_FALSE(Model::outline(model).structure.functions.empty());
  EXPECT_FALSE(Inspection::open(model).outline().structure.functions.empty());
  EXPECT_FALSE(model_metadata(model).empty());
  EXPECT_FALSE(generate_interface(model).empty());
  EXPECT_TRUE(compare_models(model, source).same());
  lint::Options lint;
  lint.predict = false;
  EXPECT_EQ(lint::check(model, lint).predictions, 0u);
  ModelSource::open(model).save(package);
  EXPECT_TRUE(compile_model(package, compiled).empty());
  decompile_model(compiled, package);
  export_onnx(package, graph);
  EXPECT_EQ(import_onnx(graph).outputs.size(), 1u);
  EXPECT_FALSE(refused_output(graph, FileKind::onnx, {package, model}));
  EXPECT_TRUE(refused_output(graph, FileKind::onnx, {graph}));
  EXPECT_TRUE(cached_models(package).empty());
  EXPECT_EQ(clear_cache(package), 0u);
}

TEST(Paths, AreTexts) {
  const TemporaryFolder folder;
  read_and_write<std::string>(MOKA_PATHS_MODEL, MOKA_PATHS_MODEL, (folder / "m.mlpackage").string(),
                              (folder / "m.mlmodelc").string(), (folder / "m.onnx").string());
}

TEST(Paths, AreViewsOfTexts) {
  const TemporaryFolder folder;
  const std::string package = (folder / "m.mlpackage").string(), compiled = (folder / "m.mlmodelc").string(),
                    graph = (folder / "m.onnx").string();
  read_and_write<std::string_view>(MOKA_PATHS_MODEL, MOKA_PATHS_MODEL, package, compiled, graph);
  read_and_write<const char*>(MOKA_PATHS_MODEL, MOKA_PATHS_MODEL, package.c_str(), compiled.c_str(), graph.c_str());
}

TEST(Paths, ArePaths) {
  const TemporaryFolder folder;
  read_and_write<fs::path>(MOKA_PATHS_MODEL, MOKA_PATHS_MODEL, folder / "m.mlpackage", folder / "m.mlmodelc",
                           folder / "m.onnx");
}

TEST(Paths, AreLiterals) {
  EXPECT_EQ(Model::load(MOKA_PATHS_MODEL).function().outputs.size(), 1u);
  EXPECT_EQ(Model::describe(MOKA_PATHS_MODEL).functions.size(), 1u);
  EXPECT_TRUE(compare_models(MOKA_PATHS_MODEL, MOKA_PATHS_MODEL).same());
}

TEST(Paths, ListsAreOfTextsOrPaths) {
  const std::vector<std::string> texts = {MOKA_PATHS_MODEL};
  const std::vector<fs::path> paths = {MOKA_PATHS_MODEL};
  const auto inside = fs::path(MOKA_PATHS_MODEL) / "Manifest.json";
  EXPECT_TRUE(refused_output(inside, FileKind::json, texts));
  EXPECT_TRUE(refused_output(inside, FileKind::json, paths));
  set_linked_model_folders(texts);
  set_linked_model_folders(paths);
  set_linked_model_folders({"one", "two"});
  set_linked_model_folders({});
}

TEST(Paths, WithNulBytesAreErrors) {
  using namespace std::string_literals;
  const fs::path cut = MOKA_PATHS_MODEL "\0.txt"s, model = MOKA_PATHS_MODEL;
  const TemporaryFolder folder;
  const fs::path out = folder / "out\0.mlpackage"s;
  ModelConfiguration cache, kernels, rates, rules;
  cache.cache = kernels.kernel_cache = rates.rates = rules.neural_engine_rules = "off\0x"s;
  const std::vector<std::pair<const char*, std::function<void()>>> calls = {
      {"load", [&] { Model::load(cut); }},
      {"load with a cache", [&] { Model::load(model, cache); }},
      {"load with a kernel cache", [&] { Model::load(model, kernels); }},
      {"load with rates", [&] { Model::load(model, rates); }},
      {"load with rules", [&] { Model::load(model, rules); }},
      {"describe", [&] { Model::describe(cut); }},
      {"outline", [&] { Model::outline(cut); }},
      {"Inspection::open", [&] { Inspection::open(cut); }},
      {"ModelSource::open", [&] { ModelSource::open(cut); }},
      {"ModelSource::save", [&] { ModelSource::open(model).save(out); }},
      {"compile_model", [&] { compile_model(cut, folder / "m.mlmodelc"); }},
      {"compile_model to", [&] { compile_model(model, out); }},
      {"decompile_model", [&] { decompile_model(cut, folder / "m.mlpackage"); }},
      {"decompile_model to", [&] { decompile_model(model, out); }},
      {"model_metadata", [&] { model_metadata(cut); }},
      {"generate_interface", [&] { generate_interface(cut); }},
      {"compare_models", [&] { compare_models(model, cut); }},
      {"lint::check", [&] { lint::check(cut); }},
      {"lint::fix", [&] { lint::fix(cut); }},
      {"export_onnx", [&] { export_onnx(cut, folder / "m.onnx"); }},
      {"export_onnx to", [&] { export_onnx(model, out); }},
      {"import_onnx", [&] { import_onnx(cut); }},
      {"encrypt_model", [&] { encrypt_model(cut, folder / "m.age", {}); }},
      {"decrypt_model", [&] { decrypt_model(cut, folder / "m.mlpackage"); }},
      {"decrypt_model to", [&] { decrypt_model(model, out); }},
      {"read_identity_file", [&] { read_identity_file(cut); }},
      {"read_passphrase_file", [&] { read_passphrase_file(cut); }},
      {"register_model_file", [&] { register_model_file("Cut", cut); }},
      {"set_linked_model_folders", [&] { set_linked_model_folders({cut}); }},
      {"load_plugin", [&] { load_plugin(cut); }},
      {"refused_output", [&] { refused_output(cut, FileKind::json); }},
      {"refused_output of", [&] { refused_output(folder / "x", FileKind::json, {cut}); }},
      {"write_file", [&] { write_file(out, FileKind::json, {}); }},
      {"Trace", [&] { Trace trace(out); }},
      {"summarize_trace", [&] { summarize_trace(cut); }},
      {"cache_folder", [&] { cache_folder("x\0y"s); }},
      {"cached_models", [&] { cached_models(cut); }},
      {"clear_cache", [&] { clear_cache(cut); }},
      {"read_rates", [&] { read_rates("x\0y"s); }},
      {"UpdateTask", [&] { UpdateTask(cut, UpdateExamples{}); }},
  };
  for (const auto& [name, call] : calls) {
    SCOPED_TRACE(name);
    expect_error(ErrorKind::invalid_argument, {"expected a text without NUL bytes"}, call);
  }
  EXPECT_TRUE(fs::is_empty(folder.path()));
  const auto tried = Model::try_load(cut);
  ASSERT_FALSE(tried.has_value());
  EXPECT_EQ(tried.error().message, "path '" MOKA_PATHS_MODEL "': expected a text without NUL bytes, got one at byte " +
                                       std::to_string(std::string_view(MOKA_PATHS_MODEL).size()));
}

}  // namespace
}  // namespace moka::test
