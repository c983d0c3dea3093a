// SPDX-License-Identifier: Apache-2.0
#include "concluding/repeated_data.h"

namespace moka::concluding {

namespace {

bool is_type(std::string_view text) {
  for (const std::string_view start : {"fp", "int", "uint", "bool", "bf"})
    if (text.starts_with(start)) return true;
  return false;
}

/// The types in a reason such as "fp16 to fp32"; empty: it is another reason.
std::pair<std::string, std::string> types_in(std::string_view reason) {
  const size_t at = reason.find(" to ");
  if (at == std::string_view::npos) return {};
  const std::string_view from = reason.substr(0, at), rest = reason.substr(at + 4);
  const std::string_view to = rest.substr(0, rest.find_first_of(", "));
  if (!is_type(from) || !is_type(to) || from.find(' ') != std::string_view::npos) return {};
  return {element_name(from), element_name(to)};
}

std::string advice(const RepeatedData& found, const std::string& from, const std::string& to) {
  const bool is_half = from == "float16" || to == "float16";
  if (found.is_input && is_half)
    return cat("pass ", to, " arrays, or declare ", from, " inputs and load with the precision exact");
  if (found.is_input) return cat("pass ", to, " arrays");
  if (is_half) return cat("declare ", from, " outputs, or load with the precision exact");
  return cat("declare ", from, " outputs");
}

}  // namespace

Rule rule_converted_type() {
  return {
      "converted-type", "Each prediction converts arrays from one element type to another",
      "moka edit changes the types that a model declares. Arrays of the type that the model computes are used where "
      "they lie.",
      [](const Subject& subject, Conclusions& to) {
        for (const Model& m : subject.models)
          for (RepeatedData& found : repeated_data(m, 0.005, [](const Event& e) {
                 return e.kind() == "convert" && !types_in(e.text("reason")).first.empty();
               })) {
            const auto [from, into] = types_in(found.reason);
            to.add(m,
                   cat("converts ", from, " to ", into, " ", times(found.a_call),
                       " a call: ", advice(found, from, into), " (", found.is_input ? "input" : "output",
                       found.names.size() == 1 ? " " : "s ", quoted(found.names), ")"),
                   found.events);
          }
      }};
}

}  // namespace moka::concluding
