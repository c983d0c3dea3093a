// SPDX-License-Identifier: Apache-2.0
#include "training/batch_statistics.h"

#include "runtime/parameters.h"

namespace moka::training {

namespace {

using namespace ir;

constexpr std::string_view kStatistics[] = {"mean", "variance"};

bool is_batch_norm(const Op& op) { return op.type_name() == "batch_norm"; }

const Op* batch_norm_in(const Block& block) {
  for (const auto& op : block.ops()) {
    if (is_batch_norm(*op)) return op.get();
    for (size_t i = 0; i < op->block_count(); i++)
      if (const Op* inner = batch_norm_in(*op->block(i))) return inner;
  }
  return nullptr;
}

/// The running value moved towards that of the mini-batch.
Result<Value*> moved(Builder& b, Value* running, Value* found, double keep, double share) {
  Value* old = MOKA_TRY(b.op("mul", {{"x", running}, {"y", static_cast<float>(keep)}}));
  Value* added = MOKA_TRY(b.op("mul", {{"x", found}, {"y", static_cast<float>(share)}}));
  return b.op("add", {{"x", old}, {"y", added}});
}

}  // namespace

Result<std::vector<std::string>> own_statistics(Function& function) {
  std::vector<std::string> out;
  for (const auto& op : function.body().ops()) {
    for (size_t i = 0; i < op->block_count(); i++)
      if (const Op* inner = batch_norm_in(*op->block(i)))
        return fail(ErrorCode::unsupported, "operation '", inner->name, "' (batch_norm) of a block of '", op->name,
                    "' cannot use the statistics of a mini-batch");
    if (!is_batch_norm(*op)) continue;
    for (std::string_view param : kStatistics) {
      const Value& v = *op->input(param);
      if (!v.is_inline_constant() && v.users().size() != 1) {
        if (v.constant() == nullptr)
          return fail(ErrorCode::unsupported, "operation '", op->name, "' (batch_norm) shares its ", param, " '",
                      v.name, "', which is compressed");
        op->set_constant(param, *v.constant());
      }
      out.push_back(runtime::parameter_name(*op, param));
    }
  }
  return out;
}

Result<std::vector<RunningStatistic>> use_batch_statistics(Function& function, double momentum, const OpTable& table) {
  if (!(momentum >= 0 && momentum <= 1))
    return fail(ErrorCode::invalid_argument, "statistics of mini-batches: expected a momentum from 0 to 1, got ",
                momentum);
  std::vector<RunningStatistic> out;
  std::vector<Op*> norms;
  for (const auto& op : function.body().ops())
    if (is_batch_norm(*op)) norms.push_back(op.get());
  for (Op* op : norms) {
    const Shape& x = op->input("x")->type.shape();
    const int64_t n = x.count() / std::max<int64_t>(x[1], 1);
    if (n < 2)
      return fail(ErrorCode::unsupported, "operation '", op->name, "' (batch_norm): expected at least two values of ",
                  "each channel in a mini-batch, got ", op->input("x")->type);
    Builder b = Builder::before(table, *op);
    b.opset = Opset::ios18;
    std::vector<NamedArg> args{{"x", op->input("x")}};
    for (const char* param : {"gamma", "beta", "epsilon"})
      if (Value* v = op->input(param)) args.emplace_back(param, v);
    const Op* made = MOKA_TRY(b.append({"moka_batch_norm_training", std::move(args), cat(op->name, "_of_batch")}));
    const double unbiased = momentum * static_cast<double>(n) / static_cast<double>(n - 1);
    for (size_t i = 0; i < std::size(kStatistics); i++) {
      Value* running = op->input(kStatistics[i]);
      out.push_back({running->producer()->name,
                     MOKA_TRY(moved(b, running, made->output(i + 1), 1 - momentum, i == 0 ? momentum : unbiased))});
    }
    Function::replace_all_uses(op->output(), made->output());
    made->output()->name = std::exchange(op->output()->name, {});
    op->parent()->erase(op);
  }
  return out;
}

}  // namespace moka::training
