// SPDX-License-Identifier: Apache-2.0
#include "update/nearest_neighbors.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "editing/updatable.h"
#include "format/model_file.h"
#include "import/importer.h"

namespace moka::update {
namespace {

using editing::Message;

size_t count_of(const Labels& labels) {
  return std::visit([](const auto& list) { return list.size(); }, labels);
}

Status check_neighbors(const import::UpdateParameter& parameter, int64_t count) {
  if (parameter.bounds && (count < parameter.bounds->first || count > parameter.bounds->second))
    return fail(ErrorCode::invalid_argument, "number of neighbors: the model allows ", parameter.bounds->first, " to ",
                parameter.bounds->second, ", got ", count);
  if (count < 1)
    return fail(ErrorCode::invalid_argument, "number of neighbors: expected a positive integer, got ", count);
  const auto& allowed = parameter.allowed;
  if (allowed.empty() || std::find(allowed.begin(), allowed.end(), count) != allowed.end()) return {};
  std::string all;
  for (const int64_t value : allowed) all += cat(all.empty() ? "" : ", ", value);
  return fail(ErrorCode::invalid_argument, "number of neighbors: the model allows ", all, ", got ", count);
}

Status append(Message classifier, std::span<const float> rows, int64_t dimensions, const Labels& labels) {
  Message index = MOKA_TRY(classifier.edit("nearestNeighborsIndex"));
  const size_t bytes = static_cast<size_t>(dimensions) * sizeof(float);
  for (size_t i = 0; i < count_of(labels); ++i) {
    std::string row(bytes, '\0');
    std::memcpy(row.data(), rows.data() + i * static_cast<size_t>(dimensions), bytes);
    Message sample = MOKA_TRY(index.edit("floatSamples"));
    MOKA_TRY(sample.set_packed("vector", Bytes::from(std::move(row))));
  }
  if (const auto* texts = std::get_if<std::vector<std::string>>(&labels)) {
    const Message list = MOKA_TRY(classifier.edit("stringClassLabels"));
    std::vector<std::string> all = MOKA_TRY(editing::texts_of(list, "vector"));
    all.insert(all.end(), texts->begin(), texts->end());
    return editing::set_texts(list, "vector", all);
  }
  const auto& integers = std::get<std::vector<int64_t>>(labels);
  const Message list = MOKA_TRY(classifier.edit("int64ClassLabels"));
  std::vector<int64_t> all = MOKA_TRY(editing::integers_of(list, "vector"));
  all.insert(all.end(), integers.begin(), integers.end());
  return editing::set_integers(list, "vector", all);
}

}  // namespace

Status check_samples(const import::UpdateDescription& update, std::span<const float> rows, int64_t dimensions,
                     const Labels& labels, std::optional<int64_t> neighbors) {
  const import::NearestNeighbors& model = *update.neighbors;
  if (dimensions != model.dimensions)
    return fail(ErrorCode::invalid_argument, "rows: expected ", model.dimensions, " numbers in each, got ", dimensions);
  const size_t width = static_cast<size_t>(dimensions), count = rows.size() / width;
  if (rows.size() % width != 0)
    return fail(ErrorCode::invalid_argument, "rows: expected whole rows of ", dimensions, " numbers, got ", rows.size(),
                " numbers");
  if (count != count_of(labels))
    return fail(ErrorCode::invalid_argument, "labels: expected one for each of ", count, " rows, got ",
                count_of(labels));
  const bool texts = std::holds_alternative<std::vector<std::string>>(labels);
  if (count > 0 && texts != model.string_labels)
    return fail(ErrorCode::invalid_argument, "labels: expected ", model.string_labels ? "texts" : "integers",
                ", as the classifier has, got ", texts ? "texts" : "integers");
  const auto wrong = std::find_if(rows.begin(), rows.end(), [](float v) { return !std::isfinite(v); });
  if (wrong != rows.end())
    return fail(ErrorCode::invalid_argument, "row ", static_cast<size_t>(wrong - rows.begin()) / width,
                ": expected finite numbers, got ", *wrong);
  if (neighbors) MOKA_TRY(check_neighbors(*update.parameter("numberOfNeighbors"), *neighbors));
  return {};
}

Status add_samples(format::ModelSource& source, std::span<const float> rows, int64_t dimensions, const Labels& labels,
                   std::optional<int64_t> neighbors) {
  const format::ModelFile file =
      MOKA_TRY(format::open_source(source.specification, source.weights, {.any_kind = true}));
  const auto update = import::describe_update(file);
  if (!update) return fail(ErrorCode::invalid_argument, "the model is not updatable; moka.update.mark makes it so");
  if (!update->fault.empty()) return fail(ErrorCode::malformed, "the model cannot be updated: ", update->fault);
  if (!update->neighbors)
    return fail(ErrorCode::unsupported, "expected a nearest-neighbors classifier, or a pipeline that ends with one");
  MOKA_TRY(check_samples(*update, rows, dimensions, labels, neighbors));
  const Message changed = source.specification.copy();
  const Message learner = MOKA_TRY(editing::learner_of(changed));
  Message classifier = MOKA_TRY(learner.child("kNearestNeighborsClassifier"));
  if (count_of(labels) > 0) MOKA_TRY(append(classifier, rows, dimensions, labels));
  if (neighbors) {
    const Message parameter = MOKA_TRY(classifier.edit("numberOfNeighbors"));
    MOKA_TRY(editing::set_integer(parameter, "defaultValue", *neighbors));
  }
  source.specification = changed;
  return {};
}

}  // namespace moka::update
