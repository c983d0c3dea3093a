// SPDX-License-Identifier: Apache-2.0
#include "models/nn_case_util.h"

#include <cstring>
#include <fstream>

#include "base64.h"

namespace moka::test {

std::string Case::specification() const { return base64(data.at("model").get<std::string>()); }

Features Case::inputs() const {
  Features out;
  for (const auto& [name, v] : data.at("inputs").items()) out[name] = array(v);
  return out;
}

Model Case::model(const ModelConfiguration& c) const {
  const std::string bytes = specification();
  ModelAsset asset;
  asset.specification.resize(bytes.size());
  std::memcpy(asset.specification.data(), bytes.data(), bytes.size());
  return Model::load(std::move(asset), c);
}

std::vector<Case> cases(std::initializer_list<const char*> groups) {
  std::vector<Case> all;
  for (const char* group : groups) {
    std::ifstream file(std::string(MOKA_GOLDEN) + "/nn_layers/" + group + ".json");
    const Json json = Json::parse(file);
    for (const auto& c : json.at("cases")) all.push_back({group, c.at("name"), c});
  }
  return all;
}

MultiArray array(const Json& v) {
  return MultiArray::of(v.at("data").get<std::vector<float>>(), v.at("shape").get<std::vector<int64_t>>());
}

}  // namespace moka::test
