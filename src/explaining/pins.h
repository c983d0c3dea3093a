// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kernel/device.h"
#include "moka/compute_plan.h"
#include "runtime/model.h"

namespace moka::explaining {

/// ModelConfiguration::pins and the devices that they name.
class DevicePins {
 public:
  void add(std::string operations, const kernel::Device* device) { pins_.emplace_back(std::move(operations), device); }
  /// Pins all operations to ModelConfiguration::device. The user's pins come after it.
  void set_base(const kernel::Device* device) { base_ = device; }
  bool empty() const { return pins_.empty() && base_ == nullptr; }
  bool has_users() const { return !pins_.empty(); }
  /// The device of the last pin that matches the operation, its source, or the name of an operation that was fused into
  /// it; nullptr: none.
  const kernel::Device* of(const ir::Op& op) const;
  /// What each of the user's pins matches in a model that was compiled with keep_sources.
  std::vector<PlannedPin> uses(const runtime::Model& model) const;

 private:
  std::vector<std::pair<std::string, const kernel::Device*>> pins_;
  const kernel::Device* base_ = nullptr;
};
/// Whether a pin's pattern, a type or a name, matches.
bool pin_matches(std::string_view pattern, const ir::Op& op);
bool pin_matches(std::string_view pattern, const runtime::SourceRecord& record);
/// "; did you mean 'type:conv'?" where a pattern that matches nothing resembles a name or a type of the model, and the
/// types that the model has.
std::string pin_advice(std::string_view pattern, const std::vector<runtime::SourceRecord>& sources);

}  // namespace moka::explaining
