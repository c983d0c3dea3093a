// SPDX-License-Identifier: Apache-2.0
#include "api/internal.h"
#include "moka/model_structure.h"

namespace moka::api {
namespace {

ModelStructure::Window to_public(import::Outline::Window w) {
  return {std::move(w.kernel),       std::move(w.stride), std::move(w.dilation), std::move(w.padding),
          std::move(w.padding_mode), w.input_channels,    w.output_channels,     w.groups};
}

ModelStructure::Block to_public(import::Outline::Block block) {
  ModelStructure::Block out{std::move(block.inputs), {}, std::move(block.outputs)};
  for (import::Outline::Operation& op : block.operations) {
    ModelStructure::Operation o{std::move(op.name),
                                std::move(op.type),
                                std::move(op.inputs),
                                std::move(op.outputs),
                                {},
                                std::move(op.values),
                                to_public(std::move(op.window))};
    for (import::Outline::Block& inner : op.blocks) o.blocks.push_back(to_public(std::move(inner)));
    out.operations.push_back(std::move(o));
  }
  return out;
}

}  // namespace

ModelStructure to_public(import::Outline outline) {
  ModelStructure out;
  out.type = std::move(outline.type);
  for (auto& f : outline.functions)
    out.functions.push_back({std::move(f.name), std::move(f.opset), to_public(std::move(f.body))});
  for (auto& l : outline.layers)
    out.layers.push_back({std::move(l.name), std::move(l.type), std::move(l.inputs), std::move(l.outputs), l.depth,
                          std::move(l.custom_class), std::move(l.settings), to_public(std::move(l.window)),
                          std::move(l.weights)});
  for (auto& p : outline.preprocessing)
    out.preprocessing.push_back({std::move(p.input), std::move(p.function), std::move(p.stored), std::move(p.channels),
                                 std::move(p.scale), std::move(p.bias), p.mean_image});
  for (auto& stage : outline.stages) out.models.push_back({std::move(stage.name), to_public(std::move(stage.outline))});
  for (auto& w : outline.weights)
    out.weights.push_back({std::move(w.name), std::move(w.type), std::move(w.storage), w.bytes, std::move(w.owner),
                           std::move(w.path), w.offset, w.available});
  out.inputs = std::move(outline.inputs);
  out.outputs = std::move(outline.outputs);
  out.facts = std::move(outline.facts);
  out.faults = std::move(outline.faults);
  return out;
}

}  // namespace moka::api
