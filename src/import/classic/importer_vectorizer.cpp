// SPDX-License-Identifier: Apache-2.0
#include "import/classic/classic.h"

namespace moka::import {
namespace {

using classic::Site;
using classic::SortedKeys;
using ir::NamedArg;
using ir::Value;

Status import_features(const Site& site, const proto::FeatureVectorizer& m) {
  std::vector<Value*> values;
  std::vector<int64_t> dimensions;
  for (const auto& column : m.inputlist()) {
    Value* v = MOKA_TRY(site.input(column.inputcolumn()));
    if (v == nullptr)
      return fail(ErrorCode::malformed, "featureVectorizer: input column '", column.inputcolumn(), "' has no value");
    if (column.inputdimensions() > (uint64_t{1} << 31))
      return fail(ErrorCode::malformed, "featureVectorizer, column '", column.inputcolumn(),
                  "': expected at most 2^31 dimensions, got ", column.inputdimensions());
    values.push_back(v);
    dimensions.push_back(static_cast<int64_t>(column.inputdimensions()));
  }
  if (values.empty()) return fail(ErrorCode::malformed, "featureVectorizer without input columns");
  ir::Tensor d = MOKA_TRY(site.tensor(dimensions));
  Value* y = MOKA_TRY(site.op("ml_feature_vectorize", {{"values", values}, {"dimensions", d}}, "vectorize"));
  return site.output(*MOKA_TRY(site.only_output()), y);
}

/// Converts the only input with `op` into a dictionary, or into a vector when the output is not a dictionary.
Status import_keyed(const Site& site, std::string_view op, const char* parameter, const SortedKeys& keys,
                    std::vector<NamedArg> args) {
  const FeatureDescription& output = *MOKA_TRY(site.only_output());
  const FeatureDescription& input = *MOKA_TRY(site.only_input());
  Value* x = MOKA_TRY(site.input(input));
  if (x == nullptr) return fail(ErrorCode::not_found, "input '", input.name, "' has no value");
  args.emplace_back("x", x);
  args.emplace_back(parameter, keys.keys);
  args.emplace_back("positions", MOKA_TRY(site.tensor(keys.positions)));
  args.emplace_back("dense", site.rows() || output.kind != FeatureKind::dictionary);
  return site.output(output, MOKA_TRY(site.op(op, std::move(args), "encode")));
}

Status import_dictionary(const Site& site, const proto::DictVectorizer& m) {
  SortedKeys keys;
  if (m.has_stringtoindex())
    keys = classic::sorted_keys(m.stringtoindex());
  else if (m.has_int64toindex())
    keys = MOKA_TRY(classic::sorted_keys(site, m.int64toindex()));
  else
    return fail(ErrorCode::malformed, "dictVectorizer without keys");
  return import_keyed(site, "ml_dict_vectorize", "keys", keys, {});
}

Status import_one_hot(const Site& site, const proto::OneHotEncoder& m) {
  SortedKeys keys;
  if (m.has_stringcategories())
    keys = classic::sorted_keys(m.stringcategories());
  else if (m.has_int64categories())
    keys = MOKA_TRY(classic::sorted_keys(site, m.int64categories()));
  else
    return fail(ErrorCode::malformed, "oneHotEncoder without categories");
  if (!proto::OneHotEncoder::HandleUnknown_IsValid(m.handleunknown()))
    return fail(ErrorCode::unsupported,
                "oneHotEncoder: unknown way to handle unknown categories: ", static_cast<int>(m.handleunknown()));
  const char* unknown = m.handleunknown() == proto::OneHotEncoder::IgnoreUnknown ? "ignore" : "error";
  return import_keyed(site, "ml_one_hot", "categories", keys, {{"handle_unknown", unknown}});
}

Status import_extractor(const Site& site, const proto::ArrayFeatureExtractor& m) {
  std::vector<int64_t> indices;
  for (uint64_t i : m.extractindex()) {
    if (i >= (uint64_t{1} << 31))
      return fail(ErrorCode::malformed, "arrayFeatureExtractor: expected an index below 2^31, got ", i);
    indices.push_back(static_cast<int64_t>(i));
  }
  if (indices.empty()) return fail(ErrorCode::malformed, "arrayFeatureExtractor without indices");
  const FeatureDescription& input = *MOKA_TRY(site.only_input());
  Value* x = MOKA_TRY(site.input(input));
  if (x == nullptr) return fail(ErrorCode::not_found, "input '", input.name, "' has no value");
  ir::Tensor at = MOKA_TRY(site.tensor(indices));
  Value* y = MOKA_TRY(site.op("ml_extract", {{"x", x}, {"indices", at}}, "extract"));
  return site.output(*MOKA_TRY(site.only_output()), y);
}

Status import_vectorizer(const proto::Model& model, const ImportContext& context, ir::Builder& builder,
                         Features& features) {
  Site site = MOKA_TRY(Site::open(model, context, builder, features));
  switch (model.Type_case()) {
    case proto::Model::kFeatureVectorizer: return import_features(site, model.featurevectorizer());
    case proto::Model::kDictVectorizer: return import_dictionary(site, model.dictvectorizer());
    case proto::Model::kOneHotEncoder: return import_one_hot(site, model.onehotencoder());
    default: return import_extractor(site, model.arrayfeatureextractor());
  }
}

}  // namespace

ModelImporter importer_vectorizer() {
  static constexpr int types[] = {proto::Model::kFeatureVectorizer, proto::Model::kDictVectorizer,
                                  proto::Model::kOneHotEncoder, proto::Model::kArrayFeatureExtractor};
  return {types, import_vectorizer, true};
}

}  // namespace moka::import
