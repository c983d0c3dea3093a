#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <csignal>
#include <cstring>
#include <fstream>
#include <iostream>

#include "hostile/mutate_util.h"
#include "moka/model.h"
#include "models_folder.h"

#if defined(__SANITIZE_ADDRESS__)
// An allocation far beyond the budget fails, as the address space limit makes it fail in plain builds.
extern "C" const char* __asan_default_options() {
  return "max_allocation_size_mb=1024:allocator_may_return_null=1:hard_rss_limit_mb=6144:detect_leaks=0:detect_odr_violation=0";
}
constexpr bool kSanitized = true;
#else
constexpr bool kSanitized = false;
#endif

namespace moka::test {
namespace {

namespace fs = std::filesystem;

constexpr size_t kBudget = size_t{512} << 20;
/// What a process may take beyond the budget: code, stacks, the decoded model.
constexpr size_t kOverhead = size_t{1} << 30;
constexpr unsigned kSeconds = kSanitized ? 120 : 20;

/// One file of one model. `root`: what is loaded; `part`: the file that is changed, empty when it is the root itself.
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
    std::vector<fs::path> packages;
    for (auto it = fs::recursive_directory_iterator(folder); it != fs::recursive_directory_iterator(); ++it) {
      fs::path p = it->path();
      if (it->is_directory() && (p.extension() == ".mlpackage" || p.extension() == ".mlmodelc")) {
        for (const auto& e : fs::recursive_directory_iterator(p))
          if (e.is_regular_file()) out.push_back({prefix + p.filename().string() + "/" + e.path().lexically_relative(p).string(), p, e.path().lexically_relative(p)});
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

uint64_t seed_of(const std::string& text, uint64_t number) {
  uint64_t h = 1469598103934665603u;
  for (char c : text) h = (h ^ static_cast<uint8_t>(c)) * 1099511628211u;
  return h + number;
}

int cases_per_file() {
  const char* set = std::getenv("MOKA_HOSTILE_CASES");
  return set != nullptr ? std::max(1, std::atoi(set)) : kSanitized ? 6 : 12;
}

/// What the child tells its parent.
struct Progress {
  volatile int current;
  volatile int loaded, predicted;
  char what[1000];
};

/// The inputs of the description, when they are small enough to make.
bool small_inputs(const FunctionDescription& f) {
  for (const auto& x : f.inputs) {
    double n = 1;
    if (x.type == FeatureType::multi_array)
      for (int64_t d : x.array.shape) n *= static_cast<double>(d);
    if (x.type == FeatureType::image) n = static_cast<double>(x.image.width) * static_cast<double>(x.image.height);
    if (n > 1e7 || n < 0) return false;
  }
  return true;
}

/// Returns for answers and errors; anything else ends the process.
void use(const fs::path& path, int number, Progress& progress) {
  ModelConfiguration c;
  c.memory_budget = kBudget;
  c.loop_limit = 1000;
  c.threads = 1;
  c.optimize = number % 4 != 3;
  if (number % 6 == 5) c.device = "reference";
  try {
    Model m = Model::load(path.string(), c);
    progress.loaded = progress.loaded + 1;
    (void)m.structure();
    try {
      (void)m.mil();
    } catch (const Exception& e) {
      if (e.kind() == ErrorKind::internal) throw;
    }
    std::optional<State> state;
    PredictionOptions options;
    if (!m.function().states.empty()) {
      state = m.new_state();
      options.state = &*state;
    }
    if (number % 5 == 0) {
      (void)m.compute_plan();
    } else if (small_inputs(m.function())) {
      Features in = random_inputs(m.function(), static_cast<uint64_t>(number));
      Features out = m.predict(in, options);
      if (number % 2 == 0) m.predict(in, out, options);
    }
    progress.predicted = progress.predicted + 1;
  } catch (const Exception& e) {
    std::string_view what = e.what();
    if (std::getenv("MOKA_HOSTILE_VERBOSE") != nullptr) std::cerr << number << ": " << what << "\n";
    if (e.kind() != ErrorKind::internal && !what.empty()) return;
    std::strncpy(progress.what, e.what(), sizeof progress.what - 1);
    _exit(70);
  } catch (const std::exception& e) {
    std::strncpy(progress.what, e.what(), sizeof progress.what - 1);
    _exit(71);
  }
}

class Hostile : public testing::TestWithParam<Subject> {};

/// Every changed file gives an answer or an error; crashes, hangs, errors that blame Moka itself and memory beyond the
/// budget fail. MOKA_HOSTILE_CASES sets how many changes of each file are tried, MOKA_HOSTILE_ONLY picks one of them.
TEST_P(Hostile, AnswersOrRefuses) {
  const Subject& s = GetParam();
  const std::string bytes = read_all(s.part.empty() ? s.root : s.root / s.part, s.gzip);
  fs::path folder = fs::temp_directory_path() / ("moka_hostile_" + std::to_string(getpid()));
  fs::create_directories(folder);
  fs::path root = folder / (s.gzip ? s.root.stem() : s.root.filename());
  if (!s.part.empty()) fs::copy(s.root, root, fs::copy_options::recursive);
  fs::path changed = s.part.empty() ? root : root / s.part;

  auto* progress = static_cast<Progress*>(mmap(nullptr, sizeof(Progress), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  ASSERT_NE(progress, MAP_FAILED);
  const char* only = std::getenv("MOKA_HOSTILE_ONLY");
  int count = cases_per_file(), next = 0;
  if (only != nullptr) next = std::atoi(only), count = next + 1;
  while (next < count) {
    std::cout.flush();
    pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      std::signal(SIGALRM, SIG_DFL);
      if (!kSanitized) {
        rlimit limit{kBudget + kOverhead, kBudget + kOverhead};
        setrlimit(RLIMIT_AS, &limit);
      }
      rlimit no_core{0, 0};
      setrlimit(RLIMIT_CORE, &no_core);
      for (int i = next; i < count; i++) {
        progress->current = i;
        progress->what[0] = 0;
        std::string version = mutate(bytes, layout_of(changed.filename().string()), seed_of(s.name, static_cast<uint64_t>(i)));
        fs::remove(changed);
        std::ofstream(changed, std::ios::binary) << version;
        if (only == nullptr) alarm(kSeconds);
        use(root, i, *progress);
      }
      _exit(0);
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) break;
    int number = progress->current;
    fs::path kept = fs::path(MOKA_HOSTILE_FOUND) / (std::to_string(seed_of(s.name, static_cast<uint64_t>(number))) + "_" + changed.filename().string());
    fs::create_directories(kept.parent_path());
    fs::copy_file(changed, kept, fs::copy_options::overwrite_existing);
    std::string how = !WIFSIGNALED(status)               ? "ended with " + std::to_string(WEXITSTATUS(status))
                      : WTERMSIG(status) == SIGALRM ? "took more than " + std::to_string(kSeconds) + " s"
                                                    : std::string("died: ") + strsignal(WTERMSIG(status));
    ADD_FAILURE() << s.name << ", change " << number << ": " << how << " " << progress->what << "\n  kept as " << kept;
    next = number + 1;
  }
  std::cout << "  " << s.name << ": " << count << " changes, " << progress->loaded << " loaded, " << progress->predicted << " predicted\n";
  munmap(progress, sizeof(Progress));
  fs::remove_all(folder);
}

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(Hostile);
INSTANTIATE_TEST_SUITE_P(Files, Hostile, testing::ValuesIn(subjects()), [](const auto& info) {
  std::string n = info.param.name;
  for (char& c : n)
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  return n;
});

}  // namespace
}  // namespace moka::test
