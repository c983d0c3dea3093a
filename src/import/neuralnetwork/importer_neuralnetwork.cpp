// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "format/proto/model.pb.h"
#include "import/neuralnetwork/blob_sizes.h"
#include "import/neuralnetwork/control.h"
#include "import/neuralnetwork/inputs.h"
#include "import/neuralnetwork/network.h"
#include "import/update/parts.h"
#include "ir/registered.h"

namespace moka::import {

namespace nn {

std::span<const std::span<const LayerImport>> families();

const LayerImport* find_layer(int type) {
  static const std::vector<LayerImport> all = [] {
    std::vector<LayerImport> v;
    for (const auto& family : families()) v.insert(v.end(), family.begin(), family.end());
    std::sort(v.begin(), v.end(), [](const LayerImport& a, const LayerImport& b) { return a.type < b.type; });
    return v;
  }();
  auto it = std::lower_bound(all.begin(), all.end(), type, [](const LayerImport& l, int t) { return l.type < t; });
  return it != all.end() && it->type == type ? &*it : nullptr;
}

std::string probabilities_blob(const proto::NeuralNetworkClassifier& c) {
  const std::string& name = c.labelprobabilitylayername();
  const auto gives = [&](const auto& l) { return std::count(l.output().begin(), l.output().end(), name) > 0; };
  if (std::any_of(c.layers().begin(), c.layers().end(), gives)) return name;
  const bool any = c.layers_size() > 0 && c.layers(c.layers_size() - 1).output_size() > 0;
  return any ? c.layers(c.layers_size() - 1).output(0) : name;
}

namespace {

using Layers = google::protobuf::RepeatedPtrField<proto::NeuralNetworkLayer>;

/// The value of a blob as Core ML returns it: with the described shape when the element counts match, otherwise with
/// the blob's own dimensions.
Result<Value*> output_value(Network& net, Blob& blob, const proto::FeatureDescription& feature) {
  const std::string& name = feature.name();
  if (feature.type().has_imagetype()) return net.as(blob, Form::nchw);
  if (!blob.is_ranked()) return blob.form(Form::exact);
  const auto& described = feature.type().multiarraytype().shape();
  int n = described.size();
  std::vector<Dim> own = blob.dims;
  bool known = all_known(own);
  bool first_two_are_one = own.size() == 5 && own[0].size == 1 && own[1].size == 1;
  if (feature.type().has_multiarraytype() && n > 0 && n <= ir::kMaxRank) {
    std::vector<Dim> dims;
    bool valid = true;
    for (int64_t d : described) {
      valid &= d > 0;
      dims.push_back(Dim{d});
    }
    if (valid && known && product(dims) == product(own)) {
      if (n == 1 && first_two_are_one && blob.form(Form::matrix) != nullptr)
        return net.op("squeeze", {{"x", blob.form(Form::matrix)}, {"axes", Ints{0}}}, name);
      Value* v = nullptr;
      for (Value* f : blob.forms)
        if (f != nullptr && v == nullptr) v = f;
      return net.reshape(v, dims, name);
    }
    if (valid && !known && first_two_are_one && n == 3) {
      Value* v = MOKA_TRY(net.as(blob, Form::nchw));
      return net.op("squeeze", {{"x", v}, {"axes", Ints{0}}}, name);
    }
  }
  return net.as(blob, Form::exact);
}

/// A value of which only the description is known.
Result<Value*> described_value(Network& net, const proto::Model& model, const std::string& name) {
  const ModelDescription d = MOKA_TRY(describe(model, net.context().file));
  for (const FeatureDescription& f : d.functions[0].outputs)
    if (f.name == name) {
      auto instance = ir::placeholder(cat("output '", name, "'"), {MOKA_TRY(boundary_type(f, false))});
      ir::OpSpec op = ir::registered_spec(std::move(instance), name, {});
      op.name = net.context().prefix + name;
      return MOKA_TRY(net.builder().append(std::move(op)))->output();
    }
  return fail(ErrorCode::internal, "it is not described");
}

Result<ir::Constant> labels_of(const proto::NeuralNetworkClassifier& c) {
  std::vector<ir::Constant> parts;
  ir::Type element = ir::Type::scalar(DType::string);
  if (c.has_stringclasslabels()) {
    for (const std::string& s : c.stringclasslabels().vector()) parts.emplace_back(Tensor::text(s));
  } else if (c.has_int64classlabels()) {
    element = ir::Type::scalar(DType::int64);
    for (int64_t v : c.int64classlabels().vector()) parts.emplace_back(Tensor::scalar_i64(DType::int64, v));
  }
  if (parts.empty()) return fail(ErrorCode::malformed, "a classifier without class labels");
  auto length = static_cast<int64_t>(parts.size());
  return ir::Constant(ir::Type::list(element, length), std::move(parts));
}

Status classify(Network& net, const proto::Model& model, Features& features) {
  const auto& c = model.neuralnetworkclassifier();
  const auto it = net.blobs.find(probabilities_blob(c));
  if (it == net.blobs.end())
    return fail(ErrorCode::malformed, "no blob of class probabilities ('", c.labelprobabilitylayername(), "')");
  Value* p = nullptr;
  for (Value* f : it->second.forms)
    if (f != nullptr && p == nullptr) p = f;
  ir::Constant labels = MOKA_TRY(labels_of(c));
  Dim classes{static_cast<int64_t>(labels.parts.size())};
  if (p->type.is_concrete() && p->type.shape().count() != classes.size)
    return fail(ErrorCode::malformed, classes.size, " class labels, but the layer that gives '", it->first, "' gives ",
                p->type.shape().count(), " probabilities");
  p = MOKA_TRY(net.reshape(p, std::vector<Dim>{classes}, "probabilities"));
  const std::string& predicted = model.description().predictedfeaturename();
  const std::string& probabilities = model.description().predictedprobabilitiesname();
  ir::Op* op = MOKA_TRY(net.builder().append(
      {"classify", {{"probabilities", p}, {"classes", std::move(labels)}}, net.context().prefix + "classify", {}, {}}));
  features[predicted.empty() ? "classLabel" : predicted] = op->output(0);
  if (!probabilities.empty()) features[probabilities] = op->output(1);
  return {};
}

/// The blobs that the model's outputs need.
Names wanted_blobs(const Network& net, const proto::Model& model) {
  Names out;
  if (net.context().options.examples) {
    for (const proto::LossLayer& loss : update::parameters_of(model)->losslayers())
      out.insert(update::values_of(loss).input);
    return out;
  }
  for (const auto& feature : model.description().output()) out.insert(feature.name());
  if (model.has_neuralnetworkclassifier()) out.insert(probabilities_blob(model.neuralnetworkclassifier()));
  return out;
}

/// Makes features of what the losses read, in a form that the blob has.
Status add_loss_inputs(Network& net, const proto::Model& model, Features& features) {
  for (const proto::LossLayer& loss : update::parameters_of(model)->losslayers()) {
    const std::string name = update::values_of(loss).input;
    const auto it = net.blobs.find(name);
    if (it == net.blobs.end()) return fail(ErrorCode::malformed, "no layer gives '", name, "', which the loss reads");
    const auto form = std::find_if(std::rbegin(it->second.forms), std::rend(it->second.forms),
                                   [](const Value* v) { return v != nullptr; });
    features[name] = *form;
  }
  return {};
}

/// Adds the layers. Skips layers that only training uses, because their kind or their inputs may be unsupported.
Status add_layers(Network& net, const Layers& layers, const proto::Model& model) {
  const std::vector<bool> is_needed = needed(layers, wanted_blobs(net, model));
  const bool any = std::count(is_needed.begin(), is_needed.end(), true) > 0;
  for (int i = 0; i < layers.size(); ++i) {
    Status status = net.add(layers[i]);
    if (!status.ok() && (is_needed[static_cast<size_t>(i)] || !any)) return status;
  }
  return {};
}

}  // namespace

Status add_blobs(Network& net, const proto::Model& model, const Features& features) {
  const Parts parts = parts_of(model);
  net.exact_arrays = parts.exact_arrays;
  for (const auto& feature : model.description().input()) {
    auto it = features.find(feature.name());
    if (it == features.end())
      return fail(ErrorCode::not_found, "input '", feature.name(), "' of a neural network is not given");
    net.blobs[feature.name()] =
        MOKA_TRY_IN(input_blob(net, it->second, feature, parts), cat("input '", feature.name(), "'"));
  }
  return add_layers(net, *parts.layers, model);
}

Status import_network(const proto::Model& model, const ImportContext& context, ir::Builder& builder,
                      Features& features) {
  Network net(context, builder);
  MOKA_TRY(add_blobs(net, model, features));
  if (context.options.examples) return add_loss_inputs(net, model, features);
  bool classifier = model.has_neuralnetworkclassifier();
  if (classifier) MOKA_TRY_IN(classify(net, model, features), "neural network classifier");
  for (const auto& feature : model.description().output()) {
    const std::string& name = feature.name();
    if (classifier && (name == model.description().predictedfeaturename() ||
                       name == model.description().predictedprobabilitiesname()))
      continue;
    auto it = net.blobs.find(name);
    if (it == net.blobs.end())
      return fail(ErrorCode::malformed, "output '", name, "' is described, but no layer gives it");
    features[name] =
        MOKA_TRY_IN(it->second.placeholder ? described_value(net, model, name) : output_value(net, it->second, feature),
                    cat("output '", name, "'"));
  }
  return {};
}

}  // namespace nn

ModelImporter importer_neuralnetwork() {
  static constexpr int kTypes[] = {303, 403, 500};
  return {kTypes, nn::import_network};
}

}  // namespace moka::import
