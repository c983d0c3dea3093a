// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <numeric>

#include "import/classic/classic.h"

namespace moka::import {
namespace {

using classic::Site;
using ir::NamedArg;
using ir::Tensor;
using ir::Value;
using Recommender = proto::ItemSimilarityRecommender;

/// Names of all items in ascending order, and each item's number in the model.
Result<classic::SortedKeys> items_of(const Site& site, const Recommender& m) {
  if (m.itemstringids().vector_size() > 0) return classic::sorted_keys(m.itemstringids());
  if (m.itemint64ids().vector_size() > 0) return classic::sorted_keys(site, m.itemint64ids());
  uint64_t count = 0, mentioned = 0;
  for (const auto& row : m.itemitemsimilarities()) {
    count = std::max(count, row.itemid() + 1);
    mentioned += 1 + static_cast<uint64_t>(row.similaritemlist_size());
    for (const auto& c : row.similaritemlist()) count = std::max(count, c.itemid() + 1);
  }
  if (count > mentioned)
    return fail(ErrorCode::malformed, "itemSimilarityRecommender: item number ", count - 1, ", but only ", mentioned,
                " entries");
  proto::Int64Vector numbers;
  for (uint64_t i = 0; i < count; ++i) numbers.add_vector(static_cast<int64_t>(i));
  return classic::sorted_keys(site, numbers);
}

Status import_item_similarity(const proto::Model& model, const ImportContext& context, ir::Builder& builder,
                              Features& features) {
  Site site = MOKA_TRY(Site::open(model, context, builder, features));
  const Recommender& m = model.itemsimilarityrecommender();
  classic::SortedKeys items = MOKA_TRY(items_of(site, m));
  size_t n = items.positions.size();
  if (n == 0) return fail(ErrorCode::malformed, "itemSimilarityRecommender without items");
  std::vector<int64_t> rank(n);
  for (size_t i = 0; i < n; ++i) rank[static_cast<size_t>(items.positions[i])] = static_cast<int64_t>(i);

  std::vector<const Recommender::SimilarItems*> rows(n, nullptr);
  std::vector<double> shift(n, 0.0), similarity;
  for (const auto& row : m.itemitemsimilarities()) {
    if (row.itemid() >= n)
      return fail(ErrorCode::malformed, "itemSimilarityRecommender: expected an item number below ", n, ", got ",
                  row.itemid());
    auto at = static_cast<size_t>(rank[row.itemid()]);
    if (rows[at] != nullptr)
      return fail(ErrorCode::malformed, "itemSimilarityRecommender: item ", row.itemid(), " is described twice");
    rows[at] = &row;
    shift[at] = row.itemscoreadjustment();
  }
  std::vector<int64_t> begin{0}, similar;
  for (const Recommender::SimilarItems* row : rows) {
    if (row != nullptr)
      for (const auto& c : row->similaritemlist()) {
        if (c.itemid() >= n)
          return fail(ErrorCode::malformed, "itemSimilarityRecommender: expected an item number below ", n, ", got ",
                      c.itemid());
        similar.push_back(rank[c.itemid()]);
        similarity.push_back(c.similarityscore());
      }
    begin.push_back(static_cast<int64_t>(similar.size()));
  }

  Value* given = MOKA_TRY(site.input(m.iteminputfeaturename()));
  if (given == nullptr) return fail(ErrorCode::malformed, "itemSimilarityRecommender without an input for items");
  std::vector<NamedArg> args{{"items", given}, {"ids", items.keys}};
  if (Value* v = MOKA_TRY(site.input(m.numrecommendationsinputfeaturename()))) args.emplace_back("count", v);
  if (Value* v = MOKA_TRY(site.input(m.itemrestrictioninputfeaturename()))) args.emplace_back("restriction", v);
  if (Value* v = MOKA_TRY(site.input(m.itemexclusioninputfeaturename()))) args.emplace_back("exclusion", v);
  args.emplace_back("order", MOKA_TRY(site.tensor(items.positions)));
  args.emplace_back("row_begin", MOKA_TRY(site.tensor(begin)));
  args.emplace_back("similar", MOKA_TRY(site.tensor(similar)));
  args.emplace_back("similarity", MOKA_TRY(site.tensor(similarity)));
  args.emplace_back("shift", MOKA_TRY(site.tensor(shift)));
  ir::Op* op = MOKA_TRY(builder.append(
      {"ml_recommend", std::move(args), site.name("recommend"), {site.name("items"), site.name("scores")}, {}}));
  for (const FeatureDescription& f : site.description().outputs) {
    bool list = f.name == m.recommendeditemlistoutputfeaturename();
    if (!list && f.name != m.recommendeditemscoreoutputfeaturename())
      return fail(ErrorCode::malformed, "itemSimilarityRecommender: output '", f.name,
                  "' is neither the items nor their scores");
    MOKA_TRY(site.output(f, op->output(list ? 0 : 1)));
  }
  return {};
}

}  // namespace

ModelImporter importer_item_similarity() {
  static constexpr int types[] = {proto::Model::kItemSimilarityRecommender};
  return {types, import_item_similarity};
}

}  // namespace moka::import
