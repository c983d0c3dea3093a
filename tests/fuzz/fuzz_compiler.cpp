// SPDX-License-Identifier: Apache-2.0
// Input: a specification (.mlmodel). Compiles it twice, which must give the same files, reads their descriptions, and
// generates code in every language.
#include <cstdint>
#include <cstdlib>

#include "compiler/compiler.h"
#include "compiler/generate/generate.h"
#include "format/mlmodelc/coremldata.h"

namespace {

namespace compiler = moka::compiler;

void read_back(const compiler::Files& files) {
  for (const auto& [name, bytes] : files) {
    if (name == "coremldata.bin" && !moka::format::parse_coremldata(bytes).ok()) std::abort();
    if (name == "metadata.json" && nlohmann::json::parse(bytes.text(), nullptr, false).is_discarded()) std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  auto budget = std::make_shared<moka::MemoryBudget>(size_t{256} << 20);
  auto bytes = moka::Bytes::copy_of(std::as_bytes(std::span(data, size)));
  const auto file = moka::format::open_model_bytes(bytes, {}, {budget});
  if (!file.ok()) return 0;
  (void)compiler::metadata_of(*file, "m").ok();
  for (const bool core_ml : {false, true})
    if (const auto description = compiler::interface_of(*file, core_ml); description.ok())
      for (int language = 0; language < 5; ++language)
        (void)compiler::generate(*description, "m", static_cast<compiler::Language>(language), {});
  const auto once = compiler::compile(*file, "m");
  if (!once.ok()) return 0;
  const auto twice = compiler::compile(*file, "m");
  if (!twice.ok() || once->size() != twice->size()) std::abort();
  for (const auto& [name, content] : *once)
    if (twice->at(name).text() != content.text()) std::abort();
  read_back(*once);
  return 0;
}
