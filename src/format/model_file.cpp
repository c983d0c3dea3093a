// SPDX-License-Identifier: Apache-2.0
#include "format/model_file.h"

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "format/file_kind.h"
#include "format/message/message.h"
#include "format/mlmodel/payload_filler.h"
#include "format/mlmodel/unknown_fields.h"
#include "format/mlmodelc/write.h"
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
    case Payload::Kind::tensor:
    case Payload::Kind::samples: break;
  }
  return WeightKind::none;
}

/// The memory of a decoded message, kept alive by `owner`.
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

}  // namespace

const proto::Pipeline* pipeline_of(const proto::Model& model) {
  switch (model.Type_case()) {
    case proto::Model::kPipeline: return &model.pipeline();
    case proto::Model::kPipelineClassifier: return &model.pipelineclassifier().pipeline();
    case proto::Model::kPipelineRegressor: return &model.pipelineregressor().pipeline();
    default: return nullptr;
  }
}

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
const std::string& ModelFile::specification_name() const { return rep_->specification_name; }
const std::string& ModelFile::remark() const { return rep_->remark; }
bool ModelFile::encrypted() const { return rep_->encrypted; }
const CompiledInfo* ModelFile::compiled() const { return rep_->compiled.get(); }

Result<Bytes> ModelFile::described_raw() const {
  if (!rep_->overlaid) return raw();
  Message model = MOKA_TRY(Message::parse("Model", raw()));
  const Bytes description = Bytes::from(serialize(spec().description()));
  MOKA_TRY(model.set("description", MOKA_TRY(Message::parse("ModelDescription", description))));
  return MOKA_TRY(model.serialize()).joined();
}

std::vector<ModelFile::Stage> ModelFile::stages(const proto::Model& model) const {
  std::vector<Stage> out;
  if (&model == &spec() && !rep_->children.empty()) {
    for (const ModelFile& child : rep_->children) out.push_back({&child.spec(), child});
    return out;
  }
  const proto::Pipeline* pipeline = pipeline_of(model);
  if (pipeline == nullptr) return out;
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

Result<SampleData> ModelFile::sample_data(const proto::NearestNeighborsIndex& index) const {
  SampleData out;
  if (index.has_payload_index()) {
    const Payload* p = MOKA_TRY(find_payload(rep_->decoded.payloads, index.payload_index()));
    if (p->kind != Payload::Kind::samples || index.floatsamples_size() > 0)
      return fail(ErrorCode::malformed, "the samples of a nearest-neighbors index are given more than once");
    out.runs = p->samples;
    out.length = out.runs->runs().front().size / sizeof(float);
    for (const SampleRun& run : out.runs->runs()) out.count += run.count;
    return out;
  }
  out.count = static_cast<size_t>(index.floatsamples_size());
  if (out.count > 0) out.length = static_cast<size_t>(index.floatsamples(0).vector_size());
  std::vector<SampleRun> runs;
  for (size_t i = 0; i < out.count && !out.other; ++i) {
    const auto& numbers = index.floatsamples(static_cast<int>(i)).vector();
    const auto length = static_cast<size_t>(numbers.size());
    if (length != out.length) {
      out.other = i;
      out.other_length = length;
    } else {
      const size_t size = length * sizeof(float);
      runs.push_back({numbers_of(numbers, rep_->decoded.holder), 1, size, size});
    }
  }
  if (!runs.empty() && !out.other) out.runs = std::make_shared<const SampleRuns>(std::move(runs));
  return out;
}

Result<std::string> ModelFile::complete_specification(std::string_view serialized) const {
  return fill_payloads(serialized, rep_->decoded.payloads);
}

namespace {

std::string joined(const std::vector<std::string>& list) {
  std::string out;
  for (const std::string& what : list) out += cat(out.empty() ? "" : "; ", what);
  return out;
}

}  // namespace

Result<std::string> check_version(int version, const Bytes& message, std::string_view type) {
  if (version <= newest_specification) return std::string();
  const UnknownFields unknown = unknown_fields(message, type);
  const std::string newer =
      cat("specification version ", version, " is newer than ", newest_specification, ", the newest that is known");
  if (!unknown.needed.empty())
    return fail(ErrorCode::unsupported, newer, ", and the model has what that one has not: ", joined(unknown.needed));
  if (unknown.ignored.empty()) return newer + "; the model has nothing that is not known";
  return newer + "; ignored, because no prediction needs it: " + joined(unknown.ignored);
}

namespace {

/// The newest specification version in the model and the models inside it.
int newest_version(const proto::Model& model, int depth = 0) {
  int version = model.specificationversion();
  const proto::Pipeline* pipeline = pipeline_of(model);
  if (pipeline != nullptr && depth < max_message_depth)
    for (const proto::Model& stage : pipeline->models()) version = std::max(version, newest_version(stage, depth + 1));
  return version;
}

/// Whether a model of unknown type resembles a specification.
bool says_something(const proto::Model& model) { return model.specificationversion() > 0 && model.has_description(); }

}  // namespace

Status decode_file(const Bytes& bytes, const OpenOptions& options, ModelFile::Rep& rep) {
  Result<DecodedModel> decoded = decode_model(bytes, options.budget);
  if (decoded.ok() && decoded->model->Type_case() == proto::Model::TYPE_NOT_SET &&
      !(options.any_kind && says_something(*decoded->model) && foreign_kind(bytes).empty())) {
    const int version = decoded->model->specificationversion();
    decoded = fail(ErrorCode::malformed, "the specification holds no model of a known type (specification version ",
                   version, ")");
    if (version > newest_specification && foreign_kind(bytes).empty()) MOKA_TRY(check_version(version, bytes, "Model"));
  }
  if (!decoded.ok()) return foreign_or(std::move(decoded).error(), bytes, "a Core ML specification");
  Result<std::string> remark = check_version(newest_version(*decoded->model), bytes, "Model");
  if (!remark.ok() && !options.any_kind) return std::move(remark).error();
  if (remark.ok()) rep.remark = *std::move(remark);
  rep.decoded = *std::move(decoded);
  return {};
}

namespace {

/// The package or compiled model that contains the file; empty: none.
std::string model_around(const std::string& file) {
  constexpr int kDepth = 4;
  fs::path folder = fs::path(file).parent_path();
  for (int i = 0; i < kDepth && folder.has_filename(); ++i, folder = folder.parent_path())
    for (const char* mark : {"Manifest.json", "coremldata.bin"})
      if (std::error_code e; fs::exists(folder / mark, e)) return folder.string();
  return {};
}

/// A hint that names the models directly inside the folder: "; it holds 'a.mlpackage'".
std::string models_inside(const std::string& folder) {
  std::error_code e;
  for (const auto& entry : fs::directory_iterator(folder, e))
    for (const char* kind : {".mlpackage", ".mlmodelc", ".mlmodel"})
      if (entry.path().extension() == kind) return cat("; it holds '", entry.path().filename().string(), "'");
  return {};
}

}  // namespace

Result<ModelFile> open_mlmodel(const std::string& path, const OpenOptions& options) {
  auto rep = std::make_shared<ModelFile::Rep>();
  rep->container = Container::mlmodel;
  rep->path = path;
  MOKA_TRY(refuse_apple_key(path));
  rep->raw = MOKA_TRY(map_file(path));
  if (is_container(rep->raw)) return open_container(path, rep->raw, options);
  if (Status decoded = decode_file(rep->raw, options, *rep); !decoded.ok()) {
    Error error = std::move(decoded).error();
    if (const std::string around = model_around(path); error.code() == ErrorCode::malformed && !around.empty())
      error =
          fail(ErrorCode::malformed, error.to_string(), "; the file is a part of '", around, "', which is the model");
    return std::move(error).in(cat("'", path, "'"));
  }
  const ModelFolder folder = MOKA_TRY(ModelFolder::on_disk(MOKA_TRY(folder_of(path))));
  rep->weights = WeightStore::in_folder(folder, folder.root());
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
  if (fs::exists(trimmed + "/Manifest.json", e))
    return open_mlpackage(trimmed, MOKA_TRY(ModelFolder::on_disk(trimmed)), options);
  if (fs::exists(trimmed + "/coremldata.bin", e) || fs::exists(trimmed + "/encryptionInfo", e))
    return open_mlmodelc(trimmed, MOKA_TRY(ModelFolder::on_disk(trimmed)), options);
  return fail(ErrorCode::malformed, "the folder '", path,
              "' is not a model: it has neither Manifest.json (.mlpackage) nor coremldata.bin (.mlmodelc)",
              models_inside(trimmed));
}

Result<ModelFile> open_model_bytes(Bytes spec, std::map<std::string, Bytes> blobs, const OpenOptions& options) {
  if (is_container(spec)) return open_container({}, spec, options);
  return open_specification({}, std::move(spec), WeightStore::in_memory(std::move(blobs)), options);
}

ModelFile ModelFile::as_encrypted() const {
  auto rep = std::make_shared<Rep>(*rep_);
  rep->encrypted = true;
  return ModelFile(std::move(rep));
}

Result<ModelFile> ModelFile::with_samples(const AddedSamples& added) const {
  MOKA_TRY(check_version(newest_version(spec()), raw(), "Model"));
  auto rep = std::make_shared<Rep>(*rep_);
  rep->path.clear();
  rep->raw = {};
  rep->decoded = copy_of(rep_->decoded);
  proto::KNearestNeighborsClassifier& classifier = *rep->decoded.model->mutable_knearestneighborsclassifier();
  proto::NearestNeighborsIndex& index = *classifier.mutable_nearestneighborsindex();
  const SampleData samples = MOKA_TRY(sample_data(spec().knearestneighborsclassifier().nearestneighborsindex()));
  std::vector<SampleRun> runs;
  if (samples.runs) runs.assign(samples.runs->runs().begin(), samples.runs->runs().end());
  const size_t size = static_cast<size_t>(index.numberofdimensions()) * sizeof(float);
  if (!added.numbers.empty()) runs.push_back({added.numbers, added.numbers.size() / size, size, size});
  if (!runs.empty()) {
    index.clear_floatsamples();
    index.set_payload_index(static_cast<uint32_t>(rep->decoded.payloads.size()));
    rep->decoded.payloads.push_back({Payload::Kind::samples, {}, std::make_shared<const SampleRuns>(std::move(runs))});
  }
  if (const auto* texts = std::get_if<std::vector<std::string>>(&added.labels))
    for (const std::string& text : *texts) classifier.mutable_stringclasslabels()->add_vector(text);
  else
    for (const int64_t label : std::get<std::vector<int64_t>>(added.labels))
      classifier.mutable_int64classlabels()->add_vector(label);
  if (added.neighbors) classifier.mutable_numberofneighbors()->set_defaultvalue(*added.neighbors);
  return ModelFile(std::move(rep));
}

Status refuse_encrypted(const ModelFile& file, std::string_view what) {
  if (!file.encrypted()) return {};
  return fail(ErrorCode::invalid_argument, "'", file.path(), "' is encrypted, and ", what,
              " would write it as plain files; 'moka decrypt' does that first");
}

}  // namespace moka::format
