// SPDX-License-Identifier: Apache-2.0
#include "format/espresso/network.h"
#include "format/proto/model.pb.h"
#include "import/default_sizes.h"
#include "import/mlprogram/program.h"
#include "import/model_type.h"
#include "import/outline/parts.h"

namespace moka::import {
namespace {

struct Part {
  const proto::Model* model;
  format::ModelFile file;
};

/// The model of a pipeline that the indices lead to, which must exist.
Part part_of(const format::ModelFile& file, std::span<const size_t> models) {
  Part part{&file.spec(), file};
  for (const size_t i : models) {
    const auto stages = part.file.stages(*part.model);
    part = {stages[i].model, stages[i].file};
  }
  return part;
}

/// [channel, height, width] or [channel] where the file names no rank and there is one step and one batch.
nn::BlobSize size_of(const format::espresso::BlobShape& shape) {
  const int rank = shape.rank > 0 ? shape.rank : format::espresso::axis_count;
  std::vector<int64_t> out;
  for (int axis = rank; axis-- > 0;) out.push_back(shape.size[axis]);
  if (shape.rank == 0 && out[0] == 1 && out[1] == 1) {
    out.erase(out.begin(), out.begin() + 2);
    if (out[1] == 1 && out[2] == 1) out.resize(1);
  }
  return out;
}

std::vector<nn::LayerSizes> compiled_sizes(const format::ModelFile& file, const Outline& outline) {
  std::map<std::string, format::espresso::BlobShape> shapes;
  if (auto text = file.weights().file("model.espresso.shape"); text.ok())
    if (auto parsed = format::espresso::parse_shapes(*text); parsed.ok()) shapes = std::move(*parsed);
  const auto sizes = [&](const std::vector<std::string>& names) {
    std::vector<nn::BlobSize> out;
    for (const std::string& name : names) {
      const auto it = shapes.find(name);
      out.push_back(it == shapes.end() ? nn::BlobSize() : size_of(it->second));
    }
    return out;
  };
  std::vector<nn::LayerSizes> out;
  for (const Outline::Layer& layer : outline.layers) out.push_back({sizes(layer.inputs), sizes(layer.outputs)});
  return out;
}

void add_types(const ir::Block& block, std::map<std::string, std::string>& out) {
  for (const auto& input : block.inputs()) out[input->name] = cat(input->type);
  for (const auto& op : block.ops()) {
    for (size_t i = 0; i < op->output_count(); ++i) out[op->output(i)->name] = cat(op->output(i)->type);
    for (size_t i = 0; i < op->block_count(); ++i) add_types(*op->block(i), out);
  }
}

}  // namespace

std::vector<nn::LayerSizes> outline_sizes(const format::ModelFile& file, const Outline& outline,
                                          std::span<const size_t> models) {
  const Part part = part_of(file, models);
  if (outline.layers.empty()) return {};
  if (!has_layers(*part.model)) return compiled_sizes(part.file, outline);
  return nn::layer_sizes(*part.model, part.file);
}

std::map<std::string, std::string> outline_types(const format::ModelFile& file, std::span<const size_t> models,
                                                 const std::string& function) {
  std::map<std::string, std::string> out;
  const Part part = part_of(file, models);
  if (model_type(*part.model, part.file) != kMLProgram) return out;
  auto description = describe(*part.model, part.file);
  const FunctionDescription* described = description.ok() ? description->function(function) : nullptr;
  if (described == nullptr) return out;
  ImportOptions options;
  auto sizes = default_sizes(*described, true);
  if (!sizes.ok() || sizes->empty()) return out;
  options.sizes = std::move(*sizes);
  const auto program = import_program(*part.model, part.file, options, *description);
  if (!program.ok()) return out;
  if (const ir::Function* f = program->find(function)) add_types(f->body(), out);
  return out;
}

}  // namespace moka::import
