// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "plan/resolve.h"

namespace moka::plan {

namespace {

class ResolvedChecker {
 public:
  explicit ResolvedChecker(const Resolved& resolved) : resolved_(resolved), is_known_(resolved.values.size()) {}

  Status run() {
    for (size_t i = 0; i < resolved_.values.size(); i++) {
      const ResolvedValue& v = resolved_.values[i];
      if (resolved_.find(v.value) != static_cast<int>(i))
        return fail(ErrorCode::internal, "value ", i, " is not the one of its name, or is listed twice");
      if (v.is_constant() && !v.constant.empty_handle() && v.constant.dtype() != v.type.dtype())
        return fail(ErrorCode::internal, "constant '", v.value->name, "' is a ", v.type, " and holds ",
                    v.constant.dtype());
      is_known_[i] = v.source != ResolvedValue::Source::operation;
    }
    for (int i : resolved_.inputs)
      if (!is_in_range(i) || resolved_.at(i).source != ResolvedValue::Source::input)
        return fail(ErrorCode::internal, "input ", i, " is not supplied");
    for (const ResolvedOp& op : resolved_.ops) MOKA_TRY(operation(op));
    if (resolved_.pending) return reads(*resolved_.pending, resolved_.pending->in);
    for (int i : resolved_.outputs)
      if (!is_in_range(i) || !is_known_[static_cast<size_t>(i)])
        return fail(ErrorCode::internal, "output ", i, " is not computed");
    return {};
  }

 private:
  bool is_in_range(int i) const { return i >= 0 && static_cast<size_t>(i) < resolved_.values.size(); }

  Status reads(const ResolvedOp& op, std::span<const int> values) const {
    for (int i : values) {
      if (!is_in_range(i))
        return fail(ErrorCode::internal, "'", op.op->name, "' reads value ", i, ", which is not there");
      if (!is_known_[static_cast<size_t>(i)])
        return fail(ErrorCode::internal, "'", op.op->name, "' reads '", resolved_.at(i).value->name,
                    "' before it is computed");
    }
    return {};
  }

  Status operation(const ResolvedOp& op) {
    MOKA_TRY(reads(op, op.in));
    MOKA_TRY(reads(op, op.captured));
    if (!std::is_sorted(op.first.begin(), op.first.end()) || op.first.empty() || op.first.back() != op.in.size())
      return fail(ErrorCode::internal, "the operands of '", op.op->name, "' do not cover its ", op.in.size(),
                  " inputs");
    for (int i : op.out) {
      if (!is_in_range(i) || resolved_.at(i).source != ResolvedValue::Source::operation)
        return fail(ErrorCode::internal, "'", op.op->name, "' writes value ", i, ", which it does not own");
      if (is_known_[static_cast<size_t>(i)])
        return fail(ErrorCode::internal, "'", resolved_.at(i).value->name, "' is computed twice");
      const ir::Type& t = resolved_.at(i).type;
      if (t.is_tensor() && !t.is_concrete())
        return fail(ErrorCode::internal, "'", resolved_.at(i).value->name, "' is a ", t, ", which is not concrete");
      is_known_[static_cast<size_t>(i)] = true;
    }
    return {};
  }

  const Resolved& resolved_;
  std::vector<bool> is_known_;
};

}  // namespace

Status check(const Resolved& resolved) { return ResolvedChecker(resolved).run(); }

}  // namespace moka::plan
