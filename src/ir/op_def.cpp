// SPDX-License-Identifier: Apache-2.0
#include "ir/op_def.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <mutex>

namespace moka::ir {

std::string_view to_string(Opset o) {
  switch (o) {
    case Opset::ios13: return "ios13";
    case Opset::ios14: return "ios14";
    case Opset::ios15: return "ios15";
    case Opset::ios16: return "ios16";
    case Opset::ios17: return "ios17";
    case Opset::ios18: return "ios18";
    case Opset::ios26: return "ios26";
  }
  return "?";
}

std::optional<Opset> opset_from_string(std::string_view s) {
  struct Name {
    std::string_view ios, core_ml;
    Opset opset;
  };
  static constexpr Name names[] = {{"os13", "CoreML3", Opset::ios13}, {"os14", "CoreML4", Opset::ios14},
                                   {"os15", "CoreML5", Opset::ios15}, {"os16", "CoreML6", Opset::ios16},
                                   {"os17", "CoreML7", Opset::ios17}, {"os18", "CoreML8", Opset::ios18},
                                   {"os26", "CoreML9", Opset::ios26}};
  for (const Name& n : names)
    if (s == n.core_ml || (s.size() == 5 && s[0] == 'i' && (s[1] == 'o' || s[1] == 'O') &&
                           (s[2] == 's' || s[2] == 'S') && s.substr(3) == n.ios.substr(2)))
      return n.opset;
  return std::nullopt;
}

std::string to_string(DTypes set) {
  std::string out;
  int found = 0;
  for (int i = 1; i <= static_cast<int>(DType::string); i++) {
    auto t = static_cast<DType>(i);
    if ((set & only(t)) == 0) continue;
    if (found++ > 0) out += ", ";
    append_to(out, t);
  }
  return found == static_cast<int>(DType::string) ? "any type" : out;
}

uint64_t RandomSource::next() {
  uint64_t z = (state += 0x9e3779b97f4a7c15u);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

std::span<const Arg> OpCall::args(std::string_view param) const {
  int p = version_->param_index(param);
  if (p < 0) {
    std::fprintf(stderr, "%s has no parameter '%.*s'\n", version_->def->name.c_str(), static_cast<int>(param.size()),
                 param.data());
    std::abort();
  }
  auto i = static_cast<size_t>(p);
  return args_.subspan(first_[i], first_[i + 1] - first_[i]);
}

int OpCall::arg_index(std::string_view param) const {
  auto a = args(param);
  return a.empty() ? -1 : static_cast<int>(a.data() - args_.data());
}

bool OpCall::has_addend() const { return version_->param_index("addend") >= 0 && has("addend"); }

const TensorView* OpCall::value(std::string_view param) const {
  auto a = args(param);
  if (!a.empty()) return a[0].value;
  const ParamDef& p = *version_->param(param);
  if (!p.has_default()) return nullptr;
  return &p.default_view;
}

namespace {
std::string describe_value(const TensorView& v) { return cat("a tensor<", v.dtype, ", ", v.shape, ">"); }
}  // namespace

Result<int64_t> OpCall::integer(std::string_view param) const {
  const TensorView* v = value(param);
  if (v == nullptr) return error(param, "a known integer", "a value that is not known before running");
  if ((!is_integer(v->dtype) && v->dtype != DType::boolean) || v->count() != 1)
    return error(param, "one integer", describe_value(*v));
  return load_i64(*v, 0);
}

Result<double> OpCall::number(std::string_view param) const {
  const TensorView* v = value(param);
  if (v == nullptr) return error(param, "a known number", "a value that is not known before running");
  if ((!is_integer(v->dtype) && !is_float(v->dtype)) || v->count() != 1)
    return error(param, "one number", describe_value(*v));
  return load_f64(*v, 0);
}

Result<bool> OpCall::flag(std::string_view param) const {
  const TensorView* v = value(param);
  if (v == nullptr) return error(param, "a known boolean", "a value that is not known before running");
  if (v->dtype != DType::boolean || v->count() != 1) return error(param, "one boolean", describe_value(*v));
  return load_i64(*v, 0) != 0;
}

Result<std::string_view> OpCall::text(std::string_view param) const {
  const TensorView* v = value(param);
  if (v == nullptr) return error(param, "a known string", "a value that is not known before running");
  if (v->dtype != DType::string || v->count() != 1) return error(param, "one string", describe_value(*v));
  return std::string_view(*v->as<std::string>());
}

Result<Ints> OpCall::ints(std::string_view param) const {
  const TensorView* v = value(param);
  if (v == nullptr) return error(param, "known integers", "a value that is not known before running");
  if ((!is_integer(v->dtype) && v->dtype != DType::boolean) || v->shape.rank() > 1 || v->count() > Ints::kCapacity)
    return error(param, cat("up to ", Ints::kCapacity, " integers"), describe_value(*v));
  Ints out;
  for (int64_t i = 0; i < v->count(); i++) out.push_back(load_i64(*v, i));
  return out;
}

Error OpCall::error(std::string_view param, std::string_view expected, std::string_view got) const {
  return fail(ErrorCode::invalid_argument, "operation '", name_, "' (", version_->def->name, "), parameter '", param,
              "': expected ", expected, ", got ", got);
}

Error OpCall::error(std::string_view what) const {
  return fail(ErrorCode::invalid_argument, "operation '", name_, "' (", version_->def->name, "): ", what);
}

void ParamDef::set_default(Constant value) {
  default_value = std::move(value);
  default_view = default_value.tensor.view();
  optional = true;
}

int OpVersion::param_index(std::string_view name) const {
  for (size_t i = 0; i < params.size(); i++)
    if (params[i].name == name) return static_cast<int>(i);
  return -1;
}

const ParamDef* OpVersion::param(std::string_view name) const {
  int i = param_index(name);
  return i < 0 ? nullptr : &params[static_cast<size_t>(i)];
}

ParamDef& OpVersion::edit(std::string_view name) {
  int i = param_index(name);
  if (i < 0) std::abort();
  return params[static_cast<size_t>(i)];
}

DTypes OpVersion::domain(const ParamDef& p) const {
  if (p.type_var.empty()) return p.dtypes;
  for (const auto& [n, d] : type_vars)
    if (n == p.type_var) return d;
  return kEverything;
}

void OpVersion::set_domain(std::string_view type_var, DTypes dtypes) {
  for (auto& [n, d] : type_vars)
    if (n == type_var) {
      d = dtypes;
      return;
    }
  type_vars.emplace_back(std::string(type_var), dtypes);
}

const OpVersion* OpDef::at(Opset opset) const {
  const OpVersion* best = nullptr;
  for (const OpVersion& v : versions)
    if (v.since <= opset) best = &v;
  return best;
}

OpDef::OpDef() = default;
OpDef::OpDef(const OpDef&) = default;
OpDef::OpDef(OpDef&&) noexcept = default;
OpDef& OpDef::operator=(const OpDef&) = default;
OpDef& OpDef::operator=(OpDef&&) noexcept = default;
OpDef::~OpDef() = default;

OpBuilder::OpBuilder(std::string name, std::string doc, Opset since) {
  def_.name = std::move(name);
  def_.doc = std::move(doc);
  def_.versions.emplace_back().since = since;
}

OpBuilder& OpBuilder::type_var(std::string name, DTypes dtypes) {
  last().set_domain(name, dtypes);
  return *this;
}

namespace {
ParamDef& add(OpVersion& v, std::string name, ParamKind kind) {
  ParamDef& p = v.params.emplace_back();
  p.name = std::move(name);
  p.kind = kind;
  return p;
}
}  // namespace

OpBuilder& OpBuilder::in(std::string name, std::string type_var) {
  add(last(), std::move(name), ParamKind::tensor).type_var = std::move(type_var);
  return *this;
}
OpBuilder& OpBuilder::in(std::string name, DTypes dtypes) {
  add(last(), std::move(name), ParamKind::tensor).dtypes = dtypes;
  return *this;
}
OpBuilder& OpBuilder::in_kind(std::string name, ParamKind kind) {
  add(last(), std::move(name), kind);
  return *this;
}
OpBuilder& OpBuilder::variadic(std::string name, std::string type_var) {
  ParamDef& p = add(last(), std::move(name), ParamKind::tensor);
  p.type_var = std::move(type_var);
  p.variadic = true;
  return *this;
}
OpBuilder& OpBuilder::variadic_any(std::string name) {
  add(last(), std::move(name), ParamKind::any).variadic = true;
  return *this;
}
OpBuilder& OpBuilder::constant(std::string name, DTypes dtypes) {
  in(std::move(name), dtypes);
  last().params.back().constant = true;
  return *this;
}
OpBuilder& OpBuilder::constant(std::string name, std::string type_var) {
  in(std::move(name), std::move(type_var));
  last().params.back().constant = true;
  return *this;
}
OpBuilder& OpBuilder::optional() {
  last().params.back().optional = true;
  return *this;
}
OpBuilder& OpBuilder::attribute() {
  last().params.back().attribute = true;
  return *this;
}
OpBuilder& OpBuilder::one_of(std::vector<std::string> allowed) {
  last().params.back().allowed = std::move(allowed);
  return *this;
}
OpBuilder& OpBuilder::or_else(Constant default_value) {
  ParamDef& p = last().params.back();
  p.set_default(std::move(default_value));
  return *this;
}
OpBuilder& OpBuilder::infer(InferFn fn) {
  last().infer = std::move(fn);
  return *this;
}
OpBuilder& OpBuilder::reference(ReferenceFn fn) {
  last().reference = std::move(fn);
  return *this;
}
OpBuilder& OpBuilder::gradient(GradientFn fn) {
  def_.gradient = std::move(fn);
  return *this;
}
OpBuilder& OpBuilder::traits(Trait t) {
  last().traits = t;
  return *this;
}
OpBuilder& OpBuilder::tolerance(double fp32, double fp16) {
  last().tolerance = {fp32, fp16};
  return *this;
}
OpBuilder& OpBuilder::note(std::string_view text, std::string_view evidence) {
  def_.notes.push_back({text, evidence});
  return *this;
}
OpBuilder& OpBuilder::at(Opset since, const std::function<void(OpVersion&)>& edit) {
  OpVersion v = last();
  v.since = since;
  edit(v);
  def_.versions.push_back(std::move(v));
  return *this;
}
bool OpDef::is_step() const {
  const auto* f = gradient.target<void (*)(Gradient&)>();
  return f != nullptr && *f == &no_gradient;
}

OpDef OpBuilder::build() { return std::move(def_); }

struct OpTable::Defined {
  explicit Defined(size_t n) : defs(n), once(n) {}
  std::vector<OpDef> defs;
  std::vector<std::once_flag> once;
};

OpTable::OpTable(std::span<const OpEntry> entries)
    : entries_(entries), defined_(std::make_shared<Defined>(entries.size())) {}

const OpDef* OpTable::at(size_t i) const {
  OpDef& def = defined_->defs[i];
  std::call_once(defined_->once[i], [&] {
    def = entries_[i].define();
    for (OpVersion& v : def.versions) v.def = &def;
  });
  return &def;
}

const OpDef* OpTable::find(std::string_view name) const {
  auto it = std::lower_bound(entries_.begin(), entries_.end(), name,
                             [](const OpEntry& e, std::string_view n) { return e.name < n; });
  return it != entries_.end() && it->name == name ? at(static_cast<size_t>(it - entries_.begin())) : nullptr;
}

std::span<const OpDef> OpTable::defs() const {
  for (size_t i = 0; i < entries_.size(); i++) at(i);
  return defined_->defs;
}

Result<const OpVersion*> OpTable::resolve(std::string_view name, Opset opset) const {
  const OpDef* def = find(name);
  if (def == nullptr) return fail(ErrorCode::unsupported, "operation '", name, "' is not known");
  const OpVersion* v = def->at(opset);
  if (v == nullptr)
    return fail(ErrorCode::unsupported, "operation '", name, "' needs opset ", to_string(def->versions.front().since),
                ", the function has ", to_string(opset));
  return v;
}

}  // namespace moka::ir
