// SPDX-License-Identifier: Apache-2.0
#include "moka/verify.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "checking/features.h"
#include "checking/pairing.h"
#include "checking/predict.h"
#include "checking/text.h"
#include "moka/input_sizes.h"

namespace moka {
namespace {

constexpr double kHalfSnr = 40;  ///< dB that float16 leaves

using checking::number_text, checking::rounded_text, checking::count_text;

VerifiedShape compared_shape(const Model& model, Reference& reference, const checking::PairedFeatures& features,
                             std::string name, const std::vector<Features>& items, const VerifyOptions& options) {
  VerifiedShape out;
  out.name = std::move(name);
  bool is_left = false;  // progress threw
  const auto advance_of = [&](std::string_view side) {
    const std::function<void(size_t)> advance = [&options, &is_left, side, total = items.size()](size_t done) {
      if (!options.progress) return;
      is_left = true;
      options.progress({side, done, total});
      is_left = false;
    };
    advance(0);
    return advance;
  };
  std::vector<Features> one, two, others;
  try {
    one = checking::predict_each(model, items, advance_of("model"));
  } catch (const Exception& e) {
    if (is_left) throw;
    out.fault = std::string("the model: ") + e.what();
    return out;
  }
  for (const Features& item : items) others.push_back(features.for_other(item));
  if (const auto answers = reference.recorded_answers(); answers && *answers != items.size())
    throw Exception(
        ErrorKind::invalid_argument,
        cat(reference.name(), ": it has the answers of ", count_text(static_cast<int64_t>(*answers), "prediction"),
            ", but ", items.size(), " are compared; give the inputs that they were computed from"));
  try {
    two = reference.predict(others, advance_of("reference"));
    if (two.size() != items.size())
      throw Exception(ErrorKind::invalid_argument,
                      cat("expected ", items.size(), " answers of the reference, got ", two.size()));
  } catch (const Exception& e) {
    if (is_left) throw;
    out.fault = std::string("the reference: ") + e.what();
    return out;
  }
  for (size_t i = 0; i < one.size(); i++) reference.narrow(i, one[i]);
  out.predictions = static_cast<int64_t>(items.size());
  out.outputs = features.errors(one, two);
  return out;
}

void judge(const VerifiedShape& shape, const VerifyOptions& options, Verification& to) {
  const std::string at = shape.name.empty() ? "" : cat(" (", shape.name, ")");
  const auto fail = [&](const std::string& text) { to.failures.push_back(text + at); };
  if (!shape.fault.empty()) fail(shape.fault);
  for (const OutputError& e : shape.outputs) {
    const std::string output = cat("output '", e.name, "': ");
    if (!e.faults.empty()) fail(output + e.faults[0]);
    if (e.unlike > 0) fail(cat(output, count_text(e.unlike, "element"), " NaN or infinite on one side only"));
    if (e.has_numbers() && !(e.snr() >= to.min_snr))
      fail(cat(output, rounded_text(e.snr()), " dB, expected at least ", rounded_text(to.min_snr), " dB"));
    if (options.max_error && e.absolute > *options.max_error)
      fail(cat(output, "the largest error is ", number_text(e.absolute), ", allowed is ",
               number_text(*options.max_error)));
    if (options.top_k > 0 && e.agreement(options.top_k) >= 0 && e.agreement(options.top_k) < 1)
      fail(cat(output, "the reference's class is among the ", options.top_k, " best in ",
               rounded_text(e.agreement(options.top_k) * 100), "% of the predictions"));
    if (options.top_k == 0 && e.same < e.labels) fail(cat(output, e.same, " of ", e.labels, " labels are the same"));
  }
}

void scan(const ModelStructure::Block& block, bool& half, bool& compressed) {
  for (const ModelStructure::Operation& op : block.operations) {
    compressed |= op.type.starts_with("constexpr_") && op.type != "constexpr_cast";
    for (const auto& [name, type] : op.outputs) half |= op.type != "const" && type.find("fp16") != std::string::npos;
    for (const ModelStructure::Block& inner : op.blocks) scan(inner, half, compressed);
  }
}

void scan(const ModelStructure& structure, bool& half, bool& compressed) {
  for (const auto& function : structure.functions) scan(function.body, half, compressed);
  for (const auto& weight : structure.weights)
    compressed |= weight.storage == "inline palette" || weight.storage == "inline linear";
  for (const auto& part : structure.models) scan(part.structure, half, compressed);
}

}  // namespace

Arithmetic arithmetic_of(const Model& model) {
  Arithmetic out;
  scan(model.structure(), out.half, out.compressed);
  return out;
}

double usual_snr(const Model& model, const Model* other) {
  const Arithmetic a = arithmetic_of(model), b = other != nullptr ? arithmetic_of(*other) : a;
  return a.compressed || b.compressed ? 20 : a.half || b.half ? kHalfSnr : 80;
}

Verification verify_model(const Model& model, Reference& reference, const VerifyOptions& options) {
  Verification out;
  out.reference = reference.name();
  out.is_default = !options.min_snr;
  const double usual = usual_snr(model, reference.model());
  out.min_snr = options.min_snr.value_or(reference.may_be_half() ? std::min(usual, kHalfSnr) : usual);
  const checking::PairedFeatures features(model, reference.inputs(), reference.outputs(), options.map, options.pixels,
                                          reference.model() != nullptr, options.top_k > 0);
  out.uncompared = features.uncompared();
  if (!reference.inputs().empty()) out.ungiven = features.ungiven();
  if (options.pixels == PixelScale()) out.unscaled_images = features.images_as_arrays();
  const std::vector<Features> recorded = reference.recorded_inputs();
  if (!options.inputs.empty()) {
    out.shapes.push_back(compared_shape(model, reference, features, {}, options.inputs, options));
  } else if (!recorded.empty()) {
    out.shapes.push_back(compared_shape(model, reference, features, {}, recorded, options));
  } else {
    checking::require_runs(options.runs);
    for (const ShapeChoice& choice : shape_choices(model.function(), options.all_shapes)) {
      std::vector<Features> items;
      for (int64_t run = 0; run < options.runs; ++run) {
        const uint64_t seed = options.seed + static_cast<uint64_t>(run);
        items.push_back(options.all_shapes ? random_inputs(choice.function, seed) : model.random_inputs(seed));
        checking::spread(items.back(), options.ranges, model.function(), seed);
      }
      out.shapes.push_back(compared_shape(model, reference, features, choice.name, items, options));
    }
  }
  for (const VerifiedShape& shape : out.shapes) judge(shape, options, out);
  return out;
}

}  // namespace moka
