// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <vector>

#include "ops/common/ml.h"

namespace moka::ops {
namespace {

/// Calls `fn(index of the item, score)` for each known item of a dictionary or a sequence. Items of a sequence score 1.
template <class Fn>
void each_item(const TensorView& ids, const TensorView& v, bool is_dict, Fn fn) {
  if (!is_dict) {
    for (int64_t i = 0; i < v.count(); ++i)
      if (int64_t at = ml::find_sorted(ids, v, i); at >= 0) fn(at, 1.0);
    return;
  }
  const Dict& d = v.dict();
  if (d.string_keys != (ids.dtype == DType::string)) return;
  for (size_t i = 0; i < d.size(); ++i) {
    int64_t at = d.string_keys ? ml::find_sorted(ml::span_of<std::string>(ids), d.text_keys[i])
                               : ml::find_sorted(ml::span_of<int64_t>(ids), d.int_keys[i]);
    if (at >= 0) fn(at, d.values[i]);
  }
}

struct Ranking {
  std::vector<int64_t> items;  ///< indices of ids, best first
  std::vector<double> scores;  ///< one for each id
};

bool is_given(const OpCall& call, std::string_view param) {
  if (!call.has(param)) return false;
  const TensorView& v = *call.value(param);
  return call.type(param).is_dict() ? v.dict().size() > 0 : v.count() > 0;
}

Ranking rank(const OpCall& call) {
  const TensorView& ids = *call.value("ids");
  auto n = static_cast<size_t>(ids.count());
  const int64_t* begin = call.value("row_begin")->as<int64_t>();
  const int64_t* similar = call.value("similar")->as<int64_t>();
  const double* similarity = call.value("similarity")->as<double>();
  const double* shift = call.value("shift")->as<double>();
  const int64_t* order = call.value("order")->as<int64_t>();
  Ranking r;
  r.scores.assign(n, 0.0);
  std::vector<bool> allowed(n, !is_given(call, "restriction"));
  if (is_given(call, "restriction"))
    each_item(ids, *call.value("restriction"), call.type("restriction").is_dict(),
              [&](int64_t i, double) { allowed[static_cast<size_t>(i)] = true; });
  each_item(ids, *call.value("items"), call.type("items").is_dict(), [&](int64_t i, double score) {
    for (int64_t e = begin[i]; e < begin[i + 1]; ++e)
      r.scores[static_cast<size_t>(similar[e])] += similarity[e] * (score - shift[similar[e]]);
  });
  const char* excluded = is_given(call, "exclusion") ? "exclusion" : "items";
  each_item(ids, *call.value(excluded), call.type(excluded).is_dict(),
            [&](int64_t i, double) { allowed[static_cast<size_t>(i)] = false; });
  for (size_t i = 0; i < n; ++i)
    if (allowed[i]) r.items.push_back(static_cast<int64_t>(i));
  auto key = [&](int64_t i) {
    double v = r.scores[static_cast<size_t>(i)];
    return v == v ? v : -INFINITY;
  };
  std::sort(r.items.begin(), r.items.end(),
            [&](int64_t a, int64_t b) { return key(a) != key(b) ? key(a) > key(b) : order[a] < order[b]; });
  int64_t limit = call.has("count") ? load_i64(*call.value("count"), 0) : -1;
  if (limit >= 0 && static_cast<size_t>(limit) < r.items.size()) r.items.resize(static_cast<size_t>(limit));
  return r;
}

Result<std::vector<Type>> infer_ml_recommend(const OpCall& call) {
  int64_t n = MOKA_TRY(ml::vector_length(call, "ids"));
  MOKA_TRY(ml::check_sorted(call, "ids"));
  MOKA_TRY(ml::check_length(call, "row_begin", n + 1));
  MOKA_TRY(ml::check_length(call, "shift", n));
  MOKA_TRY(ml::check_length(call, "order", n));
  int64_t edges = MOKA_TRY(ml::vector_length(call, "similar"));
  MOKA_TRY(ml::check_length(call, "similarity", edges));
  auto begin = ml::span_of<int64_t>(*call.value("row_begin"));
  if (begin.front() != 0 || begin.back() != edges || !std::is_sorted(begin.begin(), begin.end()))
    return call.error("row_begin", cat("ascending from 0 to ", edges), "other values");
  for (int64_t s : ml::span_of<int64_t>(*call.value("similar")))
    if (s < 0 || s >= n) return call.error("similar", cat("0 to ", n - 1), cat(s));
  DType t = call.value("ids")->dtype;
  bool known = true;
  for (const char* p : {"items", "restriction", "exclusion"}) {
    if (!call.has(p)) continue;
    const Type& type = call.type(p);
    known = known && call.is_known(p);
    bool fits = type.is_dict() ? ml::has_string_keys(type) == (t == DType::string)
                               : type.is_tensor() && (t == DType::string) == (type.dtype() == DType::string);
    if (!fits) return call.error(p, cat("items of type ", t), cat(type));
  }
  if (call.has("count")) {
    MOKA_TRY(ml::check_count(call, "count", 1));
    known = known && call.is_known("count");
  }
  int64_t rows = known ? static_cast<int64_t>(rank(call).items.size()) : kAnyDim;
  return std::vector<Type>{ml::vector_of(t, rows), ml::dict_of(t == DType::string)};
}

Status ml_recommend_reference(const OpCall& call, std::span<const TensorView> out) {
  const TensorView& ids = call.in("ids");
  Ranking r = rank(call);
  Dict& dict = out[1].dict();
  ml::clear(dict, ids.dtype == DType::string);
  for (size_t i = 0; i < r.items.size(); ++i) {
    if (static_cast<int64_t>(i) < out[0].count()) copy_element(out[0], static_cast<int64_t>(i), ids, r.items[i]);
    ml::append(dict, ids, r.items[i], r.scores[static_cast<size_t>(r.items[i])]);
  }
  return {};
}

}  // namespace

OpDef define_ml_recommend() {
  return ml::define(
             "ml_recommend",
             "Items ranked by the sum over the given items i of similarity(k, i) * (score(i) - shift(k)), and their "
             "scores. Items of a sequence score 1. Given items are left out unless `exclusion` says otherwise; an "
             "empty "
             "restriction or exclusion is none; a negative count means all. Equal scores rank by `order`.")
      .in_kind("items", ParamKind::any)
      .in("count", ml::kNumeric)
      .optional()
      .in_kind("restriction", ParamKind::any)
      .optional()
      .in_kind("exclusion", ParamKind::any)
      .optional()
      .constant("ids", ml::kKeys)
      .constant("order", ml::kI64)
      .constant("row_begin", ml::kI64)
      .constant("similar", ml::kI64)
      .constant("similarity", ml::kF64)
      .constant("shift", ml::kF64)
      .infer(infer_ml_recommend)
      .reference(ml_recommend_reference)
      .build();
}

}  // namespace moka::ops
