#include "format/proto/model.pb.h"
#include "import/importer.h"

namespace moka::import {
namespace {

using proto::Model;

Status import(const Model& model, const ImportContext&, ir::Builder&, Features&) {
  auto refuse = [](std::string_view what) { return fail(ErrorCode::unsupported, "model type ", what); };
  switch (model.Type_case()) {
    case Model::kBayesianProbitRegressor:
      return refuse("bayesianProbitRegressor: the file does not hold the scale of its link function");
    case Model::kCustomModel:
      return refuse(cat("customModel '", model.custommodel().classname(), "': it is code of the application"));
    case Model::kLinkedModel:
      return refuse(cat("linkedModel: it is the file '",
                        model.linkedmodel().linkedmodelfile().linkedmodelfilename().defaultvalue(), "' in '",
                        model.linkedmodel().linkedmodelfile().linkedmodelsearchpath().defaultvalue(), "'"));
    case Model::kTextClassifier: return refuse("textClassifier: it needs Apple's Natural Language framework");
    case Model::kWordTagger: return refuse("wordTagger: it needs Apple's Natural Language framework");
    case Model::kGazetteer: return refuse("gazetteer: it needs Apple's Natural Language framework");
    case Model::kWordEmbedding: return refuse("wordEmbedding: it needs Apple's Natural Language framework");
    case Model::kVisionFeaturePrint: return refuse("visionFeaturePrint: its weights are part of Apple's systems");
    case Model::kAudioFeaturePrint: return refuse("audioFeaturePrint: its weights are part of Apple's systems");
    case Model::kSoundAnalysisPreprocessing: return refuse("soundAnalysisPreprocessing: it is part of Apple's systems");
    default: return refuse(cat("number ", static_cast<int>(model.Type_case())));
  }
}

}  // namespace

ModelImporter importer_unsupported() {
  static constexpr int types[] = {Model::kBayesianProbitRegressor,
                                  Model::kCustomModel,
                                  Model::kLinkedModel,
                                  Model::kTextClassifier,
                                  Model::kWordTagger,
                                  Model::kGazetteer,
                                  Model::kWordEmbedding,
                                  Model::kVisionFeaturePrint,
                                  Model::kAudioFeaturePrint,
                                  Model::kSoundAnalysisPreprocessing,
                                  Model::kSerializedModel};
  return {types, import};
}

}  // namespace moka::import
