// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <cmath>

#include "check/verify.h"
#include "io/table.h"
#include "print.h"
#include "text.h"

namespace moka::cli {
namespace {

/// What may explain the failures; may be empty.
std::string hint_of(const Verification& v) {
  if (v.passed()) return {};
  if (!v.ungiven.empty())
    return fmt::format("the reference has no input for {}; --map NAME=OTHER names one", quoted_list(v.ungiven));
  if (!v.unscaled_images.empty())
    return fmt::format(
        "the reference got the pixels of {} as numbers from 0 to 255; --pixel-scale and --pixel-bias change that",
        quoted_list(v.unscaled_images));
  return {};
}

}  // namespace

std::string decibels(const OutputError& e) {
  if (!e.has_numbers()) return "";
  return std::isfinite(e.snr()) ? fmt::format("{:.1f} dB", e.snr()) : e.snr() > 0 ? "equal" : "-inf dB";
}

std::string agreement(const OutputError& e) {
  if (e.labels > 0) return fmt::format("{} of {}", e.same, e.labels);
  if (e.ranks.empty()) return "";
  return fmt::format("top 1 {}, top 5 {}", format_percent(e.agreement(1)), format_percent(e.agreement(5)));
}

Json to_json(const OutputError& e) {
  Json output{{"name", e.name}, {"reference", e.other}, {"elements", e.elements}};
  if (e.has_numbers()) {
    output["equal"] = e.noise == 0 && e.unlike == 0;
    output["snr"] = finite_or_null(e.snr());
    output["largestError"] = e.absolute;
    output["largestRelativeError"] = e.relative;
    output["unlike"] = e.unlike;
  }
  if (e.labels > 0) output["labels"] = {{"compared", e.labels}, {"same", e.same}};
  if (!e.ranks.empty()) output["agreement"] = {{"top1", e.agreement(1)}, {"top5", e.agreement(5)}};
  if (!e.faults.empty()) output["faults"] = e.faults;
  return output;
}

Json to_json(const Verification& v) {
  Json out{
      {"reference", v.reference}, {"passed", v.passed()}, {"minSnr", v.min_snr}, {"minSnrIsDefault", v.is_default}};
  out["shapes"] = Json::array();
  for (const VerifiedShape& shape : v.shapes) {
    Json one{{"shape", shape.name}, {"predictions", shape.predictions}};
    if (!shape.fault.empty()) one["fault"] = shape.fault;
    one["outputs"] = Json::array();
    for (const OutputError& e : shape.outputs) one["outputs"].push_back(to_json(e));
    out["shapes"].push_back(std::move(one));
  }
  out["uncompared"] = v.uncompared;
  out["failures"] = v.failures;
  if (const std::string hint = hint_of(v); !hint.empty()) out["hint"] = hint;
  return out;
}

std::string verification_text(const Verification& v) {
  io::Table table({{"inputs", io::Shrink::middle},
                   {"output", io::Shrink::middle},
                   {"reference's", io::Shrink::drop},
                   {"elements", io::Align::right},
                   {"signal to noise", io::Align::right},
                   {"largest error", io::Align::right},
                   {"relative", io::Align::right},
                   {"agreement", io::Align::left}});
  int64_t predictions = 0;
  for (const VerifiedShape& shape : v.shapes) {
    predictions += shape.predictions;
    const std::string inputs = shape.name.empty() ? "given" : shape.name;
    if (!shape.fault.empty()) table.add_row({inputs, "", "", "", "fails"});
    for (const OutputError& e : shape.outputs)
      table.add_row({inputs, e.name, e.other, e.has_numbers() ? format_count(e.elements) : "", decibels(e),
                     e.has_numbers() ? format_number(e.absolute) : "", e.has_numbers() ? format_number(e.relative) : "",
                     agreement(e)});
  }
  std::string out = fact("reference", v.reference) + fact("predictions", format_count(predictions));
  out += fact("threshold", fmt::format("{:g} dB{}", v.min_snr, v.is_default ? ", by the precision of the models" : ""));
  out += "\n" + table_text(table);
  if (!v.uncompared.empty()) out += "\n" + fact("no partner", quoted_list(v.uncompared));
  out += "\n";
  for (const std::string& failure : v.failures) out += fact("missed", failure);
  if (const std::string hint = hint_of(v); !hint.empty()) out += fact("hint", hint);
  return out + fact("result", v.passed() ? "the answers agree" : "the answers differ");
}

}  // namespace moka::cli
