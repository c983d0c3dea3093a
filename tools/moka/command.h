// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "outputs.h"

namespace moka::cli {

/// A subcommand that was added to its parent.
struct Command {
  Arguments app;
  std::string example;                       ///< example in the overview
  std::function<int()> run;                  ///< returns the exit code; call it only after parsing
  std::shared_ptr<const Outputs> outputs{};  ///< of a command that writes files
};

Command add_inspect(Arguments parent);
Command add_predict(Arguments parent);
Command add_explain(Arguments parent);
Command add_bench(Arguments parent);
Command add_tune(Arguments parent);
Command add_rates(Arguments parent);
Command add_report(Arguments parent);
Command add_record(Arguments parent);
Command add_capture(Arguments parent);
Command add_trace(Arguments parent);
Command add_cache(Arguments parent);
Command add_compile(Arguments parent);
Command add_decompile(Arguments parent);
Command add_edit(Arguments parent);
Command add_convert(Arguments parent);
Command add_generate(Arguments parent);
Command add_compress(Arguments parent);
Command add_key(Arguments parent);
Command add_encrypt(Arguments parent);
Command add_decrypt(Arguments parent);
Command add_metadata(Arguments parent);
Command add_update(Arguments parent);
Command add_verify(Arguments parent);
Command add_lint(Arguments parent);
Command add_diff(Arguments parent);
Command add_view(Arguments parent);
Command add_version(Arguments parent);
Command add_completion(Arguments parent);

/// The whole program. Results go to standard output, errors to standard error.
int run(int argc, const char* const* argv);

}  // namespace moka::cli
