#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <set>

#include "format/proto/model.pb.h"
#include "import/outline/window.h"

namespace moka::import {
namespace {

using Operation = Outline::Operation;

/// The texts of constants and the types of all values of a function, by name.
struct Values {
  std::map<std::string, std::string, std::less<>> constants, types;

  void add(const Outline::Block& block) {
    for (const auto& [name, type] : block.inputs) types[name] = type;
    for (const Operation& op : block.operations) {
      for (const auto& [name, type] : op.outputs) types[name] = type;
      if (op.type == "const" && !op.values.empty() && !op.outputs.empty())
        constants[op.outputs[0].first] = op.values[0].second;
      for (const Outline::Block& inner : op.blocks) add(inner);
    }
  }
  /// The name of the value that the parameter takes.
  static const std::string* argument(const Operation& op, std::string_view parameter) {
    for (const auto& [name, values] : op.inputs)
      if (name == parameter && values.size() == 1) return &values[0];
    return nullptr;
  }
  /// The text of a constant parameter, wherever it is written.
  std::string text(const Operation& op, std::string_view parameter) const {
    for (const auto& [name, value] : op.values)
      if (name == parameter) return value;
    const std::string* name = argument(op, parameter);
    const auto it = name == nullptr ? constants.end() : constants.find(*name);
    return it == constants.end() ? "" : it->second;
  }
  std::vector<int64_t> sizes(const Operation& op, std::string_view parameter) const {
    constexpr double kLargest = 1e15;  // every whole number up to it is exact
    std::vector<int64_t> out;
    for (const double number : numbers_in(text(op, parameter))) {
      if (!(std::abs(number) <= kLargest)) return {};
      out.push_back(static_cast<int64_t>(number));
    }
    return out;
  }
  std::vector<int64_t> shape(const Operation& op, std::string_view parameter) const {
    const std::string* name = argument(op, parameter);
    const auto it = name == nullptr ? types.end() : types.find(*name);
    return it == types.end() ? std::vector<int64_t>() : dimensions_in(it->second);
  }
};

int64_t product(int64_t a, int64_t b) {
  int64_t out = 0;
  return a < 0 || b < 0 || __builtin_mul_overflow(a, b, &out) ? -1 : out;
}

void add_padding(const Values& values, const Operation& op, Outline::Window& w) {
  w.padding_mode = values.text(op, "pad_type");
  if (w.padding_mode.empty()) w.padding_mode = "valid";
  if (w.padding_mode == "custom") w.padding = values.sizes(op, "pad");
}

Outline::Window convolution(const Values& values, const Operation& op) {
  Outline::Window w;
  const std::vector<int64_t> weight = values.shape(op, "weight"), groups = values.sizes(op, "groups");
  if (weight.size() < 3) return w;
  w.kernel.assign(weight.begin() + 2, weight.end());
  const auto given = [&](const char* parameter) {
    std::vector<int64_t> sizes = values.sizes(op, parameter);
    return sizes.empty() ? std::vector<int64_t>(w.kernel.size(), 1) : sizes;
  };
  w.stride = given("strides");
  w.dilation = given("dilations");
  add_padding(values, op, w);
  w.groups = groups.empty() ? 1 : groups[0];
  const bool transposed = op.type == "conv_transpose";
  w.input_channels = transposed ? weight[0] : product(weight[1], w.groups);
  w.output_channels = transposed ? product(weight[1], w.groups) : weight[0];
  return w;
}

Outline::Window pool(const Values& values, const Operation& op) {
  Outline::Window w;
  w.kernel = values.sizes(op, "kernel_sizes");
  w.stride = values.sizes(op, "strides");
  if (w.stride.empty()) w.stride.assign(w.kernel.size(), 1);
  add_padding(values, op, w);
  return w;
}

Outline::Window window_of(const Values& values, const Operation& op) {
  if (op.type == "conv" || op.type == "conv_transpose") return convolution(values, op);
  if (op.type == "max_pool" || op.type == "avg_pool" || op.type == "l2_pool") return pool(values, op);
  Outline::Window w;
  if (op.type == "linear") {
    const std::vector<int64_t> weight = values.shape(op, "weight");
    if (weight.size() != 2) return w;
    w.output_channels = weight[0];
    w.input_channels = weight[1];
  } else if (op.type == "pad") {
    w.padding = values.sizes(op, "pad");
    w.padding_mode = values.text(op, "mode");
    if (w.padding_mode.empty()) w.padding_mode = "constant";
  }
  return w;
}

void add(const Values& values, Outline::Block& block) {
  for (Operation& op : block.operations) {
    op.window = window_of(values, op);
    for (Outline::Block& inner : op.blocks) add(values, inner);
  }
}

/// The operations of a function that read a value.
std::vector<const Operation*> readers(const Outline::Block& block, const std::string& name) {
  std::vector<const Operation*> out;
  for (const Operation& op : block.operations)
    for (const auto& [parameter, values] : op.inputs)
      if (std::find(values.begin(), values.end(), name) != values.end()) {
        out.push_back(&op);
        break;
      }
  return out;
}

/// The constant that a product or sum combines with `name`.
std::vector<double> other_operand(const Values& values, const Operation& op, const std::string& name) {
  const std::string* x = Values::argument(op, "x");
  return numbers_in(values.text(op, x != nullptr && *x == name ? "y" : "x"));
}

Outline::Preprocessing image_operations(const Outline::Block& body, std::string name) {
  Values values;
  values.add(body);
  Outline::Preprocessing out;
  for (bool scaled = false;;) {
    const auto all = readers(body, name);
    if (all.size() != 1 || all[0]->outputs.size() != 1) return out;
    const Operation& op = *all[0];
    if (op.type == "mul" || op.type == "add") {
      const std::vector<double> numbers = other_operand(values, op, name);
      if (numbers.empty() || (op.type == "mul" && (scaled || numbers.size() != 1))) return out;
      out.stored = "operations";
      if (op.type == "add") {
        out.bias = numbers;
        return out;
      }
      out.scale = numbers[0];
      scaled = true;
    } else if (op.type != "cast") {
      return out;
    }
    name = op.outputs[0].first;
  }
}

}  // namespace

std::vector<double> numbers_in(std::string_view text) {
  std::vector<double> out;
  if (!text.empty() && text.front() == '[' && text.back() == ']') text = text.substr(1, text.size() - 2);
  while (!text.empty()) {
    const size_t end = std::min(text.find(", "), text.size());
    const std::string part(text.substr(0, end));
    char* rest = nullptr;
    const double value = std::strtod(part.c_str(), &rest);
    if (part.empty() || *rest != '\0') return {};
    out.push_back(value);
    text.remove_prefix(std::min(end + 2, text.size()));
  }
  return out;
}

std::vector<int64_t> dimensions_in(std::string_view type) {
  std::vector<int64_t> out;
  const size_t begin = type.find('[');
  if (!type.starts_with("tensor<") || begin == type.npos) return out;
  for (size_t at = begin + 1; at < type.size() && type[at] != ']';) {
    const size_t end = type.find_first_of(",]", at);
    if (end == type.npos) return {};
    int64_t size = -1;
    const auto read = std::from_chars(type.data() + at, type.data() + end, size);
    out.push_back(read.ec == std::errc() && read.ptr == type.data() + end ? size : -1);
    at = end + (type[end] == ',' ? 2 : 0);
  }
  return out;
}

void add_windows(Outline& outline) {
  for (Outline::Function& f : outline.functions) {
    Values values;
    values.add(f.body);
    add(values, f.body);
  }
}

void add_image_operations(const proto::Model& model, Outline& outline) {
  const auto& d = model.description();
  for (const Outline::Function& f : outline.functions) {
    const auto* inputs = &d.input();
    for (const auto& described : d.functions())
      if (described.name() == f.name) inputs = &described.input();
    for (const auto& input : *inputs) {
      if (!input.type().has_imagetype()) continue;
      Outline::Preprocessing found = image_operations(f.body, input.name());
      if (found.stored.empty()) continue;
      found.input = input.name();
      found.function = f.name;
      found.channels = channels_of(input.type().imagetype());
      outline.preprocessing.push_back(std::move(found));
    }
  }
}

}  // namespace moka::import
