// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "import/neuralnetwork/control.h"
#include "ir/registered.h"

/// Custom layers of networks that are checked without an implementation of them.
namespace moka::import::nn {

namespace {

/// A blob about which only the rank is known, and that only in the legacy mapping.
Result<Blob> unknown_blob(Network& net, const Layer& layer) {
  constexpr int kLegacyRank = 5;
  const ir::Type type = net.exact_arrays ? ir::Type::unranked(DType::fp32) : unknown_sizes(DType::fp32, kLegacyRank);
  const std::string& name = layer.p.name();
  ir::OpSpec op = ir::registered_spec(ir::placeholder(layer.place(), {type}), name, {});
  op.name = net.context().prefix + name;
  Blob out = MOKA_TRY(net.blob(MOKA_TRY(net.builder().append(std::move(op)))->output(), Form::exact));
  out.placeholder = true;
  return out;
}

}  // namespace

Status Network::add_placeholder(Layer& layer, Status (*import)(Layer& layer)) {
  const bool custom = has_custom(layer.p);
  bool guessed = custom;
  for (const std::string& name : inputs_of(layer.p))
    if (const auto it = blobs.find(name); it != blobs.end()) guessed |= it->second.placeholder;
  if (!guessed) return import(layer);
  Status status = import(layer);
  const Names outputs = outputs_of(layer.p);
  // A branch or loop around a custom layer may fail in any way, since its ends do not have the same types.
  const bool inside = custom && !layer.p.has_custom();
  if (!status.ok() && !inside && status.error().code() != ErrorCode::unsupported) return status;
  for (const std::string& name : outputs) {
    if (!status.ok()) blobs[name] = MOKA_TRY(unknown_blob(*this, layer));
    if (const auto it = blobs.find(name); it != blobs.end()) it->second.placeholder = true;
  }
  return {};
}

}  // namespace moka::import::nn
