// SPDX-License-Identifier: Apache-2.0
#include <optional>

#include "base/bytes.h"
#include "format/proto/model.pb.h"
#include "import/classic/classic.h"
#include "import/importer.h"
#include "import/language_data.h"
#include "import/registered_models.h"

/// Models whose code or weights are not in the file: custom models, and parts of Apple's systems. They run when a
/// program has registered something in their place.
namespace moka::import {
namespace {

using ir::Constant;
using ir::Tensor;
using proto::Model;

Result<Constant> bytes_of(const std::string& data) {
  Tensor t = MOKA_TRY(Tensor::zeros(ir::DType::uint8, {static_cast<int64_t>(data.size())}));
  std::copy(data.begin(), data.end(), static_cast<char*>(t.mutable_data()));
  return Constant(std::move(t));
}

Constant number(int64_t v) { return Constant(Tensor::scalar_i64(ir::DType::int64, v)); }
Constant text(const std::string& v) { return Constant(Tensor::text(v)); }

Constant texts(const proto::StringVector& v) {
  return Constant(Tensor::strings({v.vector_size()}, {v.vector().begin(), v.vector().end()}));
}

/// A part of Apple's systems, by the name under which it can be replaced.
struct Part {
  std::string type, version;  ///< "visionFeaturePrint.scene", "1"
  std::string reason;         ///< why it cannot run by itself
  int64_t elements = 0;       ///< of its output; 0: not known
  std::map<std::string, Constant> parameters;

  std::string name() const { return version.empty() ? type : cat(type, ".", version); }
};

template <class Message>
Status add_text(Part& part, const Message& m) {
  part.version = cat(m.revision());
  part.reason = cat("it needs Apple's Natural Language framework (revision ", m.revision(), ", ",
                    form_of_language_data(m.modelparameterdata()), ")");
  part.parameters.emplace("revision", number(m.revision()));
  part.parameters.emplace("language", text(m.language()));
  part.parameters.emplace("modelParameterData", MOKA_TRY(bytes_of(m.modelparameterdata())));
  return {};
}

Result<std::optional<Part>> part_of(const Model& model) {
  Part part;
  switch (model.Type_case()) {
    case Model::kVisionFeaturePrint: {
      const auto& m = model.visionfeatureprint();
      part.reason = "its weights are part of Apple's systems";
      if (m.has_objects()) {
        part.type = "visionFeaturePrint.objects";
        part.version = cat(static_cast<int>(m.objects().version()));
      } else {
        part.type = "visionFeaturePrint.scene";
        part.version = cat(static_cast<int>(m.scene().version()));
        part.elements = m.scene().version() == 1 ? 2048 : m.scene().version() == 2 ? 768 : 0;
      }
      break;
    }
    case Model::kAudioFeaturePrint:
      part.type = "audioFeaturePrint.sound";
      part.version = cat(static_cast<int>(model.audiofeatureprint().sound().version()));
      part.reason = "its weights are part of Apple's systems";
      part.elements = 512;
      break;
    case Model::kTextClassifier:
      part.type = "textClassifier";
      MOKA_TRY(add_text(part, model.textclassifier()));
      part.parameters.emplace("labels", texts(model.textclassifier().stringclasslabels()));
      break;
    case Model::kWordTagger: {
      const auto& m = model.wordtagger();
      part.type = "wordTagger";
      MOKA_TRY(add_text(part, m));
      part.parameters.emplace("labels", texts(m.stringtags()));
      part.parameters.emplace("tokens", text(m.tokensoutputfeaturename()));
      part.parameters.emplace("tags", text(m.tokentagsoutputfeaturename()));
      part.parameters.emplace("locations", text(m.tokenlocationsoutputfeaturename()));
      part.parameters.emplace("lengths", text(m.tokenlengthsoutputfeaturename()));
      break;
    }
    case Model::kGazetteer:
      part.type = "gazetteer";
      MOKA_TRY(add_text(part, model.gazetteer()));
      part.parameters.emplace("labels", texts(model.gazetteer().stringclasslabels()));
      break;
    case Model::kWordEmbedding:
      part.type = "wordEmbedding";
      MOKA_TRY(add_text(part, model.wordembedding()));
      break;
    case Model::kSoundAnalysisPreprocessing:
      part.type = "soundAnalysisPreprocessing";
      part.version = "vggish";
      part.reason = "it is part of Apple's systems";
      break;
    default: return std::optional<Part>();
  }
  return std::optional<Part>(std::move(part));
}

/// Checks that the described output has as many elements as Apple's model returns.
Status check_elements(const Part& part, const FunctionDescription& f) {
  if (part.elements == 0 || f.outputs.size() != 1) return {};
  const auto wanted = boundary_type(f.outputs[0], true);
  if (!wanted.ok() || !wanted->is_tensor() || !wanted->is_ranked() || !wanted->is_concrete()) return {};
  if (wanted->shape().count() == part.elements) return {};
  return fail(ErrorCode::malformed, "model type ", part.name(), ": expected an output of ", part.elements,
              " elements, got one of ", wanted->shape().count());
}

/// Core ML's definition of these features is public: 15600 samples at 16 kHz become [1, 96, 64].
Status import_sound(const Model& model, const ImportContext& context, ir::Builder& builder, Features& features) {
  constexpr int64_t kSamples = 15600;
  const auto site = MOKA_TRY(classic::Site::open(model, context, builder, features));
  const FeatureDescription* output = MOKA_TRY(site.only_output());
  MOKA_TRY(site.only_input());
  ir::Value* samples = MOKA_TRY(site.vector(kSamples));
  return site.output(*output, MOKA_TRY(site.op("ml_vggish_features", {{"x", samples}}, "features")));
}

Status import_part(Part part, const Model& model, const ImportContext& context, ir::Builder& builder,
                   Features& features) {
  constexpr std::string_view kSound = "soundAnalysisPreprocessing";
  if (context.options.placeholders) {
    if (part.type == kSound) return import_sound(model, context, builder, features);
    MOKA_TRY(check_elements(part, MOKA_TRY(function_of(model, context))));
    return import_placeholder(model, cat("model type ", part.name()), context, builder, features);
  }
  auto entry = registered_model(part.name());
  if (entry == nullptr) entry = registered_model(part.type);
  if (entry == nullptr && part.type == kSound) return import_sound(model, context, builder, features);
  if (entry == nullptr) {
    const std::string kind = part.type.substr(0, part.type.find('.'));
    const std::string size = part.elements == 0 ? "" : cat(" that gives ", part.elements, " elements");
    return fail(ErrorCode::unsupported, "model type ", kind, ": ", part.reason, "; register_model(\"", part.name(),
                "\", ...) puts a model", size, " in its place");
  }
  const FunctionDescription function = MOKA_TRY(function_of(model, context));
  MOKA_TRY(check_elements(part, function));
  CustomModelSpec spec{part.name(), part.reason, std::move(part.parameters), function};
  return import_registered(*entry, std::move(spec), context, builder, features);
}

Result<Constant> parameter(const proto::CustomModel::CustomModelParamValue& v) {
  using Value = proto::CustomModel::CustomModelParamValue;
  switch (v.value_case()) {
    case Value::kDoubleValue: return Constant(Tensor::scalar(ir::DType::fp64, v.doublevalue()));
    case Value::kStringValue: return text(v.stringvalue());
    case Value::kIntValue: return number(v.intvalue());
    case Value::kLongValue: return number(v.longvalue());
    case Value::kBoolValue: return Constant(Tensor::boolean(v.boolvalue()));
    case Value::kBytesValue: return bytes_of(v.bytesvalue());
    default: return fail(ErrorCode::malformed, "it has no value");
  }
}

Status import_custom(const Model& model, const ImportContext& context, ir::Builder& builder, Features& features) {
  const proto::CustomModel& m = model.custommodel();
  std::map<std::string, Constant> parameters;
  for (const auto& [key, value] : m.parameters())
    parameters.emplace(key,
                       MOKA_TRY_IN(parameter(value), cat("custom model '", m.classname(), "', parameter '", key, "'")));
  if (context.options.placeholders)
    return import_placeholder(model, cat("custom model '", m.classname(), "'"), context, builder, features);
  const auto entry = registered_model(m.classname());
  if (entry == nullptr)
    return fail(ErrorCode::unsupported, "model type customModel '", m.classname(), "'",
                m.description().empty() ? "" : cat(" (", m.description(), ")"), ": it is code of the application; ",
                ir::register_hint("register_model"));
  const FunctionDescription function = MOKA_TRY(function_of(model, context));
  CustomModelSpec spec{m.classname(), m.description(), std::move(parameters), function};
  return import_registered(*entry, std::move(spec), context, builder, features);
}

Status import_registered(const Model& model, const ImportContext& context, ir::Builder& builder, Features& features) {
  if (model.Type_case() == Model::kCustomModel) return import_custom(model, context, builder, features);
  if (auto part = MOKA_TRY(part_of(model))) return import_part(std::move(*part), model, context, builder, features);
  return fail(ErrorCode::unsupported, "model type number ", static_cast<int>(model.Type_case()));
}

}  // namespace

ModelImporter importer_registered() {
  static constexpr int types[] = {
      Model::kCustomModel,   Model::kTextClassifier,     Model::kWordTagger,        Model::kGazetteer,
      Model::kWordEmbedding, Model::kVisionFeaturePrint, Model::kAudioFeaturePrint, Model::kSoundAnalysisPreprocessing};
  return {types, import_registered};
}

}  // namespace moka::import
