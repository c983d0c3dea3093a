// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "node_facts.h"
#include "text.h"

namespace moka::cli {
namespace {

bool is_all_one(const std::vector<int64_t>& sizes) {
  return std::all_of(sizes.begin(), sizes.end(), [](int64_t n) { return n == 1; });
}

std::string count_text(int64_t n) { return n < 0 ? "?" : format_count(n); }

Json sizes_json(const std::vector<ValueSize>& sizes) {
  Json out = Json::array();
  for (const ValueSize& size : sizes) {
    Json list = Json::array();
    if (size)
      for (const int64_t n : *size) list.push_back(n < 0 ? Json(nullptr) : Json(n));
    out.push_back(size ? std::move(list) : Json(nullptr));
  }
  return out;
}

void add_window(Json& json, const ModelStructure::Window& w) {
  if (!w.kernel.empty()) json["kernelSize"] = w.kernel;
  if (!w.stride.empty()) json["stride"] = w.stride;
  if (!w.dilation.empty()) json["dilation"] = w.dilation;
  if (!w.padding_mode.empty()) {
    json["padding"] = {{"mode", w.padding_mode}};
    if (!w.padding.empty()) json["padding"]["amounts"] = w.padding;
  }
  if (w.input_channels > 0) json["inputChannels"] = w.input_channels;
  if (w.output_channels > 0) json["outputChannels"] = w.output_channels;
  if (w.groups > 0) json["groups"] = w.groups;
}

}  // namespace

std::string window_text(const ModelStructure::Window& w) {
  std::vector<std::string> parts;
  if (!w.kernel.empty()) parts.push_back(format_shape(w.kernel));
  if (!w.stride.empty() && !is_all_one(w.stride)) parts.push_back("stride " + format_shape(w.stride));
  if (!w.dilation.empty() && !is_all_one(w.dilation)) parts.push_back("dilation " + format_shape(w.dilation));
  if (w.padding_mode == "custom")
    parts.push_back(fmt::format("padding {}", fmt::join(w.padding, " ")));
  else if (!w.padding_mode.empty())
    parts.push_back(w.padding_mode + (w.padding.empty() ? "" : fmt::format(" {}", fmt::join(w.padding, " "))));
  if (w.input_channels != 0 && w.output_channels != 0)
    parts.push_back(fmt::format("{} to {} channels", count_text(w.input_channels), count_text(w.output_channels)));
  if (w.groups > 1) parts.push_back(fmt::format("{} groups", w.groups));
  return fmt::format("{}", fmt::join(parts, ", "));
}

std::string weights_text(const NodeFacts& facts) {
  std::vector<std::string> parts;
  for (const NodeWeight& w : facts.weights)
    parts.push_back((w.shape ? format_shape(*w.shape) : format_count(w.parameters)) + " " + w.storage);
  return fmt::format("{}", fmt::join(parts, ", "));
}

Json node_json(const Node& node, const NodeFacts& facts) {
  Json json;
  const ModelStructure::Window* window = nullptr;
  if (node.layer != nullptr) {
    json = {{"name", node.layer->name},
            {"type", node.layer->type},
            {"depth", node.depth},
            {"inputs", node.layer->inputs},
            {"outputs", node.layer->outputs}};
    if (!node.layer->custom_class.empty()) json["class"] = node.layer->custom_class;
    window = &node.layer->window;
  } else {
    Json inputs = Json::array(), outputs = Json::array();
    for (const auto& [parameter, values] : node.operation->inputs)
      for (const std::string& value : values) inputs.push_back({{"parameter", parameter}, {"value", value}});
    for (const auto& [value, type] : node.operation->outputs) outputs.push_back({{"value", value}, {"type", type}});
    json = {{"name", node.operation->name},
            {"type", node.operation->type},
            {"depth", node.depth},
            {"inputs", std::move(inputs)},
            {"outputs", std::move(outputs)}};
    window = &node.operation->window;
  }
  json["inputSizes"] = sizes_json(facts.input_sizes);
  json["outputSizes"] = sizes_json(facts.output_sizes);
  add_window(json, *window);
  json["weights"] = Json::array();
  for (const NodeWeight& w : facts.weights)
    json["weights"].push_back({{"name", w.name},
                               {"shape", sizes_json({w.shape})[0]},
                               {"storage", w.storage},
                               {"parameters", w.parameters},
                               {"bytes", w.bytes}});
  json["parameters"] = facts.parameters;
  json["bytes"] = facts.bytes;
  return json;
}

}  // namespace moka::cli
