#include "format/mlmodelc/specification.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

#include "format/mlmodel/payload_filler.h"
#include "format/model_file_rep.h"
#include "format/proto/model.pb.h"

namespace moka::format {
namespace {

/// Maps ordered by key, so that the same model gives the same bytes.
std::string serialize(const google::protobuf::MessageLite& message) {
  std::string out;
  google::protobuf::io::StringOutputStream stream(&out);
  google::protobuf::io::CodedOutputStream coded(&stream);
  coded.SetSerializationDeterministic(true);
  message.SerializeToCodedStream(&coded);
  coded.Trim();
  return out;
}

std::string field(uint32_t number, const std::string& bytes) {
  std::string out;
  {
    google::protobuf::io::StringOutputStream stream(&out);
    google::protobuf::io::CodedOutputStream coded(&stream);
    constexpr uint32_t length_delimited = 2;
    coded.WriteTag(number << 3 | length_delimited);
    coded.WriteVarint64(bytes.size());
    coded.WriteString(bytes);
  }
  return out;
}

}  // namespace

Result<std::string> specification_of(const ModelFile& file) {
  if (!file.mil_text().empty())
    return fail(ErrorCode::unsupported, "'", file.path(), "': ML programs are not decompiled, only other models are");
  if (file.children().empty()) return file.complete_specification(serialize(file.spec()));
  std::string pipeline;
  for (const ModelFile& child : file.children()) pipeline += field(1, MOKA_TRY(specification_of(child)));
  const auto type = static_cast<uint32_t>(file.spec().Type_case());
  proto::Model head;
  head.set_specificationversion(file.spec().specificationversion());
  *head.mutable_description() = file.spec().description();
  constexpr uint32_t plain_pipeline = 202;
  return serialize(head) + field(type, type == plain_pipeline ? pipeline : field(1, pipeline));
}

}  // namespace moka::format
