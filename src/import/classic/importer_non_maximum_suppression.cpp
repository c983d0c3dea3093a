// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "import/classic/classic.h"

namespace moka::import {
namespace {

using classic::Site;
using ir::DType;
using ir::NamedArg;
using ir::Tensor;
using ir::Value;

const FeatureDescription* find(const std::vector<FeatureDescription>& features, std::string_view name) {
  for (const FeatureDescription& f : features)
    if (f.name == name) return &f;
  return nullptr;
}

/// A floating-point matrix: the value of a required input, without leading dimensions of 1.
Result<Value*> matrix(const Site& site, const std::string& name, std::string_view what) {
  Value* v = MOKA_TRY(site.input(name));
  if (v == nullptr) return fail(ErrorCode::malformed, "nonMaximumSuppression without an input for ", what);
  if (!v->type.is_tensor())
    return fail(ErrorCode::malformed, "nonMaximumSuppression, input '", name, "': expected an array, got ", v->type);
  ir::Shape shape = v->type.is_ranked() ? v->type.shape() : ir::Shape{};
  while (shape.rank() > 2 && shape[0] == 1) shape.erase(0);
  const bool reshape = v->type.is_concrete() && shape.rank() < v->type.rank();
  if (is_float(v->type.dtype()) && !reshape) return v;
  const DType dtype = is_float(v->type.dtype()) ? v->type.dtype() : DType::fp64;
  std::vector<NamedArg> args{{"x", v}, {"dtype", std::string(to_string(dtype))}};
  if (reshape) args.emplace_back("shape", Tensor::i32(shape.dims()));
  return site.op("ml_convert", std::move(args), name);
}

/// Narrows the allowed number of boxes to the range that an output declares.
void narrow(const FeatureDescription* f, int64_t& least, int64_t& most) {
  if (f == nullptr) return;
  int64_t lower = 0, upper = -1;
  if (!f->array.ranges.empty())
    lower = f->array.ranges[0].lower, upper = f->array.ranges[0].upper;
  else if (f->array.shape.size() == 2)
    lower = upper = f->array.shape[0];
  least = std::max(least, lower);
  if (upper >= 0) most = most < 0 ? upper : std::min(most, upper);
}

Status import_non_maximum_suppression(const proto::Model& model, const ImportContext& context, ir::Builder& builder,
                                      Features& features) {
  Site site = MOKA_TRY(Site::open(model, context, builder, features));
  const proto::NonMaximumSuppression& m = model.nonmaximumsuppression();
  std::vector<NamedArg> args;
  args.emplace_back("coordinates", MOKA_TRY(matrix(site, m.coordinatesinputfeaturename(), "coordinates")));
  args.emplace_back("confidence", MOKA_TRY(matrix(site, m.confidenceinputfeaturename(), "confidence")));
  for (const auto& [name, parameter] : {std::pair(&m.iouthresholdinputfeaturename(), "iou_threshold"),
                                        std::pair(&m.confidencethresholdinputfeaturename(), "confidence_threshold")})
    if (const auto it = features.find(*name); it != features.end()) args.emplace_back(parameter, it->second);
  args.emplace_back("default_iou_threshold", Tensor::scalar(DType::fp64, m.iouthreshold()));
  args.emplace_back("default_confidence_threshold", Tensor::scalar(DType::fp64, m.confidencethreshold()));
  args.emplace_back("per_class", m.picktop().perclass());
  const FeatureDescription* confidence = find(site.description().outputs, m.confidenceoutputfeaturename());
  const FeatureDescription* coordinates = find(site.description().outputs, m.coordinatesoutputfeaturename());
  int64_t least = 0, most = -1;
  narrow(confidence, least, most);
  narrow(coordinates, least, most);
  args.emplace_back("min_boxes", Tensor::scalar_i64(DType::int64, least));
  args.emplace_back("max_boxes", Tensor::scalar_i64(DType::int64, most));
  ir::Op* op = MOKA_TRY(builder.append({"ml_non_maximum_suppression",
                                        std::move(args),
                                        site.name("suppress"),
                                        {site.name("coordinates"), site.name("confidence")},
                                        {}}));
  for (const FeatureDescription& f : site.description().outputs) {
    if (&f != confidence && &f != coordinates)
      return fail(ErrorCode::malformed, "nonMaximumSuppression: output '", f.name,
                  "' is neither confidence nor coordinates");
    MOKA_TRY(site.output(f, op->output(&f == coordinates ? 0 : 1)));
  }
  return {};
}

}  // namespace

ModelImporter importer_non_maximum_suppression() {
  static constexpr int types[] = {proto::Model::kNonMaximumSuppression};
  return {types, import_non_maximum_suppression};
}

}  // namespace moka::import
