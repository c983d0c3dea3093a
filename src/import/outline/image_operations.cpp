// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <functional>
#include <optional>

#include "base/error.h"
#include "format/proto/model.pb.h"
#include "import/outline/program_values.h"

namespace moka::import {
namespace {

using Operation = Outline::Operation;
using Numbers = std::vector<double>;  // of each channel, or one for all

bool reads(const Operation& op, const std::string& name) {
  const auto has_name = [&](const auto& input) { return std::ranges::find(input.second, name) != input.second.end(); };
  const auto is_read = [&](const Outline::Block& block) {
    return std::ranges::find(block.outputs, name) != block.outputs.end() ||
           std::ranges::any_of(block.operations, [&](const Operation& inner) { return reads(inner, name); });
  };
  return std::ranges::any_of(op.inputs, has_name) || std::ranges::any_of(op.blocks, is_read);
}

/// The operation that alone reads a value. Null: there are none or several, or the function returns the value.
const Operation* only_reader(const Outline::Block& block, const std::string& name) {
  const Operation* found = nullptr;
  if (std::ranges::find(block.outputs, name) != block.outputs.end()) return nullptr;
  for (const Operation& op : block.operations)
    if (reads(op, name)) {
      if (found != nullptr) return nullptr;
      found = &op;
    }
  return found;
}

template <class Function>
Numbers combined(const Numbers& a, const Numbers& b, const Function& function) {
  Numbers out(std::max(a.size(), b.size()));
  for (size_t i = 0; i < out.size(); ++i) out[i] = function(a[a.size() == 1 ? 0 : i], b[b.size() == 1 ? 0 : i]);
  return out;
}

Numbers product(const Numbers& a, const Numbers& b) { return combined(a, b, std::multiplies<>()); }
Numbers sum(const Numbers& a, const Numbers& b) { return combined(a, b, std::plus<>()); }
Numbers negative(const Numbers& a) { return product(a, {-1}); }

/// image * scale + bias
struct Affine {
  Numbers scale{1}, bias{0};

  void multiply(const Numbers& by) {
    scale = product(scale, by);
    bias = product(bias, by);
  }
  void add(const Numbers& addend) { bias = sum(bias, addend); }
};

class ImageOperations {
 public:
  ImageOperations(const Outline& outline, const Outline::Function& function)
      : outline_(outline), function_(function), body_(function.body) {
    values_.add(body_);
  }

  /// What the operations do to the image until one does something else. Nothing: there are none.
  std::optional<Affine> of(std::string name) const {
    Affine out;
    bool any = false;
    const auto type = values_.types.find(name);
    if (type == values_.types.end()) return std::nullopt;
    const std::vector<int64_t> shape = dimensions_in(type->second);
    if (shape.size() != 4) return std::nullopt;
    for (;;) {
      const Operation* op = only_reader(body_, name);
      if (op == nullptr || op->outputs.size() != 1) break;
      Affine next = out;
      if (!apply(*op, name, shape[1], next)) break;
      const auto is_finite = [](double v) { return std::isfinite(v); };
      if (!std::ranges::all_of(next.scale, is_finite) || !std::ranges::all_of(next.bias, is_finite)) break;
      any |= op->type != "cast" && op->type != "identity";
      out = std::move(next);
      name = op->outputs[0].first;
    }
    return any ? std::optional(out) : std::nullopt;
  }

 private:
  /// False: the operation does something else to the value `name`, or its numbers are not known.
  bool apply(const Operation& op, const std::string& name, int64_t channels, Affine& affine) const {
    if (op.type == "identity") return true;
    if (op.type == "cast") return op.outputs[0].second.starts_with("tensor<fp");
    if (op.type == "batch_norm") return normalize(op, channels, affine);
    const std::string* x = ProgramValues::argument(op, "x");
    const bool first = x != nullptr && *x == name;
    const Numbers other = numbers(op, first ? "y" : "x", channels, 4);
    if (other.empty()) return false;
    if (op.type == "mul") {
      affine.multiply(other);
    } else if (op.type == "add") {
      affine.add(other);
    } else if (op.type == "sub") {
      if (!first) affine.multiply({-1});
      affine.add(first ? negative(other) : other);
    } else if (op.type == "real_div" && first) {
      affine.scale = combined(affine.scale, other, std::divides<>());
      affine.bias = combined(affine.bias, other, std::divides<>());
    } else {
      return false;
    }
    return true;
  }

  bool normalize(const Operation& op, int64_t channels, Affine& affine) const {
    const auto given = [&](const char* parameter, double absent) {
      const bool is_given = std::ranges::any_of(op.inputs, [&](const auto& in) { return in.first == parameter; });
      return is_given ? numbers(op, parameter, channels, 1) : Numbers{absent};
    };
    constexpr double default_epsilon = 1e-5;
    const Numbers mean = numbers(op, "mean", channels, 1), variance = numbers(op, "variance", channels, 1),
                  gamma = given("gamma", 1), beta = given("beta", 0), epsilon = given("epsilon", default_epsilon);
    if (mean.empty() || variance.empty() || gamma.empty() || beta.empty() || epsilon.empty()) return false;
    affine.add(negative(mean));
    affine.multiply(combined(gamma, sum(variance, epsilon), [](double g, double v) { return g / std::sqrt(v); }));
    affine.add(beta);
    return true;
  }

  /// The constant of a parameter, of every channel or one for all; empty for others. `axes`: 4 for an array that is
  /// broadcast to the image, whose second axis is the channel, 1 for a vector of the channels.
  Numbers numbers(const Operation& op, const std::string& parameter, int64_t channels, size_t axes) const {
    Numbers out = numbers_in(values_.text(op, parameter));
    if (out.size() <= 1) return out;
    std::vector<int64_t> shape = values_.shape(op, parameter);
    if (shape.empty()) {
      const auto is_it = [&](const Outline::Weight& w) {
        return w.owner == function_.name && w.name == cat(op.name, ".", parameter);
      };
      const auto found = std::ranges::find_if(outline_.weights, is_it);
      if (found != outline_.weights.end()) shape = dimensions_in(found->type);
    }
    std::vector<int64_t> expected(axes, 1);
    expected[axes == 1 ? 0 : 1] = channels;
    if (shape.size() > axes) return {};
    shape.insert(shape.begin(), axes - shape.size(), 1);
    return shape == expected && out.size() == static_cast<size_t>(channels) ? out : Numbers();
  }

  const Outline& outline_;
  const Outline::Function& function_;
  const Outline::Block& body_;
  ProgramValues values_;
};

}  // namespace

void add_image_operations(const proto::Model& model, Outline& outline) {
  const auto& d = model.description();
  for (const Outline::Function& f : outline.functions) {
    const auto* inputs = &d.input();
    for (const auto& described : d.functions())
      if (described.name() == f.name) inputs = &described.input();
    const ImageOperations operations(outline, f);
    for (const auto& input : *inputs) {
      if (!input.type().has_imagetype()) continue;
      auto found = operations.of(input.name());
      if (!found) continue;
      if (std::ranges::all_of(found->bias, [](double b) { return b == 0; })) found->bias.clear();
      Outline::Preprocessing made;
      made.input = input.name();
      made.function = f.name;
      made.stored = "operations";
      made.channels = channels_of(input.type().imagetype());
      made.scale = std::move(found->scale);
      made.bias = std::move(found->bias);
      outline.preprocessing.push_back(std::move(made));
    }
  }
}

}  // namespace moka::import
