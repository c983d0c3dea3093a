// SPDX-License-Identifier: Apache-2.0
#include "format/mlmodelc/coremldata.h"

#include <string_view>

#include "format/mlmodelc/stream.h"

namespace moka::format {
namespace {

constexpr uint64_t string_labels_tag = 100, int64_labels_tag = 101;  // oneof numbers of ClassLabels

Status read_class_labels(Stream& in, CoreMLData& out) {
  auto kind = MOKA_TRY(in.number<uint64_t>("kind of class labels"));
  if (kind == string_labels_tag) {
    out.string_labels = MOKA_TRY(in.strings("class labels"));
  } else if (kind == int64_labels_tag) {
    auto n = MOKA_TRY(in.count("class labels", sizeof(int64_t)));
    for (uint64_t i = 0; i < n; ++i) out.int64_labels.push_back(MOKA_TRY(in.number<int64_t>("class label")));
  } else {
    return fail(ErrorCode::malformed, "coremldata.bin: kind of class labels is ", kind, ", expected 100 or 101");
  }
  out.probability_layer = MOKA_TRY(in.string("name of the probability layer"));
  return {};
}

Status read_tail(Stream& in, CoreMLData& out) {
  if (out.is_neural_network()) {
    MOKA_TRY(in.expect("model type of the tail", out.type));
    if (out.type == 403) MOKA_TRY(read_class_labels(in, out));
    out.outputs = MOKA_TRY(in.strings("network outputs"));
  } else if (out.is_program()) {
    do {
      MOKA_TRY(in.expect("model type of the tail", out.type));
      MOKA_TRY(in.expect("end of a function's tail", 0));
      ++out.functions;
    } while (in.left() > 0);
  } else if (out.is_pipeline()) {
    out.stages = MOKA_TRY(in.number<uint64_t>("number of models"));
    MOKA_TRY(in.expect("model type of the tail", out.type));
  } else {
    return fail(ErrorCode::unsupported, "a compiled model of type ", out.type, " with the target '", out.target,
                "' has no known layout");
  }
  if (in.left() > 0)
    return fail(ErrorCode::malformed, "coremldata.bin: ", in.left(), " bytes follow the tail of model type ", out.type);
  return {};
}

void write_tail(Writer& w, const CoreMLData& data) {
  if (data.is_neural_network()) {
    w.number<uint64_t>(data.type);
    if (data.type == 403) {
      w.number(data.int64_labels.empty() ? string_labels_tag : int64_labels_tag);
      if (data.int64_labels.empty()) {
        w.strings(data.string_labels);
      } else {
        w.number<uint64_t>(data.int64_labels.size());
        for (int64_t label : data.int64_labels) w.number(label);
      }
      w.string(data.probability_layer);
    }
    w.strings(data.outputs);
  } else if (data.is_program()) {
    for (uint64_t i = 0; i < data.functions; ++i) {
      w.number<uint64_t>(data.type);
      w.number<uint64_t>(0);
    }
  } else if (data.is_pipeline()) {
    w.number(data.stages);
    w.number<uint64_t>(data.type);
  }
}

}  // namespace

std::string write_coremldata(const CoreMLData& data) {
  Writer w;
  w.number(data.type);
  for (uint64_t v : data.version) w.number(v);
  w.string(data.target);
  w.number(data.spec_version);
  w.out.append(28, '\0');
  if (data.target == "spec") {
    w.out += data.spec.text();
    return std::move(w.out);
  }
  w.string(data.description.text());
  write_tail(w, data);
  return std::move(w.out);
}

namespace {

/// Reads Xcode 9's layout of classic models and pipelines: 32 bytes stand before the target, whereas later versions
/// write them after it. A classic model's message follows with its size, or after the description.
Status read_first_layout(Stream& in, CoreMLData& out) {
  // the other 8 of the 32 bytes were read as the length of an empty target
  Bytes block = MOKA_TRY(in.bytes("header", 24));
  out.spec_version = 1;
  for (size_t i = 0; i < block.size(); i += sizeof(uint32_t)) {
    uint32_t v;
    std::memcpy(&v, block.data() + i, sizeof v);
    if (v > 0 && v < 256) out.spec_version = v;
  }
  out.target = MOKA_TRY(in.string("target"));
  const bool classic = !out.is_neural_network() && !out.is_program() && !out.is_pipeline();
  if (!classic) {
    out.description = MOKA_TRY(in.sized_bytes("model description"));
    return read_tail(in, out);
  }
  if (Stream sized = in; sized.left() >= sizeof(uint64_t)) {
    auto bytes = sized.sized_bytes("specification");
    if (bytes.ok()) {
      out.spec = sized.left() > 0 ? MOKA_TRY(sized.bytes("specification", sized.left())) : *bytes;
      out.target = "spec";
      return {};
    }
  }
  out.spec = MOKA_TRY(in.bytes("specification", in.left()));
  out.target = "spec";
  return {};
}

}  // namespace

Result<CoreMLData> parse_coremldata(const Bytes& file) {
  Stream in(file, "coremldata.bin");
  CoreMLData out;
  out.type = MOKA_TRY(in.number<uint32_t>("model type"));
  for (uint64_t& v : out.version) v = MOKA_TRY(in.number<uint64_t>("compiler version"));
  out.target = MOKA_TRY(in.string("target"));
  if (out.target.empty()) {
    MOKA_TRY(read_first_layout(in, out));
    return out;
  }
  out.spec_version = MOKA_TRY(in.number<uint32_t>("specification version"));
  MOKA_TRY(in.bytes("header", 28));
  if (out.target == "spec") {
    out.spec = MOKA_TRY(in.bytes("specification", in.left()));
    return out;
  }
  out.description = MOKA_TRY(in.sized_bytes("model description"));
  MOKA_TRY(read_tail(in, out));
  return out;
}

}  // namespace moka::format
