#pragma once

#include <functional>
#include <string>

namespace CLI {
class App;
}

namespace moka::cli {

/// A subcommand that was added to its parent.
struct Command {
  CLI::App* app = nullptr;
  std::string example;       ///< example in the overview
  std::function<int()> run;  ///< returns the exit code; call it only after parsing
};

Command add_inspect(CLI::App& parent);
Command add_predict(CLI::App& parent);
Command add_explain(CLI::App& parent);
Command add_bench(CLI::App& parent);
Command add_tune(CLI::App& parent);
Command add_rates(CLI::App& parent);
Command add_report(CLI::App& parent);
Command add_trace(CLI::App& parent);
Command add_cache(CLI::App& parent);
Command add_compile(CLI::App& parent);
Command add_decompile(CLI::App& parent);
Command add_generate(CLI::App& parent);
Command add_metadata(CLI::App& parent);
Command add_version(CLI::App& parent);
Command add_completion(CLI::App& parent);

/// The whole program. Results go to standard output, errors to standard error.
int run(int argc, const char* const* argv);

}  // namespace moka::cli
