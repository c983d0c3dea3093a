// SPDX-License-Identifier: Apache-2.0
#include "explaining/pins.h"

#include <algorithm>
#include <cctype>

#include "base/pattern.h"
#include "moka/model.h"

namespace moka {

namespace {
std::string_view trimmed(std::string_view s) {
  while (!s.empty() && std::isspace(static_cast<unsigned char>(s.front())) != 0) s.remove_prefix(1);
  while (!s.empty() && std::isspace(static_cast<unsigned char>(s.back())) != 0) s.remove_suffix(1);
  return s;
}
}  // namespace

std::vector<Pin> parse_pins(std::string_view text) {
  std::vector<Pin> out;
  for (int line = 1; !text.empty(); line++) {
    const std::string_view whole = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), whole.size() + 1));
    const std::string_view pin = trimmed(whole.substr(0, whole.find('#')));
    if (pin.empty()) continue;
    const size_t at = pin.rfind('=');
    const std::string_view operations = trimmed(pin.substr(0, std::min(at, pin.size())));
    const std::string_view device = at == std::string_view::npos ? "" : trimmed(pin.substr(at + 1));
    if (operations.empty() || device.empty())
      throw Exception(ErrorKind::invalid_argument,
                      cat("pins, line ", line, ": expected OPERATIONS=DEVICE, got '", pin, "'"));
    out.push_back({std::string(operations), std::string(device)});
  }
  return out;
}

namespace explaining {

namespace {

constexpr std::string_view kType = "type:", kScope = "scope:";

bool is_in_scope(std::string_view scope, std::string_view name) {
  return name.starts_with(scope) &&
         (name.size() == scope.size() || std::isalnum(static_cast<unsigned char>(name[scope.size()])) == 0);
}

bool names(std::string_view pattern, std::string_view name) {
  return pattern.starts_with(kScope) ? is_in_scope(pattern.substr(kScope.size()), name)
                                     : matches_pattern(pattern, name);
}

bool matches(std::string_view pattern, std::string_view name, std::string_view type, const ir::SourceOp* source) {
  if (pattern.starts_with(kType)) {
    const std::string_view wanted = pattern.substr(kType.size());
    return matches_pattern(wanted, type) || (source != nullptr && matches_pattern(wanted, source->type));
  }
  return names(pattern, name) || (source != nullptr && names(pattern, source->name));
}

size_t edits(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j < row.size(); j++) row[j] = j;
  for (size_t i = 0; i < a.size(); i++) {
    size_t diagonal = row[0];
    row[0] = i + 1;
    for (size_t j = 0; j < b.size(); j++) {
      const size_t replaced = diagonal + (a[i] != b[j]);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, row[j + 1] + 1, row[j] + 1});
    }
  }
  return row.back();
}

/// "innerproduct" for "inner_product" and "innerProduct".
std::string plain(std::string_view text) {
  std::string out;
  for (const char c : text)
    if (std::isalnum(static_cast<unsigned char>(c)) != 0)
      out += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return out;
}

/// The candidate that is `wanted` but for a few letters, or begins it or begins with it; empty: none.
std::string nearest(std::string_view wanted, const std::vector<std::string>& candidates) {
  constexpr size_t kLongest = 256, kLeastBegin = 3;
  const std::string own = plain(wanted.substr(0, kLongest));
  std::string best;
  size_t least = std::max<size_t>(2, own.size() / 3) + 1;
  for (const std::string& candidate : candidates) {
    const std::string other = plain(std::string_view(candidate).substr(0, kLongest));
    const size_t shorter = std::min(own.size(), other.size());
    size_t distance = edits(own, other);
    if (shorter >= kLeastBegin && (own.starts_with(other) || other.starts_with(own)))
      distance = std::min(distance, size_t{2});
    if (distance >= least || distance >= std::max(own.size(), other.size())) continue;
    least = distance;
    best = candidate;
  }
  return best;
}

}  // namespace

bool pin_matches(std::string_view pattern, const ir::Op& op) {
  if (matches(pattern, op.name, op.type_name(), op.source.get())) return true;
  return !pattern.starts_with(kType) &&
         std::any_of(op.epilogue.begin(), op.epilogue.end(), [&](const auto& e) { return names(pattern, e.origin); });
}

bool pin_matches(std::string_view pattern, const runtime::SourceRecord& record) {
  return matches(pattern, record.name, record.type, record.source.get());
}

std::string pin_advice(std::string_view pattern, const std::vector<runtime::SourceRecord>& sources) {
  constexpr size_t kMostTypes = 20;
  const auto add = [](std::vector<std::string>& to, const std::string& text) {
    if (std::find(to.begin(), to.end(), text) == to.end()) to.push_back(text);
  };
  std::vector<std::string> types, all_types, all_names;
  for (const runtime::SourceRecord& r : sources) {
    add(types, r.source->type);
    all_names.push_back(r.source->name);
    all_names.push_back(r.name);
  }
  all_types = types;
  for (const runtime::SourceRecord& r : sources) add(all_types, r.type);
  const bool is_type = pattern.starts_with(kType), is_scope = pattern.starts_with(kScope);
  const std::string_view wanted = pattern.substr(is_type ? kType.size() : is_scope ? kScope.size() : 0);
  std::string near =
      pattern.find('*') != std::string_view::npos ? "" : nearest(wanted, is_type ? all_types : all_names);
  // A type without "type:" is a common slip.
  const bool lacks_type =
      near.empty() && !is_type && std::find(all_types.begin(), all_types.end(), wanted) != all_types.end();
  if (lacks_type) near = wanted;
  std::string out;
  if (!near.empty()) out = cat("; did you mean '", is_type || lacks_type ? kType : is_scope ? kScope : "", near, "'?");
  if (!is_type) return out;
  std::sort(types.begin(), types.end());
  out += cat(out.empty() ? "; the" : " The", " model has the types ");
  for (size_t i = 0; i < std::min(types.size(), kMostTypes); i++) out += cat(i == 0 ? "'" : ", '", types[i], "'");
  if (types.size() > kMostTypes) out += cat(" and ", types.size() - kMostTypes, " more");
  return out;
}

const kernel::Device* DevicePins::of(const ir::Op& op) const {
  for (auto pin = pins_.rbegin(); pin != pins_.rend(); ++pin)
    if (pin_matches(pin->first, op)) return pin->second;
  return base_;
}

}  // namespace explaining
}  // namespace moka
