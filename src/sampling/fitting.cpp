// SPDX-License-Identifier: Apache-2.0
#include "sampling/fitting.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>
#include <set>

#include "moka/input_sizes.h"
#include "moka/model.h"

namespace moka::sampling {

namespace {

/// How many operations a search visits. The count is the same on every machine.
constexpr int64_t kMostVisited = 200'000;
/// Up to this size, all variable sizes are tried equal.
constexpr int64_t kLongestTogether = 512;

/// A value of the described type without a content of its own.
FeatureValue blank_value(const FeatureDescription& f) {
  static int64_t zero = 0;
  if (f.type == FeatureType::multi_array) {
    const std::vector<int64_t>& shape = f.array.shape;
    return MultiArray(&zero, f.array.type, shape, std::vector<int64_t>(shape.size(), 0));
  }
  if (f.type == FeatureType::image) {
    const bool gray = f.image.color == ColorSpace::grayscale || f.image.color == ColorSpace::grayscale_float16;
    return Image(&zero, f.image.width, f.image.height, gray ? PixelFormat::gray8 : PixelFormat::rgba8);
  }
  FunctionDescription one;
  one.inputs.push_back(f);
  return random_inputs(one).at(f.name);
}

Features blank_inputs(const FunctionDescription& function) {
  Features out;
  for (const FeatureDescription& f : function.inputs)
    if (!f.default_value) out[f.name] = blank_value(f);
  return out;
}

/// Whether axis `i` of the array may have `size` and other sizes.
bool varies_to(const FeatureDescription& f, size_t i, int64_t size) {
  if (f.type != FeatureType::multi_array || i >= f.array.ranges.size()) return false;
  const SizeRange& r = f.array.ranges[i];
  return size >= r.lower && (r.upper < 0 || size <= r.upper) && r.lower != r.upper;
}

/// The whole numbers of an error: an operation that refuses sizes names the one that it needs.
std::set<int64_t> numbers_named(const std::string& error) {
  std::set<int64_t> out;
  for (const char *at = error.data(), *end = at + error.size(); at < end;) {
    int64_t number = 0;
    const char* after = std::from_chars(at, end, number).ptr;
    if (after != at && number > 0) out.insert(number);
    at = after == at ? at + 1 : after;
  }
  return out;
}

/// How many sizes the input may have; HUGE_VAL: without a limit.
double allowed_sizes(const FeatureDescription& f) {
  const auto length = [](const SizeRange& r) {
    return r.upper < 0 ? HUGE_VAL : static_cast<double>(r.upper - r.lower + 1);
  };
  double out = 1;
  if (f.type == FeatureType::image) {
    if (!f.image.enumerated.empty()) return static_cast<double>(f.image.enumerated.size());
    if (f.image.width_range) out *= length(*f.image.width_range);
    if (f.image.height_range) out *= length(*f.image.height_range);
  } else if (f.type == FeatureType::multi_array) {
    if (!f.array.enumerated.empty()) return static_cast<double>(f.array.enumerated.size());
    for (const SizeRange& r : f.array.ranges) out *= length(r);
  }
  return out;
}

class Search {
 public:
  explicit Search(const FittedModel& model) : model_(model) {}

  Fitting run() {
    Fitting out{model_.function};
    Status usual = infers(model_.function);
    if (usual.ok() || !is_about_sizes(usual.error())) return out;
    out.is_usual = false;
    if (!named(usual.error().to_string()) && !together() && !listed() && !alone()) {
      out.is_usual = true;
      out.code = usual.error().code();
      out.refusal = model_.explained(std::move(usual).error()).to_string();
      out.tried = tried();
    } else {
      out.function = std::move(found_);
    }
    return out;
  }

 private:
  static bool is_about_sizes(const Error& e) {
    return e.code() == ErrorCode::invalid_argument || e.code() == ErrorCode::data;
  }

  Status infers(const FunctionDescription& function) { return model_.infers(blank_inputs(function), visited_); }

  /// Whether the sizes fit.
  bool fits(FunctionDescription function) {
    if (!tried_.insert(shape_choices(function, false)[0].name).second) return false;
    if (!infers(function).ok()) return false;
    found_ = std::move(function);
    return true;
  }
  bool may_go_on() {
    is_cut_ |= visited_ >= kMostVisited;
    return !is_cut_;
  }

  /// The function with all variable sizes equal; nothing when none may be so.
  std::optional<FunctionDescription> all_of(int64_t size) const {
    FunctionDescription function = model_.function;
    bool changed = false;
    for (FeatureDescription& f : function.inputs) {
      if (f.type == FeatureType::multi_array && model_.sequences_only && model_.takes_rank5(f.name)) {
        f.array.shape.insert(f.array.shape.begin(), {size, 1});
        changed = true;
        continue;
      }
      for (size_t i = 0; i < f.array.shape.size(); ++i) {
        if (!varies_to(f, i, size)) continue;
        f.array.shape[i] = size;
        changed = true;
      }
    }
    return changed ? std::optional(std::move(function)) : std::nullopt;
  }

  /// The sizes that the refused operation names: each for one variable size, then for all.
  bool named(const std::string& refusal) {
    const std::vector<FeatureDescription>& inputs = model_.function.inputs;
    for (const int64_t size : numbers_named(refusal)) {
      for (size_t n = 0; n < inputs.size(); ++n)
        for (size_t i = 0; i < inputs[n].array.shape.size(); ++i) {
          if (!varies_to(inputs[n], i, size)) continue;
          if (!may_go_on()) return false;
          FunctionDescription function = model_.function;
          function.inputs[n].array.shape[i] = size;
          if (fits(std::move(function))) return true;
        }
      std::optional<FunctionDescription> function = all_of(size);
      if (!function) continue;
      if (!may_go_on()) return false;
      has_longer_ |= size > kLongestTogether;
      if (fits(std::move(*function))) return true;
    }
    return false;
  }

  /// All variable sizes equal, from small to large.
  bool together() {
    for (int64_t size = 1; size <= kLongestTogether; ++size) {
      std::optional<FunctionDescription> function = all_of(size);
      if (!function) continue;
      if (!may_go_on()) return false;
      if (first_together_ == 0) first_together_ = size;
      last_together_ = size;
      if (fits(std::move(*function))) return true;
    }
    return false;
  }

  /// The sizes that the model lists, and the limits of ranges.
  bool listed() {
    const std::vector<ShapeChoice> choices = shape_choices(model_.function, true);
    for (size_t i = 1; i < choices.size(); ++i) {
      if (!may_go_on()) return false;
      ++listed_;
      if (fits(choices[i].function)) return true;
    }
    return false;
  }

  /// Each variable size alone.
  bool alone() {
    constexpr int64_t kLongest = 64;
    const std::vector<FeatureDescription>& inputs = model_.function.inputs;
    for (size_t n = 0; n < inputs.size(); ++n)
      for (size_t i = 0; i < inputs[n].array.shape.size(); ++i)
        for (int64_t size = 1; size <= kLongest; ++size) {
          if (!varies_to(inputs[n], i, size)) continue;
          if (!may_go_on()) return false;
          last_alone_ = std::max(last_alone_, size);
          FunctionDescription function = model_.function;
          function.inputs[n].array.shape[i] = size;
          if (fits(std::move(function))) return true;
        }
    return false;
  }

  std::string tried() const {
    std::string out;
    const auto add = [&](const std::string& what) { out += (out.empty() ? "" : ", ") + what; };
    if (has_longer_) add("the sizes that the operation names");
    if (last_together_ > 0)
      add(cat(model_.sequences_only ? "sequences of " : "all flexible sizes equal, of ", first_together_, " to ",
              last_together_));
    if (listed_ > 0) add(cat(listed_, " choices of listed sizes and limits"));
    if (last_alone_ > 0) add(cat("each flexible size alone, up to ", last_alone_));
    if (out.empty()) return out;
    return cat("; other sizes fit no better (tried: ", out, is_cut_ || !has_all() ? "; not all allowed sizes" : "",
               ")");
  }

  /// Whether the sizes that were tried, and the usual ones, are all that the model allows.
  bool has_all() const {
    double allowed = model_.sequences_only ? HUGE_VAL : 1;
    for (const FeatureDescription& f : model_.function.inputs) allowed *= allowed_sizes(f);
    const bool has_usual = tried_.contains(shape_choices(model_.function, false)[0].name);
    return allowed <= static_cast<double>(tried_.size() + (has_usual ? 0 : 1));
  }

  const FittedModel& model_;
  FunctionDescription found_;
  std::set<std::string> tried_;
  int64_t visited_ = 0, first_together_ = 0, last_together_ = 0, listed_ = 0, last_alone_ = 0;
  bool has_longer_ = false;  ///< an operation names a larger size, which was tried
  bool is_cut_ = false;      ///< the search ended early
};

}  // namespace

Fitting fit(const FittedModel& model) { return Search(model).run(); }

}  // namespace moka::sampling
