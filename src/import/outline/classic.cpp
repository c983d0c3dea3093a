// SPDX-License-Identifier: Apache-2.0
#include <set>

#include "format/proto/model.pb.h"
#include "import/language_data.h"
#include "import/outline/parts.h"

namespace moka::import {
namespace {

class Facts {
 public:
  explicit Facts(Outline& out) : out_(out) {}
  template <class Value>
  void add(std::string name, const Value& value) {
    out_.facts.emplace_back(std::move(name), cat(value));
  }

 private:
  Outline& out_;
};

/// The class labels of a message that has them as strings or as int64.
template <class M>
int labels(const M& m) {
  return m.stringclasslabels().vector_size() + m.int64classlabels().vector_size();
}

template <class M>
void linear(const M& m, Facts& facts) {
  int64_t coefficients = 0;
  for (const auto& row : m.weights()) coefficients += row.value_size();
  facts.add("coefficients", coefficients);
  facts.add("offsets", m.offset_size());
}

std::string test_of(const proto::TreeEnsembleParameters_TreeNode& node) {
  using Node = proto::TreeEnsembleParameters_TreeNode;
  const char* relation = "?";
  switch (node.nodebehavior()) {
    case Node::BranchOnValueLessThanEqual: relation = "<="; break;
    case Node::BranchOnValueLessThan: relation = "<"; break;
    case Node::BranchOnValueGreaterThanEqual: relation = ">="; break;
    case Node::BranchOnValueGreaterThan: relation = ">"; break;
    case Node::BranchOnValueEqual: relation = "=="; break;
    case Node::BranchOnValueNotEqual: relation = "!="; break;
    default: break;
  }
  return cat("feature ", node.branchfeatureindex(), " ", relation, " ", node.branchfeaturevalue(),
             node.missingvaluetrackstruechild() ? " or missing" : "");
}

void trees(const proto::TreeEnsembleParameters& ensemble, Outline& out, Facts& facts) {
  std::set<uint64_t> ids;
  int64_t leaves = 0;
  for (const auto& node : ensemble.nodes()) {
    ids.insert(node.treeid());
    const bool is_leaf = node.nodebehavior() == proto::TreeEnsembleParameters_TreeNode::LeafNode;
    leaves += is_leaf;
    Outline::TreeNode& listed = out.tree_nodes.emplace_back();
    listed.tree = node.treeid();
    listed.id = node.nodeid();
    if (is_leaf) {
      for (const auto& value : node.evaluationinfo())
        listed.values.emplace_back(value.evaluationindex(), value.evaluationvalue());
    } else {
      listed.test = test_of(node);
      listed.on_true = node.truechildnodeid();
      listed.on_false = node.falsechildnodeid();
    }
  }
  facts.add("trees", ids.size());
  facts.add("nodes", ensemble.nodes_size());
  facts.add("leaves", leaves);
  facts.add("dimensions", ensemble.numpredictiondimensions());
}

std::string_view kernel(const proto::Kernel& k) {
  switch (k.kernel_case()) {
    case proto::Kernel::kLinearKernel: return "linear";
    case proto::Kernel::kRbfKernel: return "RBF";
    case proto::Kernel::kPolyKernel: return "polynomial";
    case proto::Kernel::kSigmoidKernel: return "sigmoid";
    default: return "none";
  }
}

template <class M>
void support_vectors(const M& m, Facts& facts) {
  facts.add("kernel", kernel(m.kernel()));
  facts.add("support vectors", m.densesupportvectors().vectors_size() + m.sparsesupportvectors().vectors_size());
}

/// Models whose parameters only Apple's systems can use.
template <class M>
void trained_elsewhere(const M& m, Facts& facts) {
  facts.add("revision", m.revision());
  if (!m.language().empty()) facts.add("language", m.language());
  facts.add("parameters", form_of_language_data(m.modelparameterdata()));
}

void suppression(const proto::NonMaximumSuppression& m, Facts& facts) {
  facts.add("iouThreshold", m.iouthreshold());
  facts.add("confidenceThreshold", m.confidencethreshold());
  if (!m.iouthresholdinputfeaturename().empty()) facts.add("iouThreshold input", m.iouthresholdinputfeaturename());
  if (!m.confidencethresholdinputfeaturename().empty())
    facts.add("confidenceThreshold input", m.confidencethresholdinputfeaturename());
  facts.add("per class", m.picktop().perclass() ? "yes" : "no");
  facts.add("classes", labels(m));
}

void feature_print(const proto::CoreMLModels::VisionFeaturePrint& m, Facts& facts) {
  if (m.has_scene()) facts.add("scene version", static_cast<int>(m.scene().version()));
  if (m.has_objects()) facts.add("objects version", static_cast<int>(m.objects().version()));
}

}  // namespace

void outline_classic(const proto::Model& model, const format::ModelFile& file, Outline& out) {
  Facts facts(out);
  using M = proto::Model;
  switch (model.Type_case()) {
    case M::kGlmRegressor: return linear(model.glmregressor(), facts);
    case M::kGlmClassifier:
      linear(model.glmclassifier(), facts);
      return facts.add("classes", labels(model.glmclassifier()));
    case M::kTreeEnsembleRegressor: return trees(model.treeensembleregressor().treeensemble(), out, facts);
    case M::kTreeEnsembleClassifier:
      trees(model.treeensembleclassifier().treeensemble(), out, facts);
      return facts.add("classes", labels(model.treeensembleclassifier()));
    case M::kSupportVectorRegressor: return support_vectors(model.supportvectorregressor(), facts);
    case M::kSupportVectorClassifier:
      support_vectors(model.supportvectorclassifier(), facts);
      return facts.add("classes", labels(model.supportvectorclassifier()));
    case M::kKNearestNeighborsClassifier: {
      const auto& index = model.knearestneighborsclassifier().nearestneighborsindex();
      const auto samples = file.sample_data(index);
      if (samples.ok()) facts.add("samples", samples->count);
      facts.add("dimensions", index.numberofdimensions());
      facts.add("neighbors", model.knearestneighborsclassifier().numberofneighbors().defaultvalue());
      return facts.add("classes", labels(model.knearestneighborsclassifier()));
    }
    case M::kNonMaximumSuppression: return suppression(model.nonmaximumsuppression(), facts);
    case M::kOneHotEncoder:
      return facts.add("categories", model.onehotencoder().stringcategories().vector_size() +
                                         model.onehotencoder().int64categories().vector_size());
    case M::kDictVectorizer:
      return facts.add("entries", model.dictvectorizer().stringtoindex().vector_size() +
                                      model.dictvectorizer().int64toindex().vector_size());
    case M::kCategoricalMapping:
      return facts.add("entries", model.categoricalmapping().stringtoint64map().map().size() +
                                      model.categoricalmapping().int64tostringmap().map().size());
    case M::kFeatureVectorizer:
      for (const auto& column : model.featurevectorizer().inputlist())
        facts.add(column.inputcolumn(), column.inputdimensions());
      return;
    case M::kScaler:
      facts.add("shifts", model.scaler().shiftvalue_size());
      return facts.add("scales", model.scaler().scalevalue_size());
    case M::kNormalizer: {
      constexpr const char* kNorms[] = {"LMax", "L1", "L2"};
      const int norm = model.normalizer().normtype();
      return norm >= 0 && norm < 3 ? facts.add("norm", kNorms[norm]) : facts.add("norm", norm);
    }
    case M::kArrayFeatureExtractor: return facts.add("indices", model.arrayfeatureextractor().extractindex_size());
    case M::kItemSimilarityRecommender:
      return facts.add("items", model.itemsimilarityrecommender().itemitemsimilarities_size());
    case M::kBayesianProbitRegressor: return facts.add("features", model.bayesianprobitregressor().numberoffeatures());
    case M::kClassConfidenceThresholding:
      return facts.add("curves", model.classconfidencethresholding().precisionrecallcurves_size());
    case M::kCustomModel: return facts.add("class", model.custommodel().classname());
    case M::kLinkedModel:
      return facts.add("file", model.linkedmodel().linkedmodelfile().linkedmodelfilename().defaultvalue());
    case M::kTextClassifier: return trained_elsewhere(model.textclassifier(), facts);
    case M::kWordTagger: return trained_elsewhere(model.wordtagger(), facts);
    case M::kGazetteer: return trained_elsewhere(model.gazetteer(), facts);
    case M::kWordEmbedding: return trained_elsewhere(model.wordembedding(), facts);
    case M::kVisionFeaturePrint: return feature_print(model.visionfeatureprint(), facts);
    case M::kAudioFeaturePrint:
      return facts.add("sound version", static_cast<int>(model.audiofeatureprint().sound().version()));
    case M::kSerializedModel: return facts.add("identifier", model.serializedmodel().identifier());
    default: return;
  }
}

}  // namespace moka::import
