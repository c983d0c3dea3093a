// SPDX-License-Identifier: Apache-2.0
#include "devices/gpu/shown.h"

#include <algorithm>
#include <bit>
#include <cstdio>
#include <iterator>
#include <map>

#include "devices/gpu/common/common.h"

namespace moka::devices::gpu {

namespace {

std::string text_of(ir::DType type, uint32_t word) {
  switch (type) {
    case ir::DType::boolean: return word != 0 ? "true" : "false";
    case ir::DType::fp32: {
      char text[32];
      std::snprintf(text, sizeof text, "%.9g", static_cast<double>(std::bit_cast<float>(word)));
      return text;
    }
    case ir::DType::int32: return std::to_string(std::bit_cast<int32_t>(word));
    default: return std::to_string(word);
  }
}

// Names of the numbers F_... and B_... in numbers.inc.
constexpr std::string_view kFunctions[] = {"none",
                                           "abs",
                                           "acos",
                                           "asin",
                                           "atan",
                                           "atanh",
                                           "ceil",
                                           "clamped_relu",
                                           "clip",
                                           "cos",
                                           "cosh",
                                           "elu",
                                           "erf",
                                           "exp",
                                           "exp2",
                                           "floor",
                                           "gelu",
                                           "gelu_sigmoid",
                                           "gelu_tanh",
                                           "hard_swish",
                                           "inverse",
                                           "leaky_relu",
                                           "linear",
                                           "log",
                                           "relu",
                                           "relu6",
                                           "round",
                                           "rsqrt",
                                           "scaled_tanh",
                                           "sigmoid",
                                           "sigmoid_hard",
                                           "sign",
                                           "silu",
                                           "sin",
                                           "sinh",
                                           "softplus",
                                           "softsign",
                                           "sqrt",
                                           "square",
                                           "tan",
                                           "tanh",
                                           "threshold",
                                           "thresholded_relu",
                                           "limits"};
static_assert(std::size(kFunctions) == F_LIMITS + 1 && F_RELU == 24 && F_TANH == 40);
constexpr std::string_view kBinaries[] = {
    "add",   "sub",       "mul",  "div",        "max",     "min",           "pow", "floor_div", "mod", "prelu",
    "equal", "not_equal", "less", "less_equal", "greater", "greater_equal", "and", "or",        "xor"};
static_assert(std::size(kBinaries) == B_XOR + 1 && B_EQUAL == 10);

/// "n0 = exp(x0); n1 = mul(n0, x1)".
std::string program_of(const Chain& chain) {
  std::string out;
  const auto number = [](float v) {
    char text[32];
    std::snprintf(text, sizeof text, "%.9g", static_cast<double>(v));
    return std::string(text);
  };
  for (size_t i = 0; i < chain.nodes.size(); i++) {
    const Chain::Node& n = chain.nodes[i];
    const auto operand = [&](uint32_t v) {
      if (v == Chain::kNumber) return number(n.x);
      return v < Chain::kInputs ? cat("x", v) : cat("n", v - Chain::kInputs);
    };
    out += cat(out.empty() ? "" : "; ", "n", i, " = ");
    if (n.code >= Chain::kBinary && n.code - Chain::kBinary < std::size(kBinaries))
      out += cat(kBinaries[n.code - Chain::kBinary], "(", operand(n.a), ", ", operand(n.b), ")");
    else if (n.code < std::size(kFunctions))
      out += cat(kFunctions[n.code], "(", operand(n.a), n.x == 0 && n.y == 0 ? "" : cat(", ", number(n.x)),
                 n.y == 0 ? "" : cat(", ", number(n.y)), ")");
    else
      out += cat("function ", n.code, "(", operand(n.a), ")");
  }
  return out.empty() ? "a copy of x0" : out;
}

std::vector<kernel::Fact> constants_of(const CodeFacts& facts, const std::vector<uint32_t>& given) {
  std::vector<kernel::Fact> out;
  for (uint32_t i = 0; i < given.size(); i++) {
    const auto named =
        std::find_if(facts.constants.begin(), facts.constants.end(), [&](const auto& c) { return c.at == i; });
    if (named == facts.constants.end())
      out.push_back({cat(i), cat(given[i])});
    else
      out.push_back({named->name.empty() ? cat(i) : named->name, text_of(named->type, given[i])});
    // Constants of these names say which function is applied to a result.
    const std::string& name = out.back().name;
    if ((name.ends_with("Then") || name.ends_with("Last")) && given[i] < std::size(kFunctions))
      out.back().value += cat(" (", kFunctions[given[i]], ")");
  }
  return out;
}

std::vector<kernel::Fact> parameters_of(const CodeFacts& facts, std::span<const std::byte> bytes) {
  std::vector<kernel::Fact> out;
  for (const CodeFacts::Number& p : facts.parameters) {
    std::string text;
    for (uint32_t k = 0; k < p.count; k++) {
      const size_t at = size_t{p.at} + size_t{k} * p.step;
      if (at + 4 > bytes.size()) break;
      uint32_t word;
      std::memcpy(&word, bytes.data() + at, 4);
      text += (text.empty() ? "" : ", ") + text_of(p.type, word);
    }
    if (!text.empty()) out.push_back({p.name, std::move(text)});
  }
  return out;
}

uint32_t constant(const CodeFacts& facts, const std::vector<uint32_t>& given, int number) {
  if (static_cast<size_t>(number) < given.size()) return given[static_cast<size_t>(number)];
  for (const CodeFacts::Number& c : facts.constants)
    if (c.at == static_cast<uint32_t>(number)) return c.value;
  return 0;
}

kernel::ShownCommand shown_command(const Command& c, const CodeFacts& facts) {
  kernel::ShownCommand out;
  out.steps = c.steps;
  out.waits = c.waits;
  for (size_t i = 0; i < c.uses.size(); i++) {
    const Use& u = c.uses[i];
    kernel::BoundBuffer& b = out.buffers.emplace_back();
    b.buffer = u.buffer;
    b.offset = u.offset;
    b.bytes = u.bytes;
    b.is_written = u.written;
    b.is_unused = u.is_unused;
    if (i < facts.bindings.size()) {
      b.name = facts.bindings[i].name;
      b.element = facts.bindings[i].element;
    }
  }
  if (c.run.code == nullptr) {
    out.kind = kernel::ShownCommand::Kind::copy;
    return out;
  }
  out.code = c.run.code->name;
  out.groups = {c.groups.x, c.groups.y, c.groups.z};
  for (size_t i = 0; i < 3; i++)
    out.group_size[i] =
        facts.group_constants[i] < 0 ? facts.group[i] : constant(facts, c.run.constants, facts.group_constants[i]);
  out.constants = constants_of(facts, c.run.constants);
  out.parameters = parameters_of(facts, c.params);
  out.parameter_bytes = c.params;
  if (c.chain) out.facts.push_back({"program", program_of(*c.chain)});
  return out;
}

}  // namespace

std::vector<kernel::ShownCommand> shown(const GpuDevice& device, std::span<const Command> commands) {
  std::map<const Code*, CodeFacts> known;
  std::vector<kernel::ShownCommand> out;
  for (const Command& c : commands) {
    const auto [it, is_new] = known.try_emplace(c.run.code);
    if (is_new && c.run.code != nullptr) it->second = device.facts_of(*c.run.code);
    out.push_back(shown_command(c, it->second));
  }
  return out;
}

}  // namespace moka::devices::gpu
