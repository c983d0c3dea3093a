// SPDX-License-Identifier: Apache-2.0
// Predicts for a while, and loads the model anew each time unless it is told to keep it.
//
//   MOKA_TRACE_SOCKET=1 example_load_in_a_loop MODEL [SECONDS [keep]]
//
// Meanwhile `moka trace --pid N` says "loaded 373 times for 374 predictions: keep the model".

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>

#include "moka/model.h"

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(argc > 2 ? std::atoi(argv[2]) : 60);
  const bool keeps = argc > 3 && std::string(argv[3]) == "keep";
  std::optional<moka::Model> model;
  for (int i = 0; std::chrono::steady_clock::now() < end; ++i) {
    if (!model || !keeps) model = moka::Model::load(argv[1]);
    model->predict(moka::random_inputs(model->function()));
    if (i == 0) std::puts("predicts");
    std::fflush(stdout);
  }
}
