// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "concluding/subject.h"

/// Rules about traces, one per file src/concluding/rule_*.cpp.
namespace moka::concluding {

struct Conclusion {
  std::string rule;
  std::string process, model;  ///< empty: several
  std::string text, remedy;
  double seconds = 0;  ///< that the program would take less, at most
  Events events;       ///< all that show it
};

class Conclusions {
 public:
  Conclusions(std::string_view rule, std::string_view remedy, std::vector<Conclusion>& to)
      : rule_(rule), remedy_(remedy), to_(to) {}
  /// `seconds` below 0: those of the events. `remedy`: empty for the rule's own.
  void add(const Model& model, std::string text, const Events& events, double seconds = -1, std::string remedy = {});

 private:
  std::string_view rule_, remedy_;
  std::vector<Conclusion>& to_;
};

struct Rule {
  std::string_view name;     ///< "loaded-repeatedly"
  std::string_view summary;  ///< when it concludes
  std::string_view remedy;   ///< what helps
  void (*conclude)(const Subject& subject, Conclusions& to);
};

/// All rules, sorted by the names of their files, which the build lists.
std::span<const Rule> rules();

}  // namespace moka::concluding
