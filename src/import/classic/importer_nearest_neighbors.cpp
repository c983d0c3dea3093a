// SPDX-License-Identifier: Apache-2.0
#include "format/model_file.h"
#include "import/classic/classic.h"
#include "import/common/distinct.h"

namespace moka::import {
namespace {

using classic::Site;
using ir::NamedArg;
using ir::Tensor;
using ir::Value;
using Knn = proto::KNearestNeighborsClassifier;

struct Labels {
  Tensor classes;                ///< ascending
  std::vector<int64_t> samples;  ///< index of the class of each sample
};

Result<Labels> read_labels(const Site& site, const Knn& knn) {
  Labels out;
  if (knn.has_stringclasslabels()) {
    auto all = distinct_of(knn.stringclasslabels().vector());
    const auto n = static_cast<int64_t>(all.values.size());
    out.classes = Tensor::strings({n}, std::move(all.values));
    out.samples = std::move(all.of_label);
  } else {
    auto all = distinct_of(knn.int64classlabels().vector());
    out.classes = MOKA_TRY(site.tensor(all.values));
    out.samples = std::move(all.of_label);
  }
  return out;
}

/// A model without samples always answers with its default label.
Status import_empty(const Site& site, const Knn& knn) {
  Tensor label;
  if (knn.DefaultClassLabel_case() == Knn::kDefaultStringLabel) {
    label = Tensor::strings({1}, {knn.defaultstringlabel()});
  } else if (knn.DefaultClassLabel_case() == Knn::kDefaultInt64Label) {
    const int64_t v[] = {knn.defaultint64label()};
    label = MOKA_TRY(site.tensor(v));
  } else {
    return fail(ErrorCode::malformed, "kNearestNeighborsClassifier with neither samples nor a default class label");
  }
  const double certain[] = {1};
  Value* scores = MOKA_TRY(site.builder().constant(site.name("certain"), MOKA_TRY(site.tensor(certain))));
  return site.classify(scores, std::move(label));
}

Status import_nearest_neighbors(const proto::Model& model, const ImportContext& context, ir::Builder& builder,
                                Features& features) {
  Site site = MOKA_TRY(Site::open(model, context, builder, features));
  const Knn& knn = model.knearestneighborsclassifier();
  const proto::NearestNeighborsIndex& index = knn.nearestneighborsindex();
  const format::SampleData data = MOKA_TRY(context.file.sample_data(index));
  if (data.count == 0) return import_empty(site, knn);
  Labels labels = MOKA_TRY(read_labels(site, knn));
  const auto n = static_cast<int64_t>(data.count);
  const int64_t d = index.numberofdimensions();
  if (static_cast<int64_t>(labels.samples.size()) != n)
    return fail(ErrorCode::malformed, "kNearestNeighborsClassifier: expected a class label for each of ", n,
                " samples, got ", labels.samples.size());
  const bool first_differs = static_cast<int64_t>(data.length) != d;
  if (first_differs || data.other)
    return fail(ErrorCode::malformed, "kNearestNeighborsClassifier, sample ", first_differs ? 0 : *data.other,
                ": expected ", d, " dimensions, got ", first_differs ? data.length : data.other_length);
  int64_t k = knn.numberofneighbors().defaultvalue();
  if (k < 1) return fail(ErrorCode::malformed, "kNearestNeighborsClassifier: expected at least one neighbor, got ", k);
  bool inverse = knn.WeightingScheme_case() == Knn::kInverseDistanceWeighting;
  std::vector<NamedArg> args{{"x", MOKA_TRY(site.vector(d))}, {"weighting", inverse ? "inverse_distance" : "uniform"}};
  args.emplace_back("samples", MOKA_TRY(site.tensor(MOKA_TRY(data.runs->joined()), ir::DType::fp32, {n, d})));
  args.emplace_back("labels", MOKA_TRY(site.tensor(labels.samples)));
  args.emplace_back("classes", Tensor::scalar_i64(ir::DType::int64, labels.classes.count()));
  args.emplace_back("k", Tensor::scalar_i64(ir::DType::int64, k));
  return site.classify(MOKA_TRY(site.op("ml_nearest_neighbors", std::move(args), "neighbors")),
                       std::move(labels.classes));
}

}  // namespace

ModelImporter importer_nearest_neighbors() {
  static constexpr int types[] = {proto::Model::kKNearestNeighborsClassifier};
  return {types, import_nearest_neighbors, true};
}

}  // namespace moka::import
