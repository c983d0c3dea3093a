// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "format/model_file.h"
#include "import/neuralnetwork/blob_sizes.h"
#include "import/neuralnetwork/control.h"
#include "import/neuralnetwork/inputs.h"

namespace moka::import::nn {
namespace {

/// A function that a network is imported into only to learn its sizes.
struct Draft {
  const format::ModelFile& file;
  ImportOptions options;
  ImportContext context{file, options, {}, 0};
  ir::Function function{"main", ir::Opset::ios18};
  ir::Builder builder{ops::table(), function.body()};
  Network net{context, builder};

  /// The type of an input at its default size.
  Result<ir::Value*> add_input(FeatureDescription input) {
    input.array.ranges.clear();
    input.array.enumerated.clear();
    input.image.width_range.reset();
    input.image.height_range.reset();
    input.image.enumerated.clear();
    return function.body().add_input(function.unique_name(input.name), MOKA_TRY(boundary_type(input, false)));
  }
};

/// The legacy mapping has five dimensions. Drops those of the sequence and the batch if both are 1, and ends a vector
/// after its channels.
BlobSize as_described(BlobSize size, bool exact_arrays) {
  if (!size || exact_arrays || size->size() != 5 || (*size)[0] != 1 || (*size)[1] != 1) return size;
  size->erase(size->begin(), size->begin() + 2);
  if ((*size)[1] == 1 && (*size)[2] == 1) size->resize(1);
  return size;
}

/// Adds the sizes of the layers in the order of Outline::layers.
void collect(const google::protobuf::RepeatedPtrField<proto::NeuralNetworkLayer>& layers, const Parts& parts,
             const LayerRecord& record, std::vector<LayerSizes>& out, int depth = 0) {
  for (const auto& layer : layers) {
    const auto found = record.find(&layer);
    LayerSizes sizes = found != record.end() ? found->second : LayerSizes{};
    sizes.inputs.resize(static_cast<size_t>(layer.input_size()));
    sizes.outputs.resize(static_cast<size_t>(layer.output_size()));
    for (auto* list : {&sizes.inputs, &sizes.outputs})
      for (BlobSize& size : *list) size = as_described(std::move(size), parts.exact_arrays);
    out.push_back(std::move(sizes));
    if (depth >= kMaxListedDepth) continue;
    for (const proto::NeuralNetwork* inner : networks_inside(layer))
      collect(inner->layers(), parts, record, out, depth + 1);
  }
}

}  // namespace

Result<std::map<std::string, std::vector<int64_t>>> blob_sizes(const proto::Model& model,
                                                               const format::ModelFile& file) {
  const ModelDescription description = MOKA_TRY(describe(model, file));
  Draft draft{file, {}};
  Features features;
  for (const FeatureDescription& input : description.functions[0].inputs)
    features[input.name] = MOKA_TRY(draft.add_input(input));
  MOKA_TRY(add_blobs(draft.net, model, features));
  std::map<std::string, std::vector<int64_t>> out;
  for (const auto& [name, blob] : draft.net.blobs) {
    if (!all_known(blob.dims)) return fail(ErrorCode::unsupported, "the size of blob '", name, "' is not known");
    for (const Dim& d : blob.dims) out[name].push_back(d.size);
  }
  return out;
}

Result<std::map<std::string, std::vector<int64_t>>> blob_sizes(const format::ModelFile& file) {
  return blob_sizes(file.spec(), file);
}

std::vector<LayerSizes> layer_sizes(const proto::Model& model, const format::ModelFile& file) {
  const Parts parts = parts_of(model);
  std::vector<std::string> faults;
  const ModelDescription description = describe_readable(model, file, faults);
  Draft draft{file, {}};
  LayerRecord record;
  draft.net.record = &record;
  for (const FeatureDescription& input : description.functions[0].inputs) {
    const auto& features = model.description().input();
    const auto feature = std::find_if(features.begin(), features.end(),
                                      [&](const auto& candidate) { return candidate.name() == input.name; });
    auto value = draft.add_input(input);
    if (feature == features.end() || !value.ok()) continue;
    if (auto blob = input_blob(draft.net, *value, *feature, parts); blob.ok())
      draft.net.blobs[input.name] = std::move(blob).value();
  }
  // A layer that cannot be imported leaves the sizes after it unknown.
  for (const auto& layer : *parts.layers)
    if (const Status added = draft.net.add(layer); !added.ok())
      for (const std::string& output : layer.output()) draft.net.blobs.erase(output);
  std::vector<LayerSizes> out;
  collect(*parts.layers, parts, record, out);
  return out;
}

}  // namespace moka::import::nn
