// SPDX-License-Identifier: Apache-2.0
#include <chrono>
#include <cstdio>
#include <exception>
#include <map>
#include <optional>
#include <string>

#include "demo/melody.h"
#include "demo/notes.h"
#include "demo/piano_roll.h"
#include "demo/score.h"
#include "demo/tiny_model.h"
#include "demo/transcribe.h"
#include "io/table.h"
#include "moka/model.h"

namespace {

using Clock = std::chrono::steady_clock;

struct Options {
  std::string model, output = "piano_roll.png", save;
};

void print_where(const moka::Model& model) {
  moka::ComputePlan plan = model.compute_plan({}, true);
  std::map<std::pair<std::string, std::string>, std::pair<int, double>> kernels;
  for (const auto& op : plan.operations) {
    auto& [count, seconds] = kernels[{op.device, op.kernel.empty() ? op.type : op.kernel}];
    count++;
    seconds += op.measured_seconds > 0 ? op.measured_seconds : 0;
  }
  moka::io::Table table({"device", "kernel", "operations", "ms"});
  for (const auto& [key, value] : kernels) {
    char ms[32];
    std::snprintf(ms, sizeof ms, "%.2f", value.second * 1e3);
    table.add_row({key.first, key.second, std::to_string(value.first), ms});
  }
  std::printf("Where its operations ran (%zu in the model, %zu known before running):\n%s\n", plan.operations_in_source,
              plan.folded, table.render(moka::io::use_color(stdout)).c_str());
}

int run(const Options& options) {
  std::vector<demo::Note> played = demo::melody();
  std::vector<float> sound = demo::synthesize(played, demo::kSampleRate);
  double length = static_cast<double>(sound.size()) / demo::kSampleRate;
  std::printf("Plucked %zu notes, %.1f s of sound.\n", played.size(), length);

  auto start = Clock::now();
  moka::Model model = options.model.empty() ? demo::tiny_model().build() : moka::Model::load(options.model);
  double load = std::chrono::duration<double>(Clock::now() - start).count();
  start = Clock::now();
  std::vector<demo::Note> found;
  {
    std::optional<moka::io::Progress> line;
    found = demo::transcribe(model, sound, [&](size_t, size_t total) {
      if (!line) line.emplace("listening", total);
      line->advance();
    });
  }
  double predict = std::chrono::duration<double>(Clock::now() - start).count();

  demo::Score score = demo::score(played, found);
  std::printf("\n%s\n", demo::side_by_side(played, found, score, moka::io::use_color(stdout)).c_str());
  std::printf("Loaded %s in %.1f ms; predicted %.1f s of sound in %.0f ms (%.0f times as fast as it plays).\n\n",
              options.model.empty() ? "the demo's own model" : "Basic Pitch", load * 1e3, length, predict * 1e3,
              length / predict);
  print_where(model);
  demo::draw_piano_roll(options.output, played, found);
  std::printf("The piano roll is in %s\n", options.output.c_str());
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; i++) {
    std::string a = argv[i];
    if (a == "--output" && i + 1 < argc) {
      options.output = argv[++i];
    } else if (a == "--save-own" && i + 1 < argc) {
      options.save = argv[++i];
    } else if (a.starts_with("-")) {
      std::fprintf(stderr, "usage: demo [nmp.mlpackage] [--output piano_roll.png] [--save-own own.mlpackage]\n");
      return 2;
    } else {
      options.model = a;
    }
  }
  try {
    if (!options.save.empty()) {
      demo::tiny_model().save(options.save);
      return 0;
    }
    return run(options);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "demo: %s\n", e.what());
    return 3;
  }
}
