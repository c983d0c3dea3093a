// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "import/model_type.h"
#include "import/update/parts.h"

namespace moka::import {

namespace update {

namespace {

template <class T>
Status check_range(const char* name, T standard, T least, T most) {
  if (least > most)
    return fail(ErrorCode::malformed, "parameter '", name, "': the allowed range from ", least, " to ", most,
                " is empty");
  // Also false for NaN.
  if (!(standard >= least && standard <= most))
    return fail(ErrorCode::malformed, "parameter '", name, "': expected a default from ", least, " to ", most, ", got ",
                standard);
  return {};
}

Status check_integer(const Parameter& parameter) {
  const proto::Int64Parameter& p = *parameter.integer;
  const auto check_sign = [&](const char* what, int64_t value) -> Status {
    if (!parameter.positive || value > 0) return {};
    return fail(ErrorCode::malformed, "parameter '", parameter.name, "': expected a positive ", what, ", got ", value);
  };
  MOKA_TRY(check_sign("default", p.defaultvalue()));
  if (p.has_range()) {
    MOKA_TRY(check_sign("lower bound", p.range().minvalue()));
    MOKA_TRY(check_sign("upper bound", p.range().maxvalue()));
    return check_range(parameter.name, p.defaultvalue(), p.range().minvalue(), p.range().maxvalue());
  }
  if (!p.has_set()) return {};
  const auto& values = p.set().values();
  if (values.empty())
    return fail(ErrorCode::malformed, "parameter '", parameter.name, "': the set of allowed values is empty");
  std::string all;
  for (const int64_t value : values) {
    MOKA_TRY(check_sign("allowed value", value));
    if (all.size() < 100) all += cat(all.empty() ? "" : ", ", value);
  }
  if (std::find(values.begin(), values.end(), p.defaultvalue()) == values.end())
    return fail(ErrorCode::malformed, "parameter '", parameter.name, "': expected a default among the allowed values ",
                all, ", got ", p.defaultvalue());
  return {};
}

}  // namespace

Status check_parameter(const Parameter& p) {
  if (p.integer != nullptr) return check_integer(p);
  if (p.number == nullptr) return {};
  const double value = p.number->defaultvalue();
  if (p.number->has_range())
    MOKA_TRY(check_range(p.name, value, p.number->range().minvalue(), p.number->range().maxvalue()));
  if (std::isfinite(value)) return {};
  return fail(ErrorCode::malformed, "parameter '", p.name, "': expected a finite default, got ", value);
}

Status check_neighbors(const proto::Model& model, const format::ModelFile& file) {
  const proto::KNearestNeighborsClassifier& c = model.knearestneighborsclassifier();
  const proto::NearestNeighborsIndex& index = c.nearestneighborsindex();
  using Knn = proto::KNearestNeighborsClassifier;
  const auto refuse = [](const auto&... text) {
    return fail(ErrorCode::malformed, "nearest-neighbors classifier: ", text...);
  };
  if (const int inputs = model.description().input_size(); inputs != 1)
    return refuse("expected one input, got ", inputs);
  const Parameter neighbors = neighbors_parameter(c);
  if (neighbors.integer == nullptr) return refuse("it needs the parameter 'numberOfNeighbors'");
  MOKA_TRY(check_parameter(neighbors));
  if (c.WeightingScheme_case() == Knn::WEIGHTINGSCHEME_NOT_SET) return refuse("it has no weighting scheme");
  const bool texts = c.has_stringclasslabels(), integers = c.has_int64classlabels();
  const auto standard = c.DefaultClassLabel_case();
  if ((texts && standard == Knn::kDefaultInt64Label) || (integers && standard == Knn::kDefaultStringLabel))
    return refuse("its labels are ", texts ? "texts" : "integers", ", and its default label is ",
                  texts ? "an integer" : "a text");
  const int labels = texts ? c.stringclasslabels().vector_size() : c.int64classlabels().vector_size();
  if (labels == 0 && standard == Knn::DEFAULTCLASSLABEL_NOT_SET)
    return refuse("it has neither samples nor a default label");
  const format::SampleData samples = MOKA_TRY(file.sample_data(index));
  if (samples.count != static_cast<size_t>(labels))
    return refuse("expected a label for each of ", samples.count, " samples, got ", labels);
  if (index.numberofdimensions() < 1)
    return refuse("expected samples of one dimension or more, got ", index.numberofdimensions());
  const bool first_differs = samples.count > 0 && samples.length != static_cast<size_t>(index.numberofdimensions());
  if (first_differs || samples.other)
    return refuse("sample ", first_differs ? 0 : *samples.other, ": expected ", index.numberofdimensions(),
                  " dimensions, got ", first_differs ? samples.length : samples.other_length);
  if (!index.has_linearindex() && !index.has_singlekdtreeindex()) return refuse("it has no kind of index");
  if (index.has_singlekdtreeindex() && index.singlekdtreeindex().leafsize() <= 0)
    return refuse("expected a positive leaf size, got ", index.singlekdtreeindex().leafsize());
  if (!index.has_squaredeuclideandistance()) return refuse("it has no distance function");
  return {};
}

}  // namespace update

namespace {

/// iOS 13, the first system that updates models.
constexpr int kFirstVersion = 4;

Status check_part(const proto::Model& model, const format::ModelFile& file, std::vector<std::string>& remarks,
                  int depth);

std::string name_of_stage(const proto::Model& model, size_t i) {
  const proto::Pipeline& pipeline = *format::pipeline_of(model);
  const bool named = i < static_cast<size_t>(pipeline.names_size());
  return named && !pipeline.names(static_cast<int>(i)).empty() ? pipeline.names(static_cast<int>(i)) : cat("model", i);
}

Status check_pipeline(const proto::Model& model, const format::ModelFile& file, std::vector<std::string>& remarks,
                      int depth) {
  const auto stages = file.stages(model);
  for (size_t i = 0; i < stages.size(); ++i) {
    const bool learns = stages[i].model->isupdatable(), last = i + 1 == stages.size();
    if (model.isupdatable() && last && !learns)
      return fail(ErrorCode::malformed, "the pipeline is updatable, but its last model '", name_of_stage(model, i),
                  "' is not");
    if (learns && !model.isupdatable())
      return fail(ErrorCode::malformed, "model '", name_of_stage(model, i),
                  "' is updatable, but the pipeline that holds it is not");
    if (learns && !last)
      return fail(ErrorCode::malformed, "model '", name_of_stage(model, i),
                  "' is updatable, but only the last model of a pipeline can be");
    MOKA_TRY_IN(check_part(*stages[i].model, stages[i].file, remarks, depth + 1),
                cat("model '", name_of_stage(model, i), "'"));
  }
  if (stages.empty()) return fail(ErrorCode::malformed, "the pipeline holds no model");
  return {};
}

Status check_part(const proto::Model& model, const format::ModelFile& file, std::vector<std::string>& remarks,
                  int depth) {
  if (depth > kMaxPipelineDepth)
    return fail(ErrorCode::malformed, "pipelines nest deeper than ", kMaxPipelineDepth, " models");
  const bool is_pipeline = format::pipeline_of(model) != nullptr;
  if (!model.isupdatable()) return is_pipeline ? check_pipeline(model, file, remarks, depth) : Status();
  if (model.specificationversion() < kFirstVersion)
    return fail(ErrorCode::malformed, "an updatable model needs specification version ", kFirstVersion,
                " or later, got ", model.specificationversion());
  if (is_pipeline) return check_pipeline(model, file, remarks, depth);
  if (model.has_knearestneighborsclassifier()) return update::check_neighbors(model, file);
  if (update::parameters_of(model) != nullptr) return update::check_network(model, remarks);
  return fail(ErrorCode::malformed, "a model of type ", model_type_name(model_type(model, file)),
              " cannot be updatable; neural networks, nearest-neighbors classifiers and pipelines of them can");
}

}  // namespace

Status check_update(const proto::Model& model, const format::ModelFile& file, std::vector<std::string>& remarks) {
  return check_part(model, file, remarks, 0);
}

}  // namespace moka::import
