// SPDX-License-Identifier: Apache-2.0
#include "import/model_type.h"

#include <algorithm>
#include <utility>

#include "format/proto/model.pb.h"
#include "import/common/distinct.h"

namespace moka::import {

namespace {

constexpr int kMaxPipelineDepth = 16;

struct Name {
  int type;
  std::string_view name;
};
constexpr Name kNames[] = {
    {200, "pipelineClassifier"},
    {201, "pipelineRegressor"},
    {202, "pipeline"},
    {300, "glmRegressor"},
    {301, "supportVectorRegressor"},
    {302, "treeEnsembleRegressor"},
    {303, "neuralNetworkRegressor"},
    {304, "bayesianProbitRegressor"},
    {400, "glmClassifier"},
    {401, "supportVectorClassifier"},
    {402, "treeEnsembleClassifier"},
    {403, "neuralNetworkClassifier"},
    {404, "kNearestNeighborsClassifier"},
    {500, "neuralNetwork"},
    {501, "itemSimilarityRecommender"},
    {kMLProgram, "mlProgram"},
    {555, "customModel"},
    {556, "linkedModel"},
    {560, "classConfidenceThresholding"},
    {600, "oneHotEncoder"},
    {601, "imputer"},
    {602, "featureVectorizer"},
    {603, "dictVectorizer"},
    {604, "scaler"},
    {606, "categoricalMapping"},
    {607, "normalizer"},
    {609, "arrayFeatureExtractor"},
    {610, "nonMaximumSuppression"},
    {900, "identity"},
    {2000, "textClassifier"},
    {2001, "wordTagger"},
    {2002, "visionFeaturePrint"},
    {2003, "soundAnalysisPreprocessing"},
    {2004, "gazetteer"},
    {2005, "wordEmbedding"},
    {2006, "audioFeaturePrint"},
    {3000, "serializedModel"},
};

/// The labels in any message that has the ClassLabels members.
template <class M>
std::vector<ir::Tensor> labels_of(const M& m) {
  std::vector<ir::Tensor> out;
  if (m.has_stringclasslabels()) {
    const auto& v = m.stringclasslabels().vector();
    out.push_back(ir::Tensor::strings(ir::Shape{v.size()}, {v.begin(), v.end()}));
    return out;
  }
  if constexpr (requires { m.int64classlabels(); }) {
    if (!m.has_int64classlabels()) return out;
    const auto& v = m.int64classlabels().vector();
    auto t = ir::Tensor::zeros(ir::DType::int64, ir::Shape{v.size()});
    if (!t.ok()) return out;
    std::copy(v.begin(), v.end(), t->mut<int64_t>().begin());
    out.push_back(std::move(*t));
  }
  return out;
}

/// The labels of samples as classes, in ascending order.
std::vector<ir::Tensor> classes_of(const proto::KNearestNeighborsClassifier& m) {
  std::vector<ir::Tensor> out;
  if (m.has_stringclasslabels()) {
    std::vector<std::string> texts = distinct_of(m.stringclasslabels().vector()).values;
    const auto n = static_cast<int64_t>(texts.size());
    out.push_back(ir::Tensor::strings(ir::Shape{n}, std::move(texts)));
  } else if (m.has_int64classlabels()) {
    const std::vector<int64_t> numbers = distinct_of(m.int64classlabels().vector()).values;
    auto t = ir::Tensor::zeros(ir::DType::int64, ir::Shape{static_cast<int64_t>(numbers.size())});
    if (!t.ok()) return out;
    std::copy(numbers.begin(), numbers.end(), t->mut<int64_t>().begin());
    out.push_back(std::move(*t));
  }
  return out;
}

Result<std::vector<ir::Tensor>> find_labels(const proto::Model& model, const format::ModelFile* file, int depth) {
  std::vector<ir::Tensor> out;
  if (depth > kMaxPipelineDepth)
    return fail(ErrorCode::malformed, "pipelines nested more than ", kMaxPipelineDepth, " deep");
  switch (model.Type_case()) {
    case proto::Model::kGlmClassifier: return labels_of(model.glmclassifier());
    case proto::Model::kSupportVectorClassifier: return labels_of(model.supportvectorclassifier());
    case proto::Model::kTreeEnsembleClassifier: return labels_of(model.treeensembleclassifier());
    case proto::Model::kNeuralNetworkClassifier: return labels_of(model.neuralnetworkclassifier());
    case proto::Model::kKNearestNeighborsClassifier: return classes_of(model.knearestneighborsclassifier());
    case proto::Model::kTextClassifier: return labels_of(model.textclassifier());
    case proto::Model::kNonMaximumSuppression: return labels_of(model.nonmaximumsuppression());
    case proto::Model::kPipelineClassifier:
    case proto::Model::kPipeline: break;
    default: return out;
  }
  if (file != nullptr) {
    for (const auto& stage : file->stages(model))
      if (auto labels = MOKA_TRY(find_labels(*stage.model, &stage.file, depth + 1)); !labels.empty())
        out = std::move(labels);
  } else {
    for (const proto::Model& stage : format::pipeline_of(model)->models())
      if (auto labels = MOKA_TRY(find_labels(stage, nullptr, depth + 1)); !labels.empty()) out = std::move(labels);
  }
  return out;
}

}  // namespace

std::string_view model_type_name(int type) {
  for (const Name& n : kNames)
    if (n.type == type) return n.name;
  return {};
}

int model_type(const proto::Model& model, const format::ModelFile& file) {
  if (model.Type_case() != proto::Model::TYPE_NOT_SET) return model.Type_case();
  if (&model != &file.spec()) return 0;
  if (!file.mil_text().empty()) return kMLProgram;
  return file.compiled() != nullptr ? static_cast<int>(file.compiled()->type) : 0;
}

Result<std::vector<ir::Tensor>> class_labels(const proto::Model& model, const format::ModelFile* file) {
  return find_labels(model, file, 0);
}

}  // namespace moka::import
