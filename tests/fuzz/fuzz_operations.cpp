// SPDX-License-Identifier: Apache-2.0
// Input: choices of a random program of one operation. All columns must agree on it.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "conformance/grid_util.h"

using namespace moka;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  conformance::ByteChoices choices({data, size});
  const auto defs = ops::table().defs();
  const ir::OpDef& def = defs[choices.below(static_cast<uint32_t>(defs.size()))];
  const ir::OpVersion& version = def.versions[choices.below(static_cast<uint32_t>(def.versions.size()))];
  if (!version.reference || ir::has(version.traits, ir::Trait::random)) return 0;
  const auto c = conformance::random_case(version, choices, 8);
  if (!c.ok()) {
    if (c.error().code() != ErrorCode::internal) return 0;
    std::fprintf(stderr, "%s: %s\n", def.name.c_str(), c.error().to_string().c_str());
    std::abort();
  }
  bool failed = false;
  const std::string differs = conformance::disagreement(version, *c, failed);
  if (differs.empty()) return 0;
  std::fprintf(stderr, "%s\n%s\n", differs.c_str(), c->program.c_str());
  for (const conformance::Named& input : c->inputs) {
    if (input.tensor.dtype() == ir::DType::string) continue;
    std::fprintf(stderr, "%s:", input.name.c_str());
    for (int64_t i = 0; i < input.tensor.count(); ++i) std::fprintf(stderr, " %.9g", load_f64(input.tensor.view(), i));
    std::fprintf(stderr, "\n");
  }
  std::abort();
}
