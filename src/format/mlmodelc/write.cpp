// SPDX-License-Identifier: Apache-2.0
#include "format/mlmodelc/write.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

#include "base/sha256.h"
#include "format/mlmodelc/stream.h"
#include "format/path_guard.h"
#include "format/proto/model.pb.h"
#include "format/weights/weight_store.h"

namespace moka::format {
namespace {

/// The contents of the length-delimited fields with this number, in order.
Result<std::vector<Bytes>> fields(const Bytes& message, uint32_t number) {
  constexpr uint32_t length_delimited = 2;
  google::protobuf::io::CodedInputStream in(reinterpret_cast<const uint8_t*>(message.data()),
                                            static_cast<int>(message.size()));
  std::vector<Bytes> out;
  while (uint32_t tag = in.ReadTag()) {
    uint32_t size = 0;
    uint64_t ignored;
    bool ok = true;
    switch (tag & 7) {
      case 0: ok = in.ReadVarint64(&ignored); break;
      case 1: ok = in.Skip(8); break;
      case 5: ok = in.Skip(4); break;
      case length_delimited:
        ok = in.ReadVarint32(&size) && size <= message.size() - static_cast<size_t>(in.CurrentPosition());
        if (ok && tag >> 3 == number) out.push_back(message.slice(static_cast<size_t>(in.CurrentPosition()), size));
        ok = ok && in.Skip(static_cast<int>(size));
        break;
      default: ok = false;
    }
    if (!ok) return fail(ErrorCode::malformed, "a pipeline's message is cut short");
  }
  return out;
}

}  // namespace

std::string write_analytics(const Analytics& sections) {
  Writer w;
  for (const auto& [name, entries] : sections) {
    w.string(name);
    w.number<uint64_t>(entries.size());
    for (const auto& [key, value] : entries) {
      w.string(key);
      w.string(value);
    }
  }
  return std::move(w.out);
}

std::string write_strings(const std::vector<std::string>& list) {
  Writer w;
  w.strings(list);
  return std::move(w.out);
}

std::string hash(const Bytes& bytes) { return base64(sha256(bytes.span)); }

std::string serialize(const google::protobuf::MessageLite& message) {
  std::string out;
  google::protobuf::io::StringOutputStream stream(&out);
  google::protobuf::io::CodedOutputStream coded(&stream);
  coded.SetSerializationDeterministic(true);
  message.SerializeToCodedStream(&coded);
  coded.Trim();
  return out;
}

std::string serialize_description(const proto::ModelDescription& description, bool with_metadata) {
  proto::ModelDescription copy = description;
  if (with_metadata) copy.mutable_metadata();
  return serialize(copy);
}

Result<std::string> weight_file_name(std::string_view name) {
  return normalise_inside(WeightStore::relative_name(name));
}

void set_class_labels(const proto::Model& model, CoreMLData& data) {
  if (!model.has_neuralnetworkclassifier()) return;
  const auto& c = model.neuralnetworkclassifier();
  data.string_labels.assign(c.stringclasslabels().vector().begin(), c.stringclasslabels().vector().end());
  data.int64_labels.assign(c.int64classlabels().vector().begin(), c.int64classlabels().vector().end());
  data.probability_layer = c.labelprobabilitylayername();
}

std::vector<std::string> stage_names(const proto::Model& pipeline) {
  const proto::Pipeline& p = pipeline.has_pipelineclassifier()  ? pipeline.pipelineclassifier().pipeline()
                             : pipeline.has_pipelineregressor() ? pipeline.pipelineregressor().pipeline()
                                                                : pipeline.pipeline();
  std::vector<std::string> out(p.names().begin(), p.names().end());
  if (out.size() != static_cast<size_t>(p.models_size())) out.clear();
  for (int i = static_cast<int>(out.size()); i < p.models_size(); ++i) out.push_back(cat("model", i));
  return out;
}

Result<std::vector<Bytes>> stage_specifications(const Bytes& specification, uint32_t type) {
  constexpr uint32_t pipeline = 202;
  std::vector<Bytes> found = MOKA_TRY(fields(specification, type));
  if (type != pipeline && found.size() == 1) found = MOKA_TRY(fields(found[0], 1));
  if (found.size() != 1)
    return fail(ErrorCode::unsupported, "a pipeline whose message is in ", found.size(), " pieces");
  return fields(found[0], 1);
}

}  // namespace moka::format
