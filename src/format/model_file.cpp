#include "format/model_file.h"

#include <filesystem>
#include <system_error>

#include "format/model_file_rep.h"
#include "format/path_guard.h"
#include "format/proto/model.pb.h"

namespace moka::format {
namespace {

namespace fs = std::filesystem;

using WeightKind = WeightData::Kind;
using TensorKind = TensorData::Kind;

WeightKind weight_kind(Payload::Kind kind) {
  switch (kind) {
    case Payload::Kind::float32: return WeightKind::float32;
    case Payload::Kind::float16: return WeightKind::float16;
    case Payload::Kind::raw: return WeightKind::raw;
    case Payload::Kind::int8_raw: return WeightKind::int8_raw;
    case Payload::Kind::tensor: break;
  }
  return WeightKind::none;
}

/// Memory of a decoded message, which `owner` keeps.
Bytes inline_bytes(const void* data, size_t size, const std::shared_ptr<MessageHolder>& owner) {
  return {{static_cast<const std::byte*>(data), size}, owner};
}

template <class Numbers>
Bytes numbers_of(const Numbers& numbers, const std::shared_ptr<MessageHolder>& owner) {
  return inline_bytes(numbers.data(), static_cast<size_t>(numbers.size()) * sizeof(*numbers.data()), owner);
}

Result<const Payload*> find_payload(const std::vector<Payload>& payloads, uint32_t index) {
  if (index >= payloads.size())
    return fail(ErrorCode::invalid_argument, "payload ", index, " of ", payloads.size(),
                ": the message is not part of this model file");
  return &payloads[index];
}

/// What a file that is no specification looks like, for the error.
const char* other_kind(std::string_view bytes) {
  if (bytes.starts_with("\x1f\x8b")) return "gzip-compressed data";
  if (bytes.starts_with("PK\x03\x04")) return "a zip archive";
  if (bytes.starts_with("{") || bytes.starts_with("[")) return "JSON text";
  if (bytes.starts_with("version https://git-lfs")) return "a Git LFS pointer, not the model itself";
  return nullptr;
}

}  // namespace

std::string_view to_string(Container container) {
  switch (container) {
    case Container::mlmodel: return "mlmodel";
    case Container::mlpackage: return "mlpackage";
    case Container::mlmodelc: return "mlmodelc";
  }
  return "";
}

Container ModelFile::container() const { return rep_->container; }
const std::string& ModelFile::path() const { return rep_->path; }
const proto::Model& ModelFile::spec() const { return *rep_->decoded.model; }
const Bytes& ModelFile::raw() const { return rep_->raw; }
const Bytes& ModelFile::mil_text() const { return rep_->mil_text; }
const WeightStore& ModelFile::weights() const { return rep_->weights; }
std::span<const ModelFile> ModelFile::children() const { return rep_->children; }
std::span<const PackageItem> ModelFile::package_items() const { return rep_->items; }
const CompiledInfo* ModelFile::compiled() const { return rep_->compiled.get(); }

std::vector<ModelFile::Stage> ModelFile::stages(const proto::Model& model) const {
  std::vector<Stage> out;
  if (&model == &spec() && !rep_->children.empty()) {
    for (const ModelFile& child : rep_->children) out.push_back({&child.spec(), child});
    return out;
  }
  const proto::Pipeline* pipeline = nullptr;
  switch (model.Type_case()) {
    case proto::Model::kPipeline: pipeline = &model.pipeline(); break;
    case proto::Model::kPipelineClassifier: pipeline = &model.pipelineclassifier().pipeline(); break;
    case proto::Model::kPipelineRegressor: pipeline = &model.pipelineregressor().pipeline(); break;
    default: return out;
  }
  for (const proto::Model& stage : pipeline->models()) out.push_back({&stage, *this});
  return out;
}

Result<WeightData> ModelFile::weight_data(const proto::WeightParams& weight) const {
  const auto& owner = rep_->decoded.holder;
  std::vector<WeightData> found;
  if (weight.has_payload_index()) {
    const Payload* p = MOKA_TRY(find_payload(rep_->decoded.payloads, weight.payload_index()));
    found.push_back({weight_kind(p->kind), p->bytes});
  }
  auto add = [&](WeightKind kind, const std::string& bytes) {
    if (!bytes.empty()) found.push_back({kind, inline_bytes(bytes.data(), bytes.size(), owner)});
  };
  if (weight.floatvalue_size() > 0) found.push_back({WeightKind::float32, numbers_of(weight.floatvalue(), owner)});
  add(WeightKind::float16, weight.float16value());
  add(WeightKind::raw, weight.rawvalue());
  add(WeightKind::int8_raw, weight.int8rawvalue());
  if (found.empty()) return WeightData{};
  if (found.size() > 1)
    return fail(ErrorCode::malformed, "a weight has values in ", found.size(), " fields, expected one");
  return std::move(found.front());
}

Result<TensorData> ModelFile::tensor_data(const proto::MILSpec::TensorValue& tensor) const {
  using Tensor = proto::MILSpec::TensorValue;
  const auto& owner = rep_->decoded.holder;
  TensorData out;
  size_t element = 1;
  switch (tensor.value_case()) {
    case Tensor::kFloats:
      out = {TensorKind::floats, numbers_of(tensor.floats().values(), owner)};
      element = sizeof(float);
      break;
    case Tensor::kInts:
      out = {TensorKind::ints, numbers_of(tensor.ints().values(), owner)};
      element = sizeof(int32_t);
      break;
    case Tensor::kBools: out = {TensorKind::bools, numbers_of(tensor.bools().values(), owner)}; break;
    case Tensor::kStrings:
      out.kind = TensorKind::strings;
      out.count = static_cast<size_t>(tensor.strings().values_size());
      return out;
    case Tensor::kLongInts:
      out = {TensorKind::long_ints, numbers_of(tensor.longints().values(), owner)};
      element = sizeof(int64_t);
      break;
    case Tensor::kDoubles:
      out = {TensorKind::doubles, numbers_of(tensor.doubles().values(), owner)};
      element = sizeof(double);
      break;
    case Tensor::kBytes: {
      const std::string& bytes = tensor.bytes().values();
      out = {TensorKind::raw, inline_bytes(bytes.data(), bytes.size(), owner)};
      break;
    }
    case Tensor::VALUE_NOT_SET: return out;
  }
  if (tensor.has_payload_index()) {
    const Payload* p = MOKA_TRY(find_payload(rep_->decoded.payloads, tensor.payload_index()));
    if (p->kind != Payload::Kind::tensor || !out.bytes.empty() || p->bytes.size() % element != 0)
      return fail(ErrorCode::malformed, "a tensor value is given more than once");
    out.bytes = p->bytes;
  }
  out.count = out.bytes.size() / element;
  return out;
}

Result<DecodedModel> decode_file(const Bytes& bytes, const OpenOptions& options) {
  if (bytes.empty()) return fail(ErrorCode::malformed, "the specification is empty");
  if (const char* kind = other_kind(bytes.text()))
    return fail(ErrorCode::malformed, "expected a Core ML specification, got ", kind);
  DecodedModel decoded = MOKA_TRY(decode_model(bytes, options.budget));
  if (decoded.model->Type_case() == proto::Model::TYPE_NOT_SET)
    return fail(ErrorCode::malformed, "the specification holds no model of a known type (specification version ",
                decoded.model->specificationversion(), ")");
  return decoded;
}

Result<ModelFile> open_mlmodel(const std::string& path, const OpenOptions& options) {
  auto rep = std::make_shared<ModelFile::Rep>();
  rep->container = Container::mlmodel;
  rep->path = path;
  rep->raw = MOKA_TRY(map_file(path));
  rep->decoded = MOKA_TRY_IN(decode_file(rep->raw, options), cat("'", path, "'"));
  std::string folder = fs::path(MOKA_TRY(real_path(path))).parent_path().string();
  rep->weights = MOKA_TRY(WeightStore::in_folder(folder, folder));
  return ModelFile(std::move(rep));
}

Result<ModelFile> open_model(const std::string& path, const OpenOptions& options) {
  std::string trimmed = path;
  while (trimmed.size() > 1 && trimmed.back() == '/') trimmed.pop_back();
  std::error_code e;
  fs::file_status status = fs::status(trimmed, e);
  if (status.type() == fs::file_type::not_found) return fail(ErrorCode::not_found, "'", path, "' does not exist");
  if (e) return fail(ErrorCode::io, "cannot look at '", path, "': ", e.message());
  if (!fs::is_directory(status)) return open_mlmodel(trimmed, options);
  if (fs::exists(trimmed + "/Manifest.json", e)) return open_mlpackage(trimmed, options);
  if (fs::exists(trimmed + "/coremldata.bin", e)) return open_mlmodelc(trimmed, options);
  return fail(ErrorCode::malformed, "the folder '", path,
              "' is no model: it has neither Manifest.json (.mlpackage) nor coremldata.bin (.mlmodelc)");
}

Result<ModelFile> open_model_bytes(Bytes spec, std::map<std::string, Bytes> blobs, const OpenOptions& options) {
  auto rep = std::make_shared<ModelFile::Rep>();
  rep->raw = std::move(spec);
  rep->decoded = MOKA_TRY_IN(decode_file(rep->raw, options), "model from memory");
  rep->weights = WeightStore::in_memory(std::move(blobs));
  return ModelFile(std::move(rep));
}

}  // namespace moka::format
