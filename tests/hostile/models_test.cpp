// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <fstream>

#include "hostile/guard_util.h"
#include "hostile/mutate_util.h"
#include "hostile/short_update.h"
#include "models_folder.h"
#include "moka/model.h"

namespace moka::test {
namespace {

namespace fs = std::filesystem;

/// One file of one model. `root`: the path to load; `part`: the file that is changed, empty when it is the root itself.
struct Subject {
  std::string name;
  fs::path root, part;
  bool gzip = false;
};

std::string read_all(const fs::path& path, bool gzip) {
  std::string out;
  if (!gzip) {
    std::ifstream in(path, std::ios::binary);
    out.assign(std::istreambuf_iterator<char>(in), {});
    return out;
  }
  gzFile in = gzopen(path.c_str(), "rb");
  char buffer[1 << 14];
  for (int n; in != nullptr && (n = gzread(in, buffer, sizeof buffer)) > 0;) out.append(buffer, static_cast<size_t>(n));
  if (in != nullptr) gzclose(in);
  return out;
}

std::vector<Subject> subjects() {
  std::vector<Subject> out;
  auto add_folder = [&](const fs::path& folder, const std::string& prefix) {
    for (auto it = fs::recursive_directory_iterator(folder); it != fs::recursive_directory_iterator(); ++it) {
      fs::path p = it->path();
      if (it->is_directory() && (p.extension() == ".mlpackage" || p.extension() == ".mlmodelc")) {
        for (const auto& e : fs::recursive_directory_iterator(p)) {
          fs::path part = e.path().lexically_relative(p);
          if (e.is_regular_file()) out.push_back({prefix + (p.filename() / part).string(), p, part});
        }
        it.disable_recursion_pending();
      } else if (p.extension() == ".mlmodel") {
        out.push_back({prefix + p.filename().string(), p, {}});
      } else if (p.extension() == ".gz" && p.stem().extension() == ".mlmodel") {
        out.push_back({prefix + p.parent_path().filename().string() + "/model.mlmodel", p, {}, true});
      }
    }
  };
  if (auto folder = models_folder()) add_folder(*folder, "");
  for (const auto& e : fs::directory_iterator(MOKA_GOLDEN))
    if (e.is_directory()) add_folder(e.path(), "golden/" + e.path().filename().string() + "/");
  std::sort(out.begin(), out.end(), [](const Subject& a, const Subject& b) { return a.name < b.name; });
  return out;
}

/// Whether random values of the features fit in memory.
bool small_inputs(const std::vector<FeatureDescription>& features) {
  for (const auto& x : features) {
    double n = 1;
    if (x.type == FeatureType::multi_array)
      for (int64_t d : x.array.shape) n *= static_cast<double>(d);
    if (x.type == FeatureType::image) n = static_cast<double>(x.image.width) * static_cast<double>(x.image.height);
    if (n > 1e7 || n < 0) return false;
  }
  return true;
}

void use(const fs::path& path, int number) {
  (void)Model::outline(path.string());
  ModelConfiguration c;
  c.memory_budget = kBudget;
  c.loop_limit = kLoopLimit;
  c.threads = 1;
  c.optimize = number % 4 != 3;
  if (number % 6 == 5) c.device = "reference";
  Model m = Model::load(path.string(), c);
  count_loaded();
  (void)m.operations();
  (void)m.mil(true);
  std::optional<State> state;
  PredictionOptions options;
  if (!m.function().states.empty()) {
    state = m.new_state();
    options.state = &*state;
  }
  if (number % 5 == 0) {
    (void)m.compute_plan();
  } else if (small_inputs(m.function().inputs)) {
    Features in = random_inputs(m.function(), static_cast<uint64_t>(number));
    Features out = m.predict(in, options);
    if (number % 2 == 0) m.predict(in, out, options);
  }
  count_predicted();
  const ModelDescription& d = m.description();
  if (d.update && small_inputs(d.update->training_inputs))
    update_shortly(ModelSource::open(path.string()), d, c, static_cast<uint64_t>(number));
}

class HostileModels : public testing::TestWithParam<Subject> {};

/// Every changed file gives a prediction or an error.
TEST_P(HostileModels, AnswerOrRefuse) {
  const Subject& s = GetParam();
  const std::string bytes = read_all(s.part.empty() ? s.root : s.root / s.part, s.gzip);
  fs::path folder = fs::temp_directory_path() / ("moka_hostile_" + std::to_string(getpid()));
  fs::path root = folder / (s.gzip ? s.root.stem() : s.root.filename());
  fs::create_directories(folder);
  if (!s.part.empty()) fs::copy(s.root, root, fs::copy_options::recursive);
  fs::path changed = s.part.empty() ? root : root / s.part;
  auto version = [&](int i) {
    return mutate(bytes, layout_of(changed.filename().string()), seed_of(s.name, static_cast<uint64_t>(i)));
  };
  guarded(
      s.name, case_count(60),
      [&](int i) {
        fs::remove(changed);
        std::ofstream(changed, std::ios::binary) << version(i);
        use(root, i);
      },
      [&](int i) { return keep_bytes(s.name + "." + std::to_string(i), version(i)); });
  fs::remove_all(folder);
}

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(HostileModels);
INSTANTIATE_TEST_SUITE_P(Files, HostileModels, testing::ValuesIn(subjects()), [](const auto& info) {
  std::string n = info.param.name;
  for (char& c : n)
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  return n;
});

}  // namespace
}  // namespace moka::test
