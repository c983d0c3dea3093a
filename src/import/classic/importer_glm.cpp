// SPDX-License-Identifier: Apache-2.0
#include "import/classic/classic.h"

namespace moka::import {
namespace {

using classic::Site;
using ir::Tensor;
using ir::Value;

/// weights * x + offset.
template <class Glm>
Result<Value*> linear(const Site& site, const Glm& glm) {
  if (glm.weights_size() == 0 || glm.weights(0).value_size() == 0)
    return fail(ErrorCode::malformed, "linear model without weights");
  if (glm.offset_size() != 0 && glm.offset_size() != glm.weights_size())
    return fail(ErrorCode::malformed, "linear model: expected ", glm.weights_size(),
                " offsets, as rows of weights, got ", glm.offset_size());
  Tensor weights = MOKA_TRY(classic::matrix(site, glm.weights(), "weights"));
  std::vector<double> offsets(glm.offset().begin(), glm.offset().end());
  offsets.resize(static_cast<size_t>(glm.weights_size()), 0.0);
  Tensor offset = MOKA_TRY(site.tensor(offsets));
  Value* x = MOKA_TRY(site.vector(weights.shape()[1]));
  return site.op("ml_linear", {{"x", x}, {"weights", weights}, {"offset", offset}}, "linear");
}

Status import_regressor(const Site& site, const proto::GLMRegressor& glm) {
  Value* y = MOKA_TRY(linear(site, glm));
  switch (glm.postevaluationtransform()) {
    case proto::GLMRegressor::NoTransform: break;
    case proto::GLMRegressor::Logit: y = MOKA_TRY(site.op("ml_link", {{"x", y}, {"mode", "logit"}}, "logit")); break;
    case proto::GLMRegressor::Probit: y = MOKA_TRY(site.op("ml_link", {{"x", y}, {"mode", "probit"}}, "probit")); break;
    default:
      return fail(ErrorCode::unsupported, "glmRegressor: unknown post-evaluation transform ",
                  static_cast<int>(glm.postevaluationtransform()));
  }
  return site.output(*MOKA_TRY(site.only_output()), y);
}

Status import_classifier(const Site& site, const proto::GLMClassifier& glm) {
  Tensor classes = MOKA_TRY(classic::class_labels(site, glm));
  int64_t rows = glm.weights_size(), count = classes.count();
  int transform = glm.postevaluationtransform();
  if (transform != proto::GLMClassifier::Logit && transform != proto::GLMClassifier::Probit)
    return fail(ErrorCode::unsupported, "glmClassifier: unknown post-evaluation transform ", transform);
  int encoding = glm.classencoding();
  if (encoding != proto::GLMClassifier::ReferenceClass && encoding != proto::GLMClassifier::OneVsRest)
    return fail(ErrorCode::unsupported, "glmClassifier: unknown class encoding ", encoding);
  bool one_vs_rest = encoding == proto::GLMClassifier::OneVsRest;
  bool binary = count == 2 && rows == 1;
  int64_t expected = one_vs_rest ? count : count - 1;
  if (!binary && (rows != expected || count < 2))
    return fail(ErrorCode::malformed, "glmClassifier: expected ", expected, " rows of weights for ", count,
                " classes, got ", rows);
  Value* y = MOKA_TRY(linear(site, glm));
  const char* link = transform == proto::GLMClassifier::Logit ? "logit" : "probit";
  if (binary || one_vs_rest) {
    y = MOKA_TRY(site.op("ml_link", {{"x", y}, {"mode", link}}, link));
    const char* rest = binary ? "complement" : "normalize";
    y = MOKA_TRY(site.op("ml_link", {{"x", y}, {"mode", rest}}, rest));
  } else if (transform == proto::GLMClassifier::Logit) {
    y = MOKA_TRY(site.op("ml_link", {{"x", y}, {"mode", "softmax_with_reference"}}, "softmax"));
  } else {
    return fail(ErrorCode::unsupported, "glmClassifier: probit with a reference class and ", count, " classes");
  }
  return site.classify(y, std::move(classes));
}

Status import_glm(const proto::Model& model, const ImportContext& context, ir::Builder& builder, Features& features) {
  Site site = MOKA_TRY(Site::open(model, context, builder, features));
  return model.Type_case() == proto::Model::kGlmRegressor ? import_regressor(site, model.glmregressor())
                                                          : import_classifier(site, model.glmclassifier());
}

}  // namespace

ModelImporter importer_glm() {
  static constexpr int types[] = {proto::Model::kGlmRegressor, proto::Model::kGlmClassifier};
  return {types, import_glm, true};
}

}  // namespace moka::import
