// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "import/classic/classic.h"

namespace moka::import {
namespace {

using classic::Site;
using ir::DType;
using ir::NamedArg;
using ir::Tensor;
using ir::Value;

Result<Value*> given(const Site& site) {
  const FeatureDescription& f = *MOKA_TRY(site.only_input());
  Value* x = MOKA_TRY(site.input(f));
  if (x == nullptr) return fail(ErrorCode::not_found, "input '", f.name, "' has no value");
  return x;
}

Result<Value*> as(const Site& site, Value* x, DType dtype, std::string_view model) {
  if (!x->type.is_tensor()) return fail(ErrorCode::malformed, model, ": expected a number or an array, got ", x->type);
  if (x->type.dtype() == dtype) return x;
  return site.op("ml_convert", {{"x", x}, {"dtype", std::string(to_string(dtype))}}, "input");
}

Status import_scaler(const Site& site, const proto::Scaler& m) {
  Value* x = MOKA_TRY(as(site, MOKA_TRY(given(site)), DType::fp64, "scaler"));
  std::vector<double> shift(m.shiftvalue().begin(), m.shiftvalue().end()),
      scale(m.scalevalue().begin(), m.scalevalue().end());
  if (shift.empty()) shift = {0};
  if (scale.empty()) scale = {1};
  Tensor a = MOKA_TRY(site.tensor(shift)), b = MOKA_TRY(site.tensor(scale));
  return site.output(*MOKA_TRY(site.only_output()),
                     MOKA_TRY(site.op("ml_scale", {{"x", x}, {"shift", a}, {"scale", b}}, "scale")));
}

Status import_normalizer(const Site& site, const proto::Normalizer& m) {
  if (!proto::Normalizer::NormType_IsValid(m.normtype()))
    return fail(ErrorCode::unsupported, "normalizer: unknown norm ", static_cast<int>(m.normtype()));
  static constexpr const char* names[] = {"max", "l1", "l2"};
  Value* x = MOKA_TRY(as(site, MOKA_TRY(given(site)), DType::fp64, "normalizer"));
  return site.output(*MOKA_TRY(site.only_output()),
                     MOKA_TRY(site.op("ml_normalize", {{"x", x}, {"norm", names[m.normtype()]}}, "normalize")));
}

template <class Map>
auto sorted(const Map& map) {
  std::vector<std::pair<typename Map::key_type, typename Map::mapped_type>> v(map.begin(), map.end());
  std::sort(v.begin(), v.end());
  return v;
}

Status import_mapping(const Site& site, const proto::CategoricalMapping& m) {
  std::vector<NamedArg> args{{"x", MOKA_TRY(given(site))}};
  std::vector<int64_t> numbers;
  std::vector<std::string> texts;
  bool from_text = m.MappingType_case() == proto::CategoricalMapping::kStringToInt64Map;
  if (from_text) {
    for (auto& [k, v] : sorted(m.stringtoint64map().map())) texts.push_back(k), numbers.push_back(v);
  } else if (m.MappingType_case() == proto::CategoricalMapping::kInt64ToStringMap) {
    for (auto& [k, v] : sorted(m.int64tostringmap().map())) numbers.push_back(k), texts.push_back(v);
  } else {
    return fail(ErrorCode::malformed, "categoricalMapping without a map");
  }
  auto n = static_cast<int64_t>(texts.size());
  args.emplace_back(from_text ? "keys" : "values", Tensor::strings({n}, std::move(texts)));
  args.emplace_back(from_text ? "values" : "keys", MOKA_TRY(site.tensor(numbers)));
  auto unknown = m.ValueOnUnknown_case();
  if (unknown != proto::CategoricalMapping::VALUEONUNKNOWN_NOT_SET) {
    if (from_text != (unknown == proto::CategoricalMapping::kInt64Value))
      return fail(ErrorCode::malformed,
                  "categoricalMapping: the value for unknown categories has not the type of the mapped values");
    const int64_t number[] = {m.int64value()};
    args.emplace_back("unknown", from_text ? MOKA_TRY(site.tensor(number)) : Tensor::strings({1}, {m.strvalue()}));
  }
  return site.output(*MOKA_TRY(site.only_output()), MOKA_TRY(site.op("ml_map", std::move(args), "map")));
}

template <class Map>
Result<Value*> impute_dictionary(const Site& site, Value* x, const Map& map, double replaced) {
  std::vector<std::string> texts;
  std::vector<int64_t> numbers;
  std::vector<double> values;
  for (auto& [k, v] : sorted(map)) {
    if constexpr (std::is_same_v<typename Map::key_type, std::string>)
      texts.push_back(k);
    else
      numbers.push_back(k);
    values.push_back(v);
  }
  auto n = static_cast<int64_t>(texts.size());
  constexpr bool text = std::is_same_v<typename Map::key_type, std::string>;
  std::vector<NamedArg> args{{"x", x}, {"replaced", Tensor::scalar(DType::fp64, replaced)}};
  args.emplace_back("keys", text ? Tensor::strings({n}, std::move(texts)) : MOKA_TRY(site.tensor(numbers)));
  args.emplace_back("imputed", MOKA_TRY(site.tensor(values)));
  return site.op("ml_impute_dict", std::move(args), "impute");
}

Result<Value*> impute(const Site& site, Value* x, DType dtype, Tensor imputed, Tensor replaced) {
  x = MOKA_TRY(as(site, x, dtype, "imputer"));
  return site.op("ml_impute", {{"x", x}, {"imputed", std::move(imputed)}, {"replaced", std::move(replaced)}}, "impute");
}

Result<Value*> impute_doubles(const Site& site, Value* x, std::span<const double> values, double replaced) {
  const double r[] = {replaced};
  Tensor imputed = MOKA_TRY(site.tensor(values)), missing = MOKA_TRY(site.tensor(r));
  return impute(site, x, DType::fp64, std::move(imputed), std::move(missing));
}

Result<Value*> impute_integers(const Site& site, Value* x, std::span<const int64_t> values, int64_t replaced) {
  const int64_t r[] = {replaced};
  Tensor imputed = MOKA_TRY(site.tensor(values)), missing = MOKA_TRY(site.tensor(r));
  return impute(site, x, DType::int64, std::move(imputed), std::move(missing));
}

Status import_imputer(const Site& site, const proto::Imputer& m) {
  using proto::Imputer;
  Value* x = MOKA_TRY(given(site));
  auto what = m.ImputedValue_case();
  auto missing = m.ReplaceValue_case();
  bool integers = what == Imputer::kImputedInt64Value || what == Imputer::kImputedInt64Array;
  auto expected =
      integers ? Imputer::kReplaceInt64Value
               : (what == Imputer::kImputedStringValue ? Imputer::kReplaceStringValue : Imputer::kReplaceDoubleValue);
  bool given_value = missing != Imputer::REPLACEVALUE_NOT_SET;
  if (given_value && missing != expected)
    return fail(ErrorCode::malformed, "imputer: the imputed value and the value to replace are of different types");
  if (!given_value && (integers || what == Imputer::kImputedStringValue))
    return fail(ErrorCode::unsupported,
                "imputer of integers or strings that does not say which value is a missing one");
  double replaced = given_value ? m.replacedoublevalue() : NAN;
  const double number[] = {m.imputeddoublevalue()};
  const int64_t integer[] = {m.imputedint64value()};
  Value* y = nullptr;
  switch (what) {
    case Imputer::kImputedDoubleValue: y = MOKA_TRY(impute_doubles(site, x, number, replaced)); break;
    case Imputer::kImputedDoubleArray:
      y = MOKA_TRY(impute_doubles(site, x, classic::span_of(m.imputeddoublearray().vector()), replaced));
      break;
    case Imputer::kImputedInt64Value: y = MOKA_TRY(impute_integers(site, x, integer, m.replaceint64value())); break;
    case Imputer::kImputedInt64Array:
      y = MOKA_TRY(impute_integers(site, x, classic::span_of(m.imputedint64array().vector()), m.replaceint64value()));
      break;
    case Imputer::kImputedStringValue:
      y = MOKA_TRY(impute(site, x, DType::string, Tensor::strings({1}, {m.imputedstringvalue()}),
                          Tensor::strings({1}, {m.replacestringvalue()})));
      break;
    case Imputer::kImputedStringDictionary:
      y = MOKA_TRY(impute_dictionary(site, x, m.imputedstringdictionary().map(), replaced));
      break;
    case Imputer::kImputedInt64Dictionary:
      y = MOKA_TRY(impute_dictionary(site, x, m.imputedint64dictionary().map(), replaced));
      break;
    default: return fail(ErrorCode::malformed, "imputer without an imputed value");
  }
  return site.output(*MOKA_TRY(site.only_output()), y);
}

/// Imports identity, and classConfidenceThresholding, whose curves only inform the caller. Both return their inputs.
Status import_identity(const Site& site, std::string_view type) {
  const auto& in = site.description().inputs;
  const auto& out = site.description().outputs;
  if (in.size() != out.size())
    return fail(ErrorCode::malformed, type, ": expected as many outputs as inputs, ", in.size(), ", got ", out.size());
  std::vector<Value*> values;
  for (const FeatureDescription& f : in) {
    values.push_back(MOKA_TRY(site.input(f)));
    if (values.back() == nullptr) return fail(ErrorCode::not_found, type, ": input '", f.name, "' has no value");
  }
  for (size_t i = 0; i < out.size(); ++i) MOKA_TRY(site.output(out[i], values[i]));
  return {};
}

Status import_thresholding(const Site& site, const proto::ClassConfidenceThresholding& m) {
  for (int i = 0; i < m.precisionrecallcurves_size(); ++i) {
    const auto& c = m.precisionrecallcurves(i);
    if (c.precisionvalues().vector_size() != c.precisionconfidencethresholds().vector_size() ||
        c.recallvalues().vector_size() != c.recallconfidencethresholds().vector_size())
      return fail(ErrorCode::malformed, "classConfidenceThresholding, curve ", i,
                  ": expected as many thresholds as values");
  }
  return import_identity(site, "classConfidenceThresholding");
}

Status import_transformer(const proto::Model& model, const ImportContext& context, ir::Builder& builder,
                          Features& features) {
  Site site = MOKA_TRY(Site::open(model, context, builder, features));
  switch (model.Type_case()) {
    case proto::Model::kScaler: return import_scaler(site, model.scaler());
    case proto::Model::kNormalizer: return import_normalizer(site, model.normalizer());
    case proto::Model::kCategoricalMapping: return import_mapping(site, model.categoricalmapping());
    case proto::Model::kImputer: return import_imputer(site, model.imputer());
    case proto::Model::kClassConfidenceThresholding:
      return import_thresholding(site, model.classconfidencethresholding());
    default: return import_identity(site, "identity");
  }
}

}  // namespace

ModelImporter importer_transformer() {
  static constexpr int types[] = {
      proto::Model::kScaler,  proto::Model::kNormalizer, proto::Model::kCategoricalMapping,
      proto::Model::kImputer, proto::Model::kIdentity,   proto::Model::kClassConfidenceThresholding};
  return {types, import_transformer, true};
}

}  // namespace moka::import
