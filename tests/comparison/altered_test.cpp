// SPDX-License-Identifier: Apache-2.0
#include <fstream>
#include <nlohmann/json.hpp>

#include "alterations_util.h"
#include "base64.h"
#include "models_folder.h"
#include "moka/comparison.h"
#include "temporary_folder.h"

namespace moka::comparison_test {
namespace {

namespace fs = std::filesystem;

struct Base {
  std::string name;
  std::function<ModelSource()> open;  ///< each time a copy of its own
};

/// Networks of one or a few layers, and models of the folders: those that can be compared.
std::vector<Base> small_networks() {
  std::vector<Base> out;
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(MOKA_GOLDEN "/nn_layers")) files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  for (const fs::path& file : files) {
    const nlohmann::json root = nlohmann::json::parse(std::ifstream(file));
    for (const auto& one : root.at("cases")) {
      if (!one.contains("model")) continue;
      const std::string bytes = test::base64(one.at("model").get<std::string>());
      out.push_back({file.stem().string() + "/" + one.at("name").get<std::string>(), [bytes] {
                       return ModelSource(
                           Message::parse("Model", std::as_bytes(std::span<const char>(bytes.data(), bytes.size()))));
                     }});
    }
  }
  return out;
}

std::vector<Base> published_models(const fs::path& folder) {
  std::vector<Base> out;
  std::vector<fs::path> files;
  for (auto at = fs::recursive_directory_iterator(folder); at != fs::recursive_directory_iterator(); ++at) {
    const auto ending = at->path().extension();
    if (ending == ".mlmodelc" || ending == ".mlpackage") at.disable_recursion_pending();
    if (ending == ".mlmodel" || ending == ".mlpackage") files.push_back(at->path());
  }
  std::sort(files.begin(), files.end());
  for (const fs::path& file : files)
    out.push_back({fs::relative(file, folder).string(), [file] { return ModelSource::open(file.string()); }});
  return out;
}

std::string saved(const ModelSource& source, const fs::path& folder, const std::string& name) {
  if (source.weight_files().empty()) {
    const std::vector<std::byte> bytes = source.specification().serialize();
    std::ofstream(folder / (name + ".mlmodel"), std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
    return (folder / (name + ".mlmodel")).string();
  }
  const std::string path = (folder / (name + ".mlpackage")).string();
  source.save(path);
  return path;
}

/// Another name for every operation.
edit::Names other_names(const ModelComparison& found) {
  edit::Names out;
  for (const auto& op : found.a)
    if (!op.name.empty()) out[op.name] = "other_" + std::to_string(out.size());
  return out;
}

bool names(const ModelComparison& found, const ModelComparison::Difference& d, const Leaf& leaf) {
  // Constants of layers are named after them.
  const auto is_named = [&](const std::string& name) {
    return name == leaf.operation || name.starts_with(leaf.operation + "_");
  };
  return is_named(d.first_name) || (d.a >= 0 && is_named(found.a[static_cast<size_t>(d.a)].name));
}

std::string describe(const ModelComparison& found) {
  std::string out;
  for (const auto& d : found.differences)
    out += "\n  " + (d.a < 0 ? "outputs" : found.a[static_cast<size_t>(d.a)].name) + " " + d.parameter + ": " +
           d.first + " and " + d.second;
  for (const auto* list : {&found.a, &found.b})
    for (const auto& op : *list)
      if (op.partner < 0 && !op.is_transparent) out += "\n  without a partner: " + op.name + " (" + op.type + ")";
  return out;
}

class Altered : public ::testing::Test {
 protected:
  /// Alters one number of a model. Returns whether the comparison was made.
  bool check(const Base& base, size_t number, bool rename) {
    std::mt19937 random(static_cast<uint32_t>(number));
    const bool small = number % 2 == 0;
    const std::string before = saved(base.open(), folder_.path(), "before");
    ModelComparison same;
    try {
      same = compare_models(before, before);
    } catch (const Exception& e) {
      if (e.kind() == ErrorKind::unsupported) return false;
      ADD_FAILURE() << base.name << ": " << e.what();
      return false;
    }
    EXPECT_TRUE(same.same()) << base.name;
    const edit::Names others = other_names(same);
    for (int attempt = 0; attempt < 20; ++attempt) {
      ModelSource source = base.open();
      const std::vector<Leaf> leaves = leaves_of(source);
      if (leaves.empty()) return false;
      const Leaf leaf = leaves[random() % leaves.size()];
      ModelComparison found;
      try {
        if (!alter(source, leaf, small, random)) continue;
        found = compare_models(
            before, saved(rename ? edit::rename_operations(source, others) : source, folder_.path(), "after"));
        // A field that the layer does not read, such as one that only other modes use.
        if (found.same() && !leaf.is_weight &&
            Model::load(saved(source, folder_.path(), "plain")).mil() == Model::load(before).mil())
          continue;
      } catch (const Exception&) {
        continue;  // the altered model is malformed
      }
      const std::string what = base.name + ": " + leaf.operation + "." + leaf.path + (small ? " (small)" : "");
      EXPECT_FALSE(found.same()) << what;
      // A parameter may change the shapes that others depend on, or what a layer consists of; a weight changes nothing
      // else.
      const auto at = others.find(leaf.operation);
      const std::string renamed = at == others.end() ? leaf.operation : at->second;
      bool is_named = false;
      for (const auto& d : found.differences) is_named |= names(found, d, leaf);
      for (const auto* list : {&found.a, &found.b})
        for (const auto& op : *list) is_named |= op.partner < 0 && (op.name == leaf.operation || op.name == renamed);
      for (const auto& f : found.fields)
        is_named |= f.what.find("'" + leaf.operation + "'") != std::string::npos ||
                    f.what.find("'" + renamed + "'") != std::string::npos;
      EXPECT_TRUE(is_named) << what << describe(found);
      if (leaf.is_weight) {
        for (const auto& d : found.differences) EXPECT_TRUE(names(found, d, leaf)) << what << describe(found);
        for (const auto* list : {&found.a, &found.b})
          for (const auto& op : *list) EXPECT_TRUE(op.partner >= 0 || op.is_transparent) << what << describe(found);
      }
      return true;
    }
    return false;
  }

  test::TemporaryFolder folder_;
};

TEST_F(Altered, SmallNetworks) {
  size_t number = 0, compared = 0;
  for (const Base& base : small_networks()) compared += check(base, number++, false);
  EXPECT_GE(compared, 50u);
  RecordProperty("compared", static_cast<int>(compared));
}

TEST_F(Altered, SmallNetworksWhoseLayersAreRenamed) {
  size_t number = 1, compared = 0;
  for (const Base& base : small_networks()) compared += check(base, number++, true);
  EXPECT_GE(compared, 50u);
}

TEST_F(Altered, PublishedModels) {
  MOKA_NEEDS_MODELS(models);
  size_t number = 0, compared = 0;
  for (const Base& base : published_models(*models))
    for (int i = 0; i < 6; ++i, ++number) compared += check(base, number, i % 3 == 2);
  EXPECT_GE(compared, 50u);
  RecordProperty("compared", static_cast<int>(compared));
}

}  // namespace
}  // namespace moka::comparison_test
