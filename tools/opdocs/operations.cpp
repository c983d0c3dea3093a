// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "ir/op_def.h"
#include "opdocs/opdocs.h"

namespace moka::opdocs {

using namespace ir;

namespace {

using OrderedJson = nlohmann::ordered_json;

std::string number(double v) {
  char text[40];
  std::snprintf(text, sizeof text, "%g", v);
  return text;
}

std::vector<const OpDef*> sorted() {
  std::vector<const OpDef*> out;
  for (const OpDef& d : ops::table().defs()) out.push_back(&d);
  std::sort(out.begin(), out.end(), [](const OpDef* a, const OpDef* b) { return a->name < b->name; });
  return out;
}

std::string kind_of(const ParamDef& p) {
  switch (p.kind) {
    case ParamKind::tensor: return "tensor";
    case ParamKind::list: return "list";
    case ParamKind::dict: return "dictionary";
    case ParamKind::state: return "state";
    case ParamKind::tuple: return "tuple";
    case ParamKind::any: return "anything";
  }
  return "";
}

std::vector<std::string> dtypes_of(DTypes set) {
  std::vector<std::string> out;
  for (int i = 1; i <= static_cast<int>(DType::string); ++i)
    if (const auto t = static_cast<DType>(i); set & only(t)) out.emplace_back(to_string(t));
  return out;
}

OrderedJson element(const TensorView& v, int64_t i) {
  if (v.dtype == DType::string) return v.as<std::string>()[i];
  if (v.dtype == DType::boolean) return load_i64(v, i) != 0;
  if (!is_float(v.dtype)) return load_i64(v, i);
  const double x = load_f64(v, i);
  if (!std::isfinite(x)) return std::isnan(x) ? "nan" : x > 0 ? "inf" : "-inf";
  return std::stod(number(x));
}

OrderedJson default_of(const ParamDef& p) {
  if (!p.has_default()) return nullptr;
  const TensorView& v = p.default_view;
  if (v.shape.rank() == 0) return element(v, 0);
  OrderedJson list = OrderedJson::array();
  for (int64_t i = 0; i < v.count(); ++i) list.push_back(element(v, i));
  return list;
}

std::string type_text(const OpVersion& v, const ParamDef& p) {
  if (p.kind != ParamKind::tensor) return kind_of(p);
  return (p.type_var.empty() ? "" : p.type_var + ": ") + to_string(v.domain(p));
}

std::string given_text(const ParamDef& p) {
  std::string out = p.attribute ? "attribute" : p.constant ? "constant" : "";
  if (p.variadic) out += out.empty() ? "tuple" : ", tuple";
  if (p.optional && !p.has_default()) out += out.empty() ? "optional" : ", optional";
  return out;
}

std::string allowed_text(const ParamDef& p) {
  std::string out;
  for (const std::string& a : p.allowed) out += (out.empty() ? "" : ", ") + a;
  return out;
}

std::vector<std::string> row(const OpVersion& v, const ParamDef& p) {
  std::string value = p.has_default() ? "`" + default_of(p).dump() + "`" : "";
  return {"`" + p.name + "`", type_text(v, p), given_text(p), value, allowed_text(p)};
}

std::string line(const std::vector<std::string>& cells) {
  std::string out = "|";
  for (const std::string& c : cells) {
    out += ' ';
    for (const char letter : c) out += letter == '|' ? std::string("\\|") : std::string(1, letter);
    out += c.empty() ? "|" : " |";
  }
  return out + "\n";
}

std::string traits_text(Trait set) {
  static constexpr std::pair<Trait, const char*> kNames[] = {{Trait::elementwise, "elementwise"},
                                                             {Trait::moves_data_only, "moves data only"},
                                                             {Trait::alias, "no copy"},
                                                             {Trait::stateful, "keeps its order"},
                                                             {Trait::random, "random"},
                                                             {Trait::control, "has blocks"},
                                                             {Trait::constexpr_weight, "expands weights"},
                                                             {Trait::constant, "a constant"},
                                                             {Trait::commutative, "commutative"},
                                                             {Trait::types_only, "reads types only"},
                                                             {Trait::parameter, "a parameter"},
                                                             {Trait::costly, "costly"}};
  std::string out;
  for (const auto& [t, name] : kNames)
    if (has(set, t)) out += (out.empty() ? "" : ", ") + std::string(name);
  return out;
}

/// The changes of a newer version; for the first version, everything.
std::string parameters(const OpVersion& v, const OpVersion* before) {
  std::string rows;
  for (const ParamDef& p : v.params) {
    if (p.internal) continue;
    const ParamDef* old = before != nullptr ? before->param(p.name) : nullptr;
    if (old == nullptr || row(v, p) != row(*before, *old)) rows += line(row(v, p));
  }
  if (before != nullptr)
    for (const ParamDef& p : before->params)
      if (v.param(p.name) == nullptr) rows += line({"`" + p.name + "`", "removed", "", "", ""});
  if (rows.empty()) return "";
  return line({"Parameter", "Type", "Given", "Default", "Allowed"}) + "|---|---|---|---|---|\n" + rows;
}

bool is_own(const OpDef& d) {
  return d.name.starts_with("nn_") || d.name.starts_with("ml_") || d.name.starts_with("moka_");
}

constexpr const char* kMade = "<!-- Made by `make docs` from the definitions in src/ops; do not edit. -->\n\n";

std::string parameters_section(const OpDef& d) {
  std::string out;
  const OpVersion* before = nullptr;
  for (const OpVersion& v : d.versions) {
    out += (before == nullptr ? "" : "\nChanged in " + std::string(to_string(v.since)));
    const std::string table = parameters(v, before);
    if (before == nullptr)
      out += table.empty() ? "None.\n" : table;
    else
      out += table.empty() ? ": behavior only.\n" : ":\n\n" + table;
    before = &v;
  }
  return out;
}

std::string page(const OpDef& d, const Support& support) {
  const OpVersion& v = d.versions.front();
  std::string out = "# " + d.name + "\n\n" + kMade + d.doc + "\n\n";
  out += is_own(d) ? "Moka's own operation" : "Since " + std::string(to_string(v.since));
  if (const std::string t = traits_text(v.traits); !t.empty()) out += "; " + t;
  if (v.reference) out += "; tolerance " + number(v.tolerance.fp32) + " / " + number(v.tolerance.fp16);
  if (d.is_step())
    out += "; the gradient is zero";
  else if (d.gradient)
    out += "; has a gradient";
  out += ".\n\n## Parameters\n\n" + parameters_section(d);
  if (!d.notes.empty()) {
    out += "\n## Decided\n\n";
    for (const Note& n : d.notes) out += "- " + std::string(n.text) + " *Evidence: " + std::string(n.evidence) + ".*\n";
  }
  out += "\n## Where it runs\n\n" + kernels_markdown(support, d.name);
  if (const auto c = support.cases.find(d.name); c != support.cases.end())
    out += "\nCases with outputs computed outside Moka: " + std::to_string(c->second) +
           ", in tests/conformance/golden/" + d.name + ".json.\n";
  return out;
}

std::string index_rows(bool own) {
  std::string out = "| Operation | Operation sets | |\n|---|---|---|\n";
  for (const OpDef* d : sorted()) {
    if (is_own(*d) != own) continue;
    std::string sets;
    for (const OpVersion& v : d->versions) sets += (sets.empty() ? "" : ", ") + std::string(to_string(v.since));
    out += line({"[" + d->name + "](operations/" + d->name + ".md)", own ? "" : sets, d->doc});
  }
  return out;
}

std::string index() {
  return std::string("# Operations\n\n") + kMade +
         "Each operation has a page: its parameters, what was decided where its definition leaves room and on which "
         "evidence, and\n"
         "the kernels that run it. MIL has no attributes: every parameter is an input, some of them constants. Equal "
         "letters before\n"
         "element types are equal types. A later operation set is shown by what it changes. Tolerances are relative "
         "to the larger of 1\n"
         "and the expected value, for fp32 / fp16 results.\n\n## Of ML programs\n\n" +
         index_rows(false) +
         "\n## Moka's own\n\nFor layers of neural networks (`nn_`), classic models (`ml_`) and what passes make "
         "(`moka_`).\n\n" +
         index_rows(true);
}

}  // namespace

std::map<std::string, std::string> documents(const Support& support) {
  std::map<std::string, std::string> out;
  out["operations.md"] = index();
  out["linting-rules.md"] = rules_markdown();
  out["trace-rules.md"] = trace_rules_markdown();
  if (support.complete) out["device-support.md"] = support_markdown(support);
  for (const OpDef* d : sorted()) out["operations/" + d->name + ".md"] = page(*d, support);
  return out;
}

std::string operations_json() {
  OrderedJson all = OrderedJson::object();
  for (const OpDef* d : sorted()) {
    OrderedJson& op = all[d->name] = OrderedJson::object();
    for (const OpVersion& v : d->versions) {
      OrderedJson& params = op[std::string(to_string(v.since))] = OrderedJson::array();
      for (const ParamDef& p : v.params) {
        if (p.internal) continue;
        params.push_back({{"name", p.name},
                          {"kind", kind_of(p)},
                          {"type_var", p.type_var},
                          {"dtypes", dtypes_of(v.domain(p))},
                          {"const", p.constant},
                          {"optional", p.optional},
                          {"variadic", p.variadic},
                          {"attribute", p.attribute},
                          {"has_default", p.has_default()},
                          {"default", default_of(p)},
                          {"allowed", p.allowed}});
      }
    }
  }
  return all.dump(1) + "\n";
}

}  // namespace moka::opdocs
