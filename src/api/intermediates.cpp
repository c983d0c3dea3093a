// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "api/internal.h"
#include "kernel/layout.h"

namespace moka {

namespace {

/// Reports results of operations in program order. Results from devices reach the host later.
class Observer final : public runtime::TraceSink {
 public:
  /// `direct`: called immediately, since everything runs on the host; nullptr: `report` gives the results.
  Observer(const ir::Block& body, const Intermediate* direct) : direct_(direct) {
    size_t n = 0;
    for (const auto& op : body.ops()) number(*op, n++);
  }
  void step(const plan::Plan& plan, const plan::Step& step, double, std::span<const ir::TensorView> out) override {
    if (const auto* download = std::get_if<plan::Download>(&step)) {
      const plan::Region& region = plan.sequence.region(download->from.region);
      const ir::Value* value = plan.sequence.place(region.downloads[download->from.index]).value;
      if (value != nullptr) add(value->producer(), value, plan.sequence.place(download->to), out[0]);
    } else if (const plan::Call* call = plan::call_of(step)) {
      for (size_t i = 0; i < out.size(); i++) {
        const plan::Place& p = plan.sequence.place(call->out[i]);
        add(call->op, p.value, p, out[i]);
      }
    }
  }
  void restart() override { seen_.clear(); }
  void report(const Intermediate& observe) {
    std::stable_sort(seen_.begin(), seen_.end(), [](const Seen& a, const Seen& b) { return a.order < b.order; });
    for (const Seen& s : seen_) observe(s.op->name, s.value != nullptr ? s.value->name : s.op->name, s.array);
  }

 private:
  struct Seen {
    size_t order;
    const ir::Op* op;
    const ir::Value* value;
    MultiArray array;
  };
  void number(const ir::Op& op, size_t n) {
    order_[&op] = n;
    for (size_t b = 0; b < op.block_count(); b++)
      for (const auto& inner : op.block(b)->ops()) number(*inner, n);
  }
  void add(const ir::Op* op, const ir::Value* value, const plan::Place& p, ir::TensorView view) {
    if (op == nullptr || p.device != nullptr || !p.type.is_tensor() || p.type.dtype() == ir::DType::string) return;
    ir::Tensor plain;
    const kernel::Layout layout = p.layout;
    if (!layout.is_row_major()) {
      auto t = ir::Tensor::zeros(view.dtype, view.shape);
      if (!t.ok()) return;
      plain = std::move(t).value();
      kernel::convert_layout(view, layout, plain.view(), {}, 0, kernel::convert_tiles(view.shape, layout, {}));
      view = plain.view();
    }
    auto array = api::to_array(view);
    if (!array.ok()) return;
    if (direct_ != nullptr) return (*direct_)(op->name, value != nullptr ? value->name : op->name, *array);
    seen_.push_back({order_.at(op), op, value, std::move(*array)});
  }

  const Intermediate* direct_;
  std::map<const ir::Op*, size_t> order_;  ///< position of the outermost operation that contains each operation
  std::vector<Seen> seen_;
};
}  // namespace

Features Model::intermediates(const Features& inputs, const Intermediate& observe,
                              const PredictionOptions& options) const {
  Features outputs;
  Impl::Asked asked;
  std::vector<ir::Type> types;
  const auto runs = api::unwrap(impl_->choose(inputs, options.outputs, asked, types));
  const bool on_host = plan::accelerators(runs->plan_options()).empty();
  Observer observer(runs->ir().body(), on_host ? &observe : nullptr);
  api::unwrap(impl_->predict(inputs, outputs, options, &observer, nullptr, true));
  observer.report(observe);
  return outputs;
}
}  // namespace moka
