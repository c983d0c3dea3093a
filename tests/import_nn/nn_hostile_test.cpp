// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "import_nn/nn_util.h"

namespace moka::test {

namespace {

uint64_t next(uint64_t& state) {
  state += 0x9E3779B97F4A7C15u;
  uint64_t z = (state ^ (state >> 30)) * 0xBF58476D1CE4E5B9u;
  return z ^ (z >> 31);
}

/// A damaged model is either imported or refused with a message.
TEST(NnHostile, DamagedModels) {
  uint64_t state = 1;
  size_t refused = 0, imported = 0;
  for (const auto& [group, file] : golden("nn_layers")) {
    for (const auto& c : file.at("cases")) {
      const std::string whole = base64(c.at("model"));
      for (int k = 0; k < 40; k++) {
        std::string bytes = whole;
        int edits = 1 + static_cast<int>(next(state) % 3);
        for (int e = 0; e < edits; e++) {
          char& b = bytes[next(state) % bytes.size()];
          switch (next(state) % 3) {
            case 0: b = static_cast<char>(next(state)); break;
            case 1: b = static_cast<char>(b ^ (1 << next(state) % 8)); break;
            default: b = static_cast<char>(0xff); break;
          }
        }
        if (next(state) % 8 == 0) bytes.resize(next(state) % bytes.size());
        auto budget = std::make_shared<MemoryBudget>(size_t{1} << 28);
        auto opened = format::open_model_bytes(Bytes::from(bytes), {}, {budget});
        if (!opened.ok()) continue;
        auto model = import::import_model(*opened, {budget});
        if (model.ok()) {
          imported++;
        } else {
          refused++;
          EXPECT_FALSE(model.error().message().empty());
          EXPECT_NE(model.error().code(), ErrorCode::internal) << group << ": " << model.error().to_string();
        }
      }
    }
  }
  EXPECT_GT(refused, 100u);
  EXPECT_GT(imported, 100u);
}

}  // namespace

}  // namespace moka::test
