// SPDX-License-Identifier: Apache-2.0
#include "format/espresso/layer_reader.h"

#include <cmath>
#include <limits>

namespace moka::format::espresso {
namespace {

using nlohmann::json;

constexpr uint64_t max_product = uint64_t{1} << 48;

std::vector<std::string> split(const std::string& list) {
  std::vector<std::string> out;
  for (size_t at = 0; !list.empty() && at <= list.size();) {
    const size_t comma = std::min(list.find(',', at), list.size());
    out.push_back(list.substr(at, comma - at));
    at = comma + 1;
  }
  return out;
}

Result<std::string> text(const json& object, const char* key, std::string_view where) {
  auto it = object.find(key);
  if (it == object.end()) return std::string();
  if (!it->is_string())
    return fail(ErrorCode::malformed, where, "'", key, "' is of type ", it->type_name(), ", expected a string");
  return it->get<std::string>();
}

}  // namespace

Status LayerReader::begin() {
  if (!object_.is_object()) return malformed("a layer is not an object");
  name = MOKA_TRY(text(object_, "name", "a layer: "));
  const std::string where = cat("layer '", name, "': ");
  type = MOKA_TRY(text(object_, "type", where));
  if (type.empty()) return malformed(cat(where, "no type"));
  bottoms = split(MOKA_TRY(text(object_, "bottom", where)));
  tops = split(MOKA_TRY(text(object_, "top", where)));
  return {};
}

std::string LayerReader::place() const { return cat("layer '", name, "' (", type, ")"); }

Status LayerReader::arity(size_t bottoms_min, size_t bottoms_max, size_t tops_count) const {
  if (bottoms.size() < bottoms_min || bottoms.size() > bottoms_max)
    return malformed(cat("expected ", bottoms_min, " to ", bottoms_max, " bottoms, got ", bottoms.size()));
  if (tops.size() != tops_count) return malformed(cat("expected ", tops_count, " tops, got ", tops.size()));
  return {};
}

Result<int64_t> LayerReader::integer(const char* key, int64_t fallback) const {
  auto it = object_.find(key);
  if (it == object_.end()) return fallback;
  if (it->is_boolean()) return int64_t{it->get<bool>()};
  if (it->is_number_unsigned() && it->get<uint64_t>() <= std::numeric_limits<int64_t>::max()) return it->get<int64_t>();
  if (it->is_number_integer() && !it->is_number_unsigned()) return it->get<int64_t>();
  if (it->is_number_float()) {
    const double v = it->get<double>();
    if (std::trunc(v) == v && std::abs(v) < 1e15) return static_cast<int64_t>(v);
  }
  return malformed(cat("'", key, "' is ", it->is_structured() ? it->type_name() : it->dump(), ", expected an integer"));
}

Result<uint64_t> LayerReader::size(const char* key, uint64_t fallback) const {
  const int64_t v = MOKA_TRY(integer(key, static_cast<int64_t>(fallback)));
  if (v < 0 || v > std::numeric_limits<int32_t>::max())
    return malformed(cat("'", key, "' is ", v, ", expected 0 to ", std::numeric_limits<int32_t>::max()));
  return static_cast<uint64_t>(v);
}

Result<float> LayerReader::number(const char* key, float fallback) const {
  auto it = object_.find(key);
  if (it == object_.end()) return fallback;
  if (!it->is_number()) return malformed(cat("'", key, "' is of type ", it->type_name(), ", expected a number"));
  return it->get<float>();
}

Result<bool> LayerReader::flag(const char* key) const { return MOKA_TRY(integer(key, 0)) != 0; }

bool LayerReader::attribute(const char* key) const {
  auto attributes = object_.find("attributes");
  if (attributes == object_.end() || !attributes->is_object()) return false;
  auto it = attributes->find(key);
  return it != attributes->end() && it->is_number() && *it != 0;
}

const BlobShape& LayerReader::shape(const std::string& blob) const {
  static const BlobShape unknown;
  auto it = to_.net.shapes.find(blob);
  return it == to_.net.shapes.end() ? unknown : it->second;
}

int LayerReader::nd_rank(const std::string& blob) const {
  const int rank = shape(blob).rank;
  return rank == axis_count ? 0 : rank;
}

proto::NeuralNetworkLayer& LayerReader::add(const std::string& layer, const std::vector<std::string>& inputs,
                                            const std::vector<std::string>& outputs) {
  proto::NeuralNetworkLayer& out = *to_.layers.Add();
  out.set_name(layer);
  for (const auto& input : inputs) out.add_input(input);
  for (const auto& output : outputs) out.add_output(output);
  return out;
}

std::string LayerReader::new_blob(const std::string& wish) {
  std::string blob = wish;
  while (!to_.blobs.insert(blob).second) blob += '_';
  return blob;
}

std::string LayerReader::new_layer(const std::string& wish) {
  std::string layer = wish;
  while (!to_.names.insert(layer).second) layer += '_';
  return layer;
}

Result<proto::NeuralNetworkLayer*> LayerReader::add_fused(const char* relu_key, const char* tanh_key) {
  if (tops.size() != 1) return malformed(cat("expected 1 top, got ", tops.size()));
  const bool relu = MOKA_TRY(flag(relu_key));
  const bool tanh = tanh_key != nullptr && MOKA_TRY(flag(tanh_key));
  if (relu && tanh) return malformed(cat("both '", relu_key, "' and '", tanh_key, "'"));
  if (!relu && !tanh) return &add();
  const std::string between = new_blob(name.empty() || name == tops[0] ? cat(name, "_output") : name);
  proto::NeuralNetworkLayer* first = &add(name, bottoms, {between});
  proto::NeuralNetworkLayer& second = add(new_layer(cat(name, relu ? "_relu" : "_tanh")), {between}, tops);
  if (relu)
    second.mutable_activation()->mutable_relu();
  else
    second.mutable_activation()->mutable_tanh();
  return first;
}

Result<Bytes> LayerReader::blob(const json& reference, std::string_view what, uint64_t size) const {
  if (!reference.is_number_integer())
    return malformed(cat("'", what, "' is of type ", reference.type_name(), ", expected the number of a blob"));
  auto it = to_.net.blobs.find(reference.get<uint64_t>());
  if (it == to_.net.blobs.end())
    return malformed(cat("'", what, "' is blob ", reference.dump(), ", which the weights file does not have"));
  if (it->second.size() < size)
    return malformed(
        cat("'", what, "': expected ", size, " bytes, blob ", reference.dump(), " has ", it->second.size()));
  return it->second.slice(0, size);
}

Result<Bytes> LayerReader::blob(const char* key, uint64_t size) const {
  auto it = object_.find(key);
  if (it == object_.end()) return malformed(cat("'", key, "' is missing"));
  return blob(*it, key, size);
}

void LayerReader::set(proto::WeightParams* weight, Payload::Kind kind, Bytes bytes) {
  weight->set_payload_index(static_cast<uint32_t>(to_.payloads.size()));
  to_.payloads.push_back({kind, std::move(bytes)});
}

Status LayerReader::weights(proto::WeightParams* weight, const char* key, uint64_t count, uint64_t channels) {
  const std::string half = cat(key, "_f16");
  if (has(half.c_str())) {
    set(weight, Payload::Kind::float16, MOKA_TRY(blob(half.c_str(), count * 2)));
    return {};
  }
  auto object = object_.find("weights");
  if (!has(key) && object != object_.end() && object->is_object()) {
    if (!object->contains("W_U8"))
      return unsupported(object->empty() ? cat("no weights: neither '", key, "' nor '", half, "'")
                                         : cat("weights of the kind '", object->begin().key(), "'"));
    set(weight, Payload::Kind::raw, MOKA_TRY(blob((*object)["W_U8"], "W_U8", count)));
    proto::QuantizationParams& q = *weight->mutable_quantization();
    q.set_numberofbits(8);
    proto::LinearQuantizationParams& linear = *q.mutable_linearquantization();
    for (const char* part : {"per_ch_qscale", "per_ch_qbias"}) {
      auto it = object->find(part);
      if (it == object->end()) return malformed(cat("weights of 8 bits without '", part, "'"));
      Bytes bytes = MOKA_TRY(blob(*it, part, channels * sizeof(float)));
      auto& list = part[8] == 's' ? *linear.mutable_scale() : *linear.mutable_bias();
      list.Resize(static_cast<int>(channels), 0);
      if (!bytes.empty()) std::memcpy(list.mutable_data(), bytes.data(), bytes.size());
    }
    return {};
  }
  set(weight, Payload::Kind::float32, MOKA_TRY(blob(key, count * sizeof(float))));
  return {};
}

Status LayerReader::biases(proto::WeightParams* weight, const char* key, uint64_t count) {
  set(weight, Payload::Kind::float32, MOKA_TRY(blob(key, count * sizeof(float))));
  return {};
}

Result<uint64_t> LayerReader::product(std::initializer_list<uint64_t> sizes) const {
  uint64_t n = 1;
  for (uint64_t s : sizes)
    if (__builtin_mul_overflow(n, s, &n) || n > max_product) return malformed("weights of more than 2^48 numbers");
  return n;
}

}  // namespace moka::format::espresso
