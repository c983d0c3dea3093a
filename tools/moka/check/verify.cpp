// SPDX-License-Identifier: Apache-2.0
#include "check/verify.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "check/features.h"
#include "check/ranges.h"
#include "io/io_error.h"
#include "model_facts.h"
#include "moka/input_sizes.h"
#include "text.h"
#include "usage_error.h"

namespace moka::cli {
namespace {

VerifiedShape compared_shape(const Model& model, Reference& reference, const PairedFeatures& features, std::string name,
                             const std::vector<Features>& items) {
  VerifiedShape out;
  out.name = std::move(name);
  std::vector<Features> one, two;
  try {
    one = predict_each(model, items, "model");
  } catch (const Exception& e) {
    out.fault = std::string("the model: ") + e.what();
    return out;
  }
  try {
    std::vector<Features> others;
    for (const Features& item : items) others.push_back(features.for_other(item));
    two = reference.predict(others);
  } catch (const Exception& e) {
    out.fault = std::string("the reference: ") + e.what();
    return out;
  } catch (const io::IoError& e) {
    out.fault = std::string("the reference: ") + e.what();
    return out;
  }
  out.predictions = static_cast<int64_t>(items.size());
  out.outputs = features.errors(one, two);
  return out;
}

void judge(const VerifiedShape& shape, const VerifyOptions& options, Verification& to) {
  const std::string at = shape.name.empty() ? "" : fmt::format(" ({})", shape.name);
  const auto fail = [&](const std::string& text) { to.failures.push_back(text + at); };
  if (!shape.fault.empty()) fail(shape.fault);
  for (const OutputError& e : shape.outputs) {
    if (!e.faults.empty()) fail(fmt::format("output '{}': {}", e.name, e.faults[0]));
    if (e.unlike > 0)
      fail(fmt::format("output '{}': {} NaN or infinite on one side only", e.name, plural(e.unlike, "element")));
    if (e.has_numbers() && !(e.snr() >= to.min_snr))
      fail(fmt::format("output '{}': {:.1f} dB, expected at least {:.1f} dB", e.name, e.snr(), to.min_snr));
    if (options.max_error && e.absolute > *options.max_error)
      fail(fmt::format("output '{}': the largest error is {}, allowed is {}", e.name, format_number(e.absolute),
                       format_number(*options.max_error)));
    if (options.top_k > 0 && e.agreement(options.top_k) >= 0 && e.agreement(options.top_k) < 1)
      fail(fmt::format("output '{}': the reference's class is among the {} best in {} of the predictions", e.name,
                       options.top_k, format_percent(e.agreement(options.top_k))));
    if (options.top_k == 0 && e.same < e.labels)
      fail(fmt::format("output '{}': {} of {} labels are the same", e.name, e.same, e.labels));
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
  return a.compressed || b.compressed ? 20 : a.half || b.half ? 40 : 80;
}

Verification verified(const Model& model, Reference& reference, const VerifyOptions& options) {
  Verification out;
  out.reference = reference.name();
  out.is_default = !options.min_snr;
  out.min_snr = options.min_snr.value_or(usual_snr(model, reference.model()));
  const PairedFeatures features(model, reference.inputs(), reference.outputs(), options.map, options.pixels,
                                reference.model() != nullptr, options.top_k > 0);
  out.uncompared = features.uncompared();
  const std::vector<Features> recorded = reference.recorded_inputs();
  if (!options.inputs.empty()) {
    out.shapes.push_back(compared_shape(model, reference, features, {}, options.inputs));
  } else if (!recorded.empty()) {
    out.shapes.push_back(compared_shape(model, reference, features, {}, recorded));
  } else {
    for (const ShapeChoice& choice : shape_choices(model.function(), options.all_shapes)) {
      std::vector<Features> items;
      for (int64_t run = 0; run < options.runs; ++run) {
        const uint64_t seed = options.seed + static_cast<uint64_t>(run);
        items.push_back(options.all_shapes ? random_inputs(choice.function, seed) : model.random_inputs(seed));
        spread(items.back(), options.ranges, model.function(), seed);
      }
      out.shapes.push_back(compared_shape(model, reference, features, choice.name, items));
    }
  }
  for (const VerifiedShape& shape : out.shapes) judge(shape, options, out);
  if (out.passed()) return out;
  const std::vector<std::string> images = features.images_as_arrays(), ungiven = features.ungiven();
  if (!ungiven.empty() && !reference.inputs().empty())
    out.hint = fmt::format("the reference has no input for {}; --map NAME=OTHER names one", quoted_list(ungiven));
  else if (!images.empty() && options.pixels == PixelScale())
    out.hint = fmt::format(
        "the reference got the pixels of {} as numbers from 0 to 255; --pixel-scale and --pixel-bias change that",
        quoted_list(images));
  return out;
}

}  // namespace moka::cli
