// SPDX-License-Identifier: Apache-2.0
#include "linting/lint.h"

namespace moka::linting {
namespace {

constexpr int kFew = 2;  ///< a block of a net may have one for a reason

bool is_window(const ir::Op& op) {
  return is_op(&op, "conv") || is_op(&op, "conv_transpose") || is_op(&op, "max_pool") || is_op(&op, "avg_pool");
}

void check_channels_last(const Subject& subject, Report& report) {
  for (const FunctionView& view : subject.functions) {
    int64_t all = 0, between = 0;
    const ir::Op* first = nullptr;
    for_each_op(view, [&](const ir::Op& op) {
      if (!is_window(op)) return;
      ++all;
      const ir::Op* before = op.input("x")->producer();
      bool after = op.output()->users().size() == 1 && is_op(op.output()->users()[0], "transpose");
      if (!is_op(before, "transpose") || !after) return;
      ++between;
      if (first == nullptr) first = &op;
    });
    if (between >= kFew && 2 * between >= all)
      report.add(Level::warning, place_of(*first),
                 {"convolutions and pools stand between transposes, each of which is a dispatch that moves all data",
                  cat(between, " of ", all), ""},
                 &view);
  }
}

}  // namespace

Rule rule_channels_last() {
  return {"channels-last", Level::warning, "Nets of which most convolutions and pools stand between two transposes",
          "Keep the whole net in the order N, C, H, W and transpose its input once.", check_channels_last};
}

}  // namespace moka::linting
