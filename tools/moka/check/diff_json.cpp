// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "check/diff.h"
#include "check/verify.h"

namespace moka::cli {
namespace {

using Operations = std::vector<ModelComparison::Operation>;

Json brief(const Operations& operations, int index) {
  if (index < 0) return nullptr;
  const ModelComparison::Operation& op = operations[static_cast<size_t>(index)];
  return {{"name", op.name}, {"type", op.type}};
}

Json full(const Operations& operations, int index) {
  Json out = brief(operations, index);
  if (out.is_null()) return out;
  const ModelComparison::Operation& op = operations[static_cast<size_t>(index)];
  out["inputs"] = Json::object();
  for (const auto& [parameter, values] : op.inputs) out["inputs"][parameter] = values;
  out["outputs"] = Json::object();
  for (const auto& [value, type] : op.outputs) out["outputs"][value] = type;
  return out;
}

Json number_difference_json(const NumberDifference& n) {
  Json out{{"elements", n.elements},
           {"different", n.different},
           {"largest", n.largest},
           {"snr", finite_or_null(n.snr)},
           {"at", n.at},
           {"first", finite_or_null(n.first)},
           {"second", finite_or_null(n.second)}};
  out["isRounding"] = n.is_rounding;
  if (n.unlike > 0) out["unlike"] = n.unlike;
  return out;
}

Json alone(const Operations& operations, const Operations& others) {
  Json out = Json::array();
  for (size_t i = 0; i < operations.size(); ++i) {
    const ModelComparison::Operation& op = operations[i];
    if (op.partner >= 0 || op.is_transparent) continue;
    Json one = full(operations, static_cast<int>(i));
    if (op.fused_into >= 0) one["fusedInto"] = brief(others, op.fused_into);
    out.push_back(std::move(one));
  }
  return out;
}

Json structure_json(const ModelComparison& s) {
  Json out{{"same", s.same()}, {"functions", {s.function_a, s.function_b}}};
  Json reasons = Json::object(), renamed = Json::array();
  int64_t paired = 0, transparent = 0;
  for (size_t i = 0; i < s.a.size(); ++i) {
    transparent += s.a[i].partner < 0 && s.a[i].is_transparent;
    if (s.a[i].partner < 0) continue;
    ++paired;
    reasons[s.a[i].paired_by] = reasons.value(s.a[i].paired_by, 0) + 1;
    const ModelComparison::Operation& other = s.b[static_cast<size_t>(s.a[i].partner)];
    if (other.name != s.a[i].name) renamed.push_back({s.a[i].name, other.name});
  }
  for (const auto& op : s.b) transparent += op.partner < 0 && op.is_transparent;
  out["operations"] = {{"a", s.a.size()}, {"b", s.b.size()}, {"paired", paired}, {"pairedBy", reasons}};
  out["renamed"] = std::move(renamed);
  out["transparent"] = transparent;
  out["constants"] = s.constants;
  out["elements"] = s.elements;
  out["differences"] = Json::array();
  for (const ModelComparison::Difference& d : s.differences) {
    Json one{{"kind", name_of(d.kind)},  {"a", brief(s.a, d.a)}, {"b", brief(s.b, d.b)},
             {"parameter", d.parameter}, {"first", d.first},     {"second", d.second}};
    if (!d.first_name.empty()) one["firstConstant"] = d.first_name;
    if (!d.second_name.empty()) one["secondConstant"] = d.second_name;
    if (d.form_changed) one["formChanged"] = true;
    if (d.numbers) one["numbers"] = number_difference_json(*d.numbers);
    out["differences"].push_back(std::move(one));
  }
  out["onlyInA"] = alone(s.a, s.b);
  out["onlyInB"] = alone(s.b, s.a);
  if (!s.fault.empty()) out["fault"] = s.fault;
  for (const auto& [key, list] :
       {std::pair{"interface", &s.interface}, std::pair{"metadata", &s.metadata}, std::pair{"fields", &s.fields}}) {
    out[key] = Json::array();
    for (const auto& f : *list) out[key].push_back({{"what", f.what}, {"a", f.first}, {"b", f.second}});
  }
  return out;
}

Json compared_value_json(const ComparedValue& v) {
  Json out{{"operation", v.operation}, {"value", v.value}, {"other", v.other}};
  if (v.has_form) {
    out["equal"] = v.equal;
    out["difference"] = v.difference;
    out["relative"] = v.relative;
    out["snr"] = finite_or_null(v.snr);
    if (v.unlike) out["unlike"] = true;
  }
  out["differs"] = v.differs;
  out["a"] = to_json(v.facts);
  out["b"] = to_json(v.other_facts);
  return out;
}

Json value_diff_json(const ValueDiff& v, const ModelComparison& s) {
  Json out{{"same", v.same()}, {"predictions", v.predictions}, {"tolerance", v.tolerance}};
  if (v.min_snr) out["minSnr"] = *v.min_snr;
  if (!v.fault.empty()) {
    out["fault"] = v.fault;
    return out;
  }
  int64_t compared = 0, equal = 0, differ = 0, by_content = 0;
  for (const ComparedValue& one : v.found.values) {
    compared += !one.other.empty();
    equal += !one.other.empty() && one.equal;
    differ += one.differs;
    by_content += one.by_content;
  }
  out["values"] = v.found.values.size();
  out["compared"] = compared;
  out["equal"] = equal;
  out["differ"] = differ;
  out["pairedByContent"] = by_content;
  out["complete"] = v.found.complete;
  if (!v.origins.empty()) {
    out["first"] = compared_value_json(v.found.values[v.origins[0]]);
    out["first"]["operationsOfA"] = Json::array();
    out["first"]["operationsOfB"] = Json::array();
    for (const int i : v.region_a) out["first"]["operationsOfA"].push_back(full(s.a, i));
    for (const int i : v.region_b) out["first"]["operationsOfB"].push_back(full(s.b, i));
  }
  for (const auto& [key, list] : {std::pair{"origins", &v.origins}, std::pair{"trail", &v.trail}}) {
    out[key] = Json::array();
    for (const size_t i : *list) out[key].push_back(compared_value_json(v.found.values[i]));
  }
  out["outputs"] = Json::array();
  for (const OutputError& e : v.outputs) out["outputs"].push_back(to_json(e));
  out["failures"] = v.failures;
  return out;
}

}  // namespace

Json to_json(const ArrayFacts& facts) {
  return {{"type", to_string(facts.type)},
          {"shape", facts.shape},
          {"minimum", facts.least},
          {"maximum", facts.most},
          {"mean", facts.mean},
          {"finite", facts.finite},
          {"nan", facts.nan},
          {"infinite", facts.infinite}};
}

Json to_json(const Diff& diff) {
  Json out{{"a", diff.a}, {"b", diff.b}, {"same", diff.same()}};
  if (diff.has_structure) out["structure"] = structure_json(diff.structure);
  if (diff.values) out["values"] = value_diff_json(*diff.values, diff.structure);
  return out;
}

}  // namespace moka::cli
