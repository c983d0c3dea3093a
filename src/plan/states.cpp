// SPDX-License-Identifier: Apache-2.0
#include "plan/states.h"

#include <algorithm>
#include <climits>
#include <unordered_map>
#include <vector>

namespace moka::plan {

namespace {

using ir::Op;
using ir::Value;

class Order {
 public:
  explicit Order(const ir::Block& body) : body_(body) {
    for (const auto& op : body.ops()) {
      const int next = static_cast<int>(at_.size());
      at_[op.get()] = next;
    }
  }

  /// The position of the operation in the body that is or contains `op`.
  int at(const Op* op) const {
    while (op->parent() != &body_) op = op->parent()->parent_op();
    return at_.at(op);
  }

  /// The last operation that may read the memory of `v`.
  int last_use(const Value& v) const {
    if (!v.returned_by().empty()) return INT_MAX;
    int last = -1;
    for (const Op* user : v.users()) {
      last = std::max(last, at(user));
      if (user->has_trait(ir::Trait::alias)) last = std::max(last, last_use(*user->output()));
      if (user->block_count() > 0) return INT_MAX;
    }
    return last;
  }

 private:
  const ir::Block& body_;
  std::unordered_map<const Op*, int> at_;
};

struct Event {
  int at = 0;
  const Op* op = nullptr;
  bool write = false;
};

bool reads_once(const Op& op, const Value& v) {
  int64_t count = 0;
  for (const ir::Operand& o : op.operands()) count += std::count(o.values.begin(), o.values.end(), &v);
  return count == 1;
}

void add_uses(const Value& state, const ir::Block& body, const Order& order, StateUses& uses) {
  std::vector<Event> events;
  for (const Op* user : state.users()) {
    const bool write = user->type_name() == "write_state";
    if (user->parent() != &body || (!write && user->type_name() != "read_state")) return;
    events.push_back({order.at(user), user, write});
  }
  if (state.returned_by().empty()) uses.straight.insert(&state);
  std::sort(events.begin(), events.end(), [](const Event& a, const Event& b) { return a.at < b.at; });

  std::vector<int> changed;  // positions in descending order
  auto next_change = [&](int from) { return changed.empty() || changed.back() <= from ? INT_MAX : changed.back(); };
  for (size_t e = events.size(); e-- > 0;) {
    const Event& event = events[e];
    if (!event.write) {
      // The change itself may be the last reader, if it updates this very value in place.
      const Value& v = *event.op->output();
      const int next = next_change(event.at), last = order.last_use(v);
      if (last < next || (last == next && next != INT_MAX)) uses.views.insert(event.op);
      continue;
    }
    changed.push_back(event.at);
    const Value* data = event.op->input("data");
    const Op* update = data->producer();
    if (e == 0 || update == nullptr || update->parent() != &body || !update->has_trait(ir::Trait::updates)) continue;
    const Event& read = events[e - 1];
    if (read.write || !reads_once(*update, *read.op->output())) continue;
    const int at = order.at(update);
    changed.pop_back();
    const int later = next_change(event.at);
    const int last = order.last_use(*data);
    const bool used_once = order.last_use(*read.op->output()) == at;
    const bool fits = used_once && last != INT_MAX && last < later;
    changed.push_back(fits ? at : event.at);
    if (fits) uses.in_place[data] = &state;
  }
}

}  // namespace

StateUses uses_of_states(const ir::Block& body) {
  StateUses uses;
  const Order order(body);
  for (const auto& v : body.inputs())
    if (v->type.is_state()) add_uses(*v, body, order, uses);
  return uses;
}

}  // namespace moka::plan
