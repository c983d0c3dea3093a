#include <algorithm>

#include "api/internal.h"

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

namespace api {

namespace {

/// Whether `text` matches `pattern`, in which each "*" stands for any text.
bool fits(std::string_view pattern, std::string_view text) {
  size_t p = 0, t = 0, star = std::string_view::npos, from = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      from = t;
    } else if (p < pattern.size() && pattern[p] == text[t]) {
      p++;
      t++;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      t = ++from;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') p++;
  return p == pattern.size();
}

constexpr std::string_view kType = "type:", kScope = "scope:";

bool is_in_scope(std::string_view scope, std::string_view name) {
  return name.starts_with(scope) &&
         (name.size() == scope.size() || std::isalnum(static_cast<unsigned char>(name[scope.size()])) == 0);
}

bool names(std::string_view pattern, std::string_view name) {
  return pattern.starts_with(kScope) ? is_in_scope(pattern.substr(kScope.size()), name) : fits(pattern, name);
}

bool matches(std::string_view pattern, const ir::Op& op) {
  if (pattern.starts_with(kType)) return fits(pattern.substr(kType.size()), op.type_name());
  return names(pattern, op.name) ||
         std::any_of(op.epilogue.begin(), op.epilogue.end(), [&](const auto& e) { return names(pattern, e.origin); });
}

bool is_one_name(std::string_view pattern) {
  return !pattern.starts_with(kType) && !pattern.starts_with(kScope) && pattern.find('*') == std::string_view::npos;
}

bool any_matches(std::string_view pattern, const ir::Block& block) {
  return std::any_of(block.ops().begin(), block.ops().end(), [&](const auto& op) {
    if (matches(pattern, *op)) return true;
    for (size_t b = 0; b < op->block_count(); b++)
      if (any_matches(pattern, *op->block(b))) return true;
    return false;
  });
}

}  // namespace

const kernel::Device* DevicePins::of(const ir::Op& op) const {
  for (auto pin = pins_.rbegin(); pin != pins_.rend(); ++pin)
    if (matches(pin->first, op)) return pin->second;
  return nullptr;
}

Status DevicePins::check(const ir::Function& function) const {
  for (const auto& [pattern, device] : pins_)
    if (is_one_name(pattern) && !any_matches(pattern, function.body()))
      return fail(ErrorCode::not_found, "operation '", pattern, "', pinned to device '", device->name(),
                  "', is not in the optimized program: it does not exist, or was folded");
  return {};
}

std::vector<std::string> DevicePins::idle(const ir::Function& function) const {
  std::vector<std::string> out;
  for (const auto& [pattern, device] : pins_)
    if (!is_one_name(pattern) && !any_matches(pattern, function.body()))
      out.push_back(cat("'", pattern, "', pinned to device '", device->name(), "', names no operation"));
  return out;
}

}  // namespace api
}  // namespace moka
