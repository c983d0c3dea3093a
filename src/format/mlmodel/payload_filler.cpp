// SPDX-License-Identifier: Apache-2.0
#include "format/mlmodel/payload_filler.h"

#include <iterator>
#include <optional>
#include <protozero/exception.hpp>
#include <protozero/pbf_reader.hpp>
#include <protozero/varint.hpp>

#include "format/mlmodel/payload_edges.h"
#include "format/proto/model.pb.h"

namespace moka::format {
namespace {

using protozero::data_view;
using protozero::pbf_reader;
using protozero::pbf_wire_type;

void put_delimited(std::string& out, uint32_t field, std::string_view bytes) {
  protozero::write_varint(std::back_inserter(out),
                          (uint64_t{field} << 3) | static_cast<uint32_t>(pbf_wire_type::length_delimited));
  protozero::write_varint(std::back_inserter(out), bytes.size());
  out += bytes;
}

class Filler {
 public:
  explicit Filler(const std::vector<Payload>& payloads) : payloads_(payloads) {}

  Result<std::string> message(data_view in, PayloadNode node) {
    std::string out;
    pbf_reader reader(in);
    const char* begin = reader.data().data();
    while (reader.next()) {
      const uint32_t field = reader.tag();
      std::optional<PayloadNode> child;
      for (const PayloadEdge& edge : payload_edges(node))
        if (edge.field == field) child = edge.to;
      const bool index = (node == PayloadNode::WeightParams || node == PayloadNode::NearestNeighborsIndex) &&
                         field == proto::WeightParams::kPayloadIndexFieldNumber;
      if (child && reader.wire_type() == pbf_wire_type::length_delimited) {
        put_delimited(out, field, MOKA_TRY(message(reader.get_view(), *child)));
      } else if (index && reader.wire_type() == pbf_wire_type::varint) {
        MOKA_TRY(put_payload(out, reader.get_uint32()));
      } else {
        reader.skip();
        out.append(begin, reader.data().data());
      }
      begin = reader.data().data();
    }
    return out;
  }

 private:
  Status put_payload(std::string& out, uint32_t index) {
    if (index >= payloads_.size())
      return fail(ErrorCode::malformed, "payload ", index, " of ", payloads_.size(), " in a weight");
    const std::string_view bytes = payloads_[index].bytes.text();
    switch (payloads_[index].kind) {
      case Payload::Kind::float32: put_delimited(out, proto::WeightParams::kFloatValueFieldNumber, bytes); break;
      case Payload::Kind::float16: put_delimited(out, proto::WeightParams::kFloat16ValueFieldNumber, bytes); break;
      case Payload::Kind::raw: put_delimited(out, proto::WeightParams::kRawValueFieldNumber, bytes); break;
      case Payload::Kind::int8_raw: put_delimited(out, proto::WeightParams::kInt8RawValueFieldNumber, bytes); break;
      case Payload::Kind::samples: put_samples(out, *payloads_[index].samples); break;
      case Payload::Kind::tensor: return fail(ErrorCode::unsupported, "a tensor in a neural network's weight");
    }
    return {};
  }

  static void put_samples(std::string& out, const SampleRuns& samples) {
    for (const SampleRun& run : samples.runs())
      for (size_t i = 0; i < run.count; ++i) {
        std::string sample;
        put_delimited(sample, proto::FloatVector::kVectorFieldNumber, run.bytes.text().substr(i * run.step, run.size));
        put_delimited(out, proto::NearestNeighborsIndex::kFloatSamplesFieldNumber, sample);
      }
  }

  const std::vector<Payload>& payloads_;
};

}  // namespace

Result<std::string> fill_payloads(std::string_view model, const std::vector<Payload>& payloads) {
  try {
    return Filler(payloads).message(data_view(model.data(), model.size()), PayloadNode::Model);
  } catch (const protozero::exception& e) {
    return fail(ErrorCode::malformed, "a serialized model does not read back: ", e.what());
  }
}

}  // namespace moka::format
