// SPDX-License-Identifier: Apache-2.0
#include "compiler/network_facts.h"

#include "format/mlmodelc/layer_names.h"

namespace moka::compiler {

void add_network_facts(const proto::Model& model, const format::ModelFile& file, ModelFacts& facts) {
  for (const auto& [name, count] : format::layer_histogram(model)) facts.layers[name] += count;
  for (format::WeightData::Kind kind : format::weight_kinds(model, file)) {
    using Kind = format::WeightData::Kind;
    if (kind == Kind::float32) facts.weights.insert("Float32");
    if (kind == Kind::float16) facts.weights.insert("Float16");
    if (kind == Kind::int8_raw) facts.weights.insert("Int8");
  }
}

}  // namespace moka::compiler
