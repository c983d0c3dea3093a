// SPDX-License-Identifier: Apache-2.0
#include "import_nn/nn_util.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "format/proto/model.pb.h"
#include "ops/common/common.h"

namespace moka::test {

std::map<std::string, Json> golden(const std::string& folder) {
  std::map<std::string, Json> all;
  for (const auto& entry : std::filesystem::directory_iterator(std::string(MOKA_GOLDEN) + "/" + folder)) {
    if (entry.path().extension() != ".json") continue;
    std::ifstream in(entry.path());
    all[entry.path().stem()] = Json::parse(in);
  }
  return all;
}

Result<Network> import_network(const format::ModelFile& file, const std::map<std::string, ir::Shape>& shapes) {
  std::map<std::string, ir::Type> types;
  for (const auto& [name, shape] : shapes) types[name] = ir::Type::tensor(ir::DType::fp32, shape);
  return import_network(file, types);
}

Result<Network> import_network(const format::ModelFile& file, const std::map<std::string, ir::Type>& types) {
  Network n;
  n.function = std::make_unique<ir::Function>("main", ir::Opset::ios16);
  import::Features features;
  for (const auto& input : file.spec().description().input()) {
    auto it = types.find(input.name());
    if (it == types.end()) return fail(ErrorCode::not_found, "shape of '", input.name(), "'");
    features[input.name()] = n.function->body().add_input(n.function->unique_name(input.name()), it->second);
  }
  ir::Builder builder(ops::table(), n.function->body());
  import::ImportOptions options;
  MOKA_TRY(import::import_into(file.spec(), {file, options, {}, 0}, builder, features));
  std::vector<ir::Value*> outputs;
  for (const auto& output : file.spec().description().output()) {
    auto it = features.find(output.name());
    if (it == features.end()) return fail(ErrorCode::not_found, "output '", output.name(), "'");
    n.outputs.push_back(output.name());
    outputs.push_back(it->second);
  }
  n.function->body().set_outputs(outputs);
  return n;
}

Result<std::map<std::string, ir::RuntimeValue>> run(const Network& network,
                                                    const std::map<std::string, ir::Tensor>& inputs) {
  std::vector<ir::RuntimeValue> values;
  for (const auto& input : network.function->body().inputs()) {
    auto it = inputs.find(input->name);
    if (it == inputs.end()) return fail(ErrorCode::not_found, "input '", input->name, "'");
    values.emplace_back(it->second);
  }
  auto results = MOKA_TRY(ir::evaluate(*network.function, values));
  std::map<std::string, ir::RuntimeValue> out;
  for (size_t i = 0; i < results.size(); i++) out[network.outputs[i]] = results[i];
  return out;
}

ir::Tensor draw(uint64_t seed, const ir::Shape& shape, double low, double high) {
  std::vector<float> v(static_cast<size_t>(shape.count()));
  for (size_t i = 0; i < v.size(); i++) {
    uint64_t z = seed + (i + 1) * 0x9E3779B97F4A7C15u;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    z ^= z >> 31;
    v[i] = static_cast<float>(low + (high - low) * (static_cast<double>(z >> 40) / 16777216.0));
  }
  return ir::Tensor::f32(shape, v);
}

ir::Shape shape_of(const Json& list) {
  ir::Shape s;
  for (const auto& d : list) s.push_back(d.get<int64_t>());
  return s;
}

}  // namespace moka::test
