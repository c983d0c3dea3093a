// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>

#include "import/outline/program_values.h"
#include "import/outline/window.h"

namespace moka::import {
namespace {

using Operation = Outline::Operation;

int64_t product(int64_t a, int64_t b) {
  int64_t out = 0;
  return a < 0 || b < 0 || __builtin_mul_overflow(a, b, &out) ? -1 : out;
}

void add_padding(const ProgramValues& values, const Operation& op, Outline::Window& w) {
  w.padding_mode = values.text(op, "pad_type");
  if (w.padding_mode.empty()) w.padding_mode = "valid";
  if (w.padding_mode == "custom") w.padding = values.sizes(op, "pad");
}

Outline::Window convolution(const ProgramValues& values, const Operation& op) {
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

Outline::Window pool(const ProgramValues& values, const Operation& op) {
  Outline::Window w;
  w.kernel = values.sizes(op, "kernel_sizes");
  w.stride = values.sizes(op, "strides");
  if (w.stride.empty()) w.stride.assign(w.kernel.size(), 1);
  add_padding(values, op, w);
  return w;
}

Outline::Window window_of(const ProgramValues& values, const Operation& op) {
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

void add(const ProgramValues& values, Outline::Block& block) {
  for (Operation& op : block.operations) {
    op.window = window_of(values, op);
    for (Outline::Block& inner : op.blocks) add(values, inner);
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
    ProgramValues values;
    values.add(f.body);
    add(values, f.body);
  }
}

}  // namespace moka::import
