// SPDX-License-Identifier: Apache-2.0
#include "devices/neural_engine/rules.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "ir/program.h"

namespace moka::devices::neural_engine {

namespace {

using What = Condition::What;

std::string_view trimmed(std::string_view s) {
  while (!s.empty() && (s.front() == ' ' || s.front() == '\t' || s.front() == '\r')) s.remove_prefix(1);
  while (!s.empty() && (s.back() == ' ' || s.back() == '\t' || s.back() == '\r')) s.remove_suffix(1);
  return s;
}

std::vector<std::string> words(std::string_view text) {
  std::vector<std::string> out;
  while (!(text = trimmed(text)).empty()) {
    const size_t n = std::min(text.size(), text.find_first_of(" \t"));
    out.emplace_back(text.substr(0, n));
    text.remove_prefix(n);
  }
  return out;
}

struct Name {
  std::string_view name;
  What what;
};
constexpr std::array kNumbers{Name{"rank", What::rank},
                              Name{"dimension", What::dimension},
                              Name{"channels", What::channels},
                              Name{"kernel", What::kernel},
                              Name{"dilation", What::dilation},
                              Name{"reduced", What::reduced},
                              Name{"spatial", What::spatial},
                              Name{"depth", What::depth},
                              Name{"elements", What::elements},
                              Name{"operations", What::operations},
                              Name{"multiply-adds", What::multiply_adds},
                              Name{"parameters", What::parameters}};

Result<Condition> condition_of(std::string_view text) {
  std::vector<std::string> w = words(text);
  Condition c{};
  if (w.size() == 3 && (w[1] == "above" || w[1] == "below")) {
    const auto name = std::find_if(kNumbers.begin(), kNumbers.end(), [&](const Name& n) { return n.name == w[0]; });
    const auto [end, error] = std::from_chars(w[2].data(), w[2].data() + w[2].size(), c.limit);
    if (name != kNumbers.end() && error == std::errc() && end == w[2].data() + w[2].size()) {
      c.what = name->what;
      c.is_below = w[1] == "below";
      return c;
    }
  }
  if (w.size() == 4 && w[2] == "not") {
    c.negated = true;
    w.erase(w.begin() + 2);
  }
  if (w.size() == 3 && w[1] == "is") {
    const bool known =
        w[0] == "type" || (w[0] == "shape" && w[2] == "dynamic") || (w[0] == "window" && w[2] == "patches");
    c.what = w[0] == "type" ? What::type : w[0] == "shape" ? What::shape : What::window;
    c.word = w[2];
    if (known) return c;
  }
  return fail(
      ErrorCode::malformed, "'", trimmed(text),
      "' is not a condition: expected 'rank above 5' or 'rank below 5' (or dimension, spatial, channels, kernel, "
      "dilation, reduced, depth, elements, operations, multiply-adds, parameters), 'type is fp32', 'shape is dynamic' "
      "or "
      "'window is patches'");
}

bool names(const std::vector<std::string>& list, std::string_view op) {
  return std::any_of(list.begin(), list.end(), [&](const std::string& n) { return n == "*" || n == op; });
}

/// Calls `see` with the types of the results and of the inputs that are not constant.
template <class See>
void for_values(const kernel::MatchCall& call, See see) {
  const auto args = call.call.all_args();
  for (size_t i = 0; i < args.size(); i++)
    if (i >= call.constant_args.size() || !call.constant_args[i]) see(*args[i].type);
  for (const ir::Type& t : call.outputs) see(t);
}

/// The largest number in a constant integer parameter; 0 if there is none.
int64_t largest_of(const kernel::MatchCall& call, std::string_view param) {
  if (call.call.version().param_index(param) < 0 || !call.call.has(param)) return 0;
  const ir::TensorView* v = call.call.all_args()[static_cast<size_t>(call.call.arg_index(param))].value;
  if (v == nullptr || v->dtype == ir::DType::string) return 0;
  int64_t most = 0;
  for (int64_t i = 0; i < v->count(); i++) most = std::max(most, ir::load_i64(*v, i));
  return most;
}

/// The window sizes of a convolution or a pool.
int64_t kernel_size(const kernel::MatchCall& call) {
  if (call.call.version().param_index("weight") >= 0 && call.call.has("weight")) {
    const ir::Type& w = *call.call.all_args()[static_cast<size_t>(call.call.arg_index("weight"))].type;
    int64_t most = 0;
    for (int i = 2; w.is_tensor() && i < w.shape().rank(); i++) most = std::max(most, w.shape()[i]);
    return most;
  }
  return largest_of(call, "kernel_sizes");
}

/// The size of the axis that a reduction or a search runs along.
int64_t reduced_size(const kernel::MatchCall& call) {
  const auto args = call.call.all_args();
  if (args.empty() || !args[0].type->is_tensor()) return 0;
  const ir::Shape& x = args[0].type->shape();
  int64_t axis = -1;
  if (call.call.version().param_index("axis") >= 0 && call.call.has("axis")) {
    const ir::TensorView* v = args[static_cast<size_t>(call.call.arg_index("axis"))].value;
    if (v != nullptr && v->count() == 1) axis = ir::load_i64(*v, 0);
  }
  if (axis < 0) axis += static_cast<int64_t>(x.rank());
  return axis >= 0 && axis < static_cast<int64_t>(x.rank()) ? x[static_cast<size_t>(axis)] : 0;
}

const ir::Type* type_of(const kernel::MatchCall& call, std::string_view param) {
  if (call.call.version().param_index(param) < 0 || !call.call.has(param)) return nullptr;
  const ir::Type* t = call.call.all_args()[static_cast<size_t>(call.call.arg_index(param))].type;
  return t->is_tensor() ? t : nullptr;
}

/// The number of products that are added for one element of the result.
int64_t depth(const kernel::MatchCall& call) {
  const std::string& op = call.call.version().def->name;
  if (const ir::Type* w = type_of(call, "weight"); w != nullptr) {
    int64_t products = 1;
    for (int i = 1; i < w->shape().rank(); i++) products *= w->shape()[i];
    return products;
  }
  const ir::Type* x = type_of(call, "x");
  if (op != "matmul" || x == nullptr || x->shape().rank() == 0) return 0;
  const int from_end = largest_of(call, "transpose_x") != 0 && x->shape().rank() > 1 ? 2 : 1;
  return x->shape()[x->shape().rank() - from_end];
}

/// Elements of the queries of attention, and of the first input of other operations.
int64_t elements(const kernel::MatchCall& call) {
  const ir::Type* q = type_of(call, "query");
  const auto args = call.call.all_args();
  const ir::Type* first = q != nullptr ? q : args.empty() ? nullptr : args[0].type;
  return first != nullptr && first->is_tensor() && first->is_concrete() ? first->shape().count() : 0;
}

std::vector<int64_t> numbers_of(const kernel::MatchCall& call, std::string_view param) {
  std::vector<int64_t> out;
  if (call.call.version().param_index(param) < 0 || !call.call.has(param)) return out;
  const ir::TensorView* v = call.call.all_args()[static_cast<size_t>(call.call.arg_index(param))].value;
  if (v == nullptr || v->dtype == ir::DType::string) return out;
  for (int64_t i = 0; i < v->count(); i++) out.push_back(ir::load_i64(*v, i));
  return out;
}

/// Whether the windows of a convolution lie side by side: it is the product of each patch with a matrix.
bool is_patches(const kernel::MatchCall& call) {
  const ir::Type* w = type_of(call, "weight");
  const std::vector<int64_t> strides = numbers_of(call, "strides");
  if (w == nullptr || w->shape().rank() < 3 || strides.size() + 2 != static_cast<size_t>(w->shape().rank()))
    return false;
  for (size_t i = 0; i < strides.size(); i++)
    if (strides[i] != w->shape()[static_cast<int>(i) + 2]) return false;
  return largest_of(call, "pad") == 0 && largest_of(call, "dilations") <= 1;
}

bool is_dynamic(const kernel::MatchCall& call) {
  const ir::Op* op = call.call.op;
  if (op == nullptr) return false;
  const auto unknown = [](const ir::Value* v) {
    return v->constant() == nullptr && v->type.is_tensor() && !v->type.is_concrete();
  };
  for (const ir::Operand& o : op->operands())
    if (std::any_of(o.values.begin(), o.values.end(), unknown)) return true;
  for (size_t i = 0; i < op->output_count(); i++)
    if (unknown(op->output(i))) return true;
  return false;
}

/// Whether a value is float32 in the model too, or has another type.
bool has_type(const kernel::MatchCall& call, std::string_view word) {
  if (word == "fp32") {
    for (size_t i = 0; i < call.outputs.size(); i++)
      if (call.outputs[i].is_tensor() && call.outputs[i].dtype() == ir::DType::fp32 && !call.may_be_half(i))
        return true;
    return false;
  }
  bool found = false;
  for_values(call, [&](const ir::Type& t) { found |= t.is_tensor() && ir::to_string(t.dtype()) == word; });
  return found;
}

/// The largest rank or size of the values that are not constant.
int64_t largest_size(What what, const kernel::MatchCall& call) {
  int64_t most = 0;
  for_values(call, [&](const ir::Type& t) {
    if (!t.is_tensor()) return;
    const ir::Shape& s = t.shape();
    const auto rank = static_cast<int64_t>(s.rank());
    if (what == What::rank) most = std::max(most, rank);
    for (int64_t i = 0; i < rank && what != What::rank; i++) {
      // [N, C, H, W]: the dimensions after the channels are spatial.
      const bool is_channel = rank >= 3 && i == 1, is_spatial = i >= std::max<int64_t>(rank - 2, 0) && !is_channel;
      if (what == What::dimension || (what == What::channels && is_channel) || (what == What::spatial && is_spatial))
        most = std::max(most, s[static_cast<int>(i)]);
    }
  });
  return most;
}

/// The number that a condition limits; nullopt where it is not known.
std::optional<double> number_of(What what, const kernel::MatchCall& call) {
  switch (what) {
    case What::kernel: return static_cast<double>(kernel_size(call));
    case What::dilation: return static_cast<double>(largest_of(call, "dilations"));
    case What::reduced: return static_cast<double>(reduced_size(call));
    case What::depth: return static_cast<double>(depth(call));
    case What::elements: return static_cast<double>(elements(call));
    case What::operations:
    case What::multiply_adds:
    case What::parameters:
      if (call.program == nullptr) return std::nullopt;
      return what == What::operations      ? static_cast<double>(call.program->operations)
             : what == What::multiply_adds ? call.program->multiply_adds
                                           : call.program->parameters;
    default: return static_cast<double>(largest_size(what, call));
  }
}

bool holds(const Condition& c, const kernel::MatchCall& call) {
  if (c.what == What::type) return has_type(call, c.word) != c.negated;
  if (c.what == What::shape) return is_dynamic(call) != c.negated;
  if (c.what == What::window) return is_patches(call) != c.negated;
  const std::optional<double> number = number_of(c.what, call);
  const auto limit = static_cast<double>(c.limit);
  return number && (c.is_below ? *number < limit : *number > limit);
}

}  // namespace

Status Rules::add(std::string_view text) {
  std::vector<Rule> added;
  bool in_takes = false;
  int number = 0, section = 0;
  const auto wrong = [&](std::string_view why) { return fail(ErrorCode::malformed, "line ", number, ": ", why); };
  const auto finish = [&]() -> Status {
    if (added.empty() || in_takes) return {};
    const Rule& r = added.back();
    if (r.operations.empty() || r.reason.empty() == r.doubt.empty() || r.source.empty())
      return fail(ErrorCode::malformed, "line ", section, ": rule '", r.name,
                  "' needs operations, either a reason or a doubt, and a source");
    return {};
  };
  while (!text.empty()) {
    number++;
    const std::string_view whole = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), whole.size() + 1));
    const std::string_view line = trimmed(whole);
    if (line.empty() || line.front() == '#') continue;
    if (line.front() == '[') {
      if (line.back() != ']' || line.size() < 3) return wrong("expected [NAME]");
      MOKA_TRY(finish());
      section = number;
      const std::string_view name = line.substr(1, line.size() - 2);
      in_takes = name == "takes";
      if (!in_takes) added.push_back({std::string(name), {}, {}, {}, {}, {}, {}, {}});
      continue;
    }
    const size_t at = line.find('=');
    if (at == std::string_view::npos) return wrong("expected KEY = VALUE");
    const std::string_view key = trimmed(line.substr(0, at)), value = trimmed(line.substr(at + 1));
    if (in_takes && key == "operations") {
      for (std::string& w : words(value)) takes_.push_back(std::move(w));
      continue;
    }
    if (in_takes && key == "source") continue;
    if (in_takes || added.empty()) return wrong("expected a section [NAME] before its keys");
    Rule& r = added.back();
    if (key == "operations") {
      for (std::string& w : words(value)) r.operations.push_back(std::move(w));
    } else if (key == "except") {
      for (std::string& w : words(value)) r.except.push_back(std::move(w));
    } else if (key == "when") {
      auto c = condition_of(value);
      if (!c.ok()) return wrong(c.error().message());
      r.when.push_back(std::move(*c));
    } else if (key == "reason") {
      r.reason = value;
    } else if (key == "doubt") {
      r.doubt = value;
    } else if (key == "remedy") {
      r.remedy = value;
    } else if (key == "source") {
      r.source = value;
    } else {
      return wrong(cat("unknown key '", key, "'; expected operations, except, when, reason, doubt, remedy or source"));
    }
  }
  MOKA_TRY(finish());
  for (Rule& r : added) {
    const auto same = std::find_if(rules_.begin(), rules_.end(), [&](const Rule& o) { return o.name == r.name; });
    if (same == rules_.end())
      rules_.push_back(std::move(r));
    else
      *same = std::move(r);
  }
  return {};
}

namespace {

bool applies(const Rule& r, const std::string& op, const kernel::MatchCall& call) {
  return names(r.operations, op) && !names(r.except, op) &&
         std::all_of(r.when.begin(), r.when.end(), [&](const Condition& c) { return holds(c, call); });
}

}  // namespace

std::optional<Rules::Refusal> Rules::refusal(const kernel::MatchCall& call) const {
  const std::string& op = call.call.version().def->name;
  for (const Rule& r : rules_)
    if (!r.reason.empty() && applies(r, op, call)) return Refusal{r.reason, {r.remedy, r.source, r.name, {}}};
  if (!names(takes_, op)) return Refusal{cat("no public source says that the Neural Engine runs ", op), {}};
  return std::nullopt;
}

kernel::Advice Rules::doubt(const kernel::MatchCall& call) const {
  const std::string& op = call.call.version().def->name;
  for (const Rule& r : rules_)
    if (!r.doubt.empty() && applies(r, op, call)) return {r.remedy, r.source, r.name, r.doubt};
  return {};
}

}  // namespace moka::devices::neural_engine
