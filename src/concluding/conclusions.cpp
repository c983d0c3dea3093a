// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "concluding/rule.h"

namespace moka::concluding {

void Conclusions::add(const Model& model, std::string text, const Events& events, double seconds, std::string remedy) {
  Conclusion c;
  c.rule = rule_;
  c.process = model.process;
  c.model = model.name;
  c.text = std::move(text);
  c.remedy = remedy.empty() ? std::string(remedy_) : std::move(remedy);
  c.seconds = seconds < 0 ? seconds_of(events) : seconds;
  c.events = events;
  to_.push_back(std::move(c));
}

}  // namespace moka::concluding
