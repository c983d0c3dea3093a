// SPDX-License-Identifier: Apache-2.0
#include "plan/prepare.h"

#include <algorithm>
#include <atomic>
#include <new>
#include <thread>

#include "base/clock.h"
#include "base/file_reader.h"
#include "base/memory.h"
#include "base/watch.h"
#include "kernel/fault.h"
#include "kernel/memory.h"
#include "kernel/parallel.h"
#include "plan/plan_cache.h"
#include "trace/trace.h"

namespace moka::plan {

namespace {

class Context final : public kernel::PrepareContext {
 public:
  /// If `packs` is false, weights that are not packed yet are an error.
  Context(const Preparation& p, const PlanOptions& options, FileReader* reader, bool packs)
      : preparation_(p), options_(options), reader_(reader), packs_(packs) {
    p.choice->packed.clear();
  }

  Result<ir::TensorView> constant(int arg) override {
    const Preparation::Input& in = input(arg);
    if (!packs_) return not_packed();
    if (in.value == nullptr && in.tensor.empty_handle())
      return fail(ErrorCode::internal, "a kernel prepares an input that is not constant");
    held_.push_back(in.tensor.empty_handle() ? MOKA_TRY(options_.constants->get(*in.value, false)) : in.tensor);
    return held_.back().view();
  }

  Result<std::shared_ptr<const std::byte>> pack(
      int arg, std::string_view key, size_t bytes,
      const std::function<Status(const ir::TensorView&, std::byte*)>& fill) override {
    tell(arg, key, bytes);
    if (const Preparation::Input& in = input(arg); in.pooled) {
      if (!may_pack(in, key, bytes)) return not_packed();
      return options_.constants->pack(*in.value, key, bytes, fill, reader_);
    }
    if (!packs_) return not_packed();
    const ir::TensorView v = MOKA_TRY(constant(arg));
    if (options_.budget) MOKA_TRY(options_.budget->take(bytes, "a packed constant"));
    std::shared_ptr<std::byte> to = allocate_large(bytes + 64);
    if (to == nullptr) return fail(ErrorCode::out_of_budget, "no memory for ", bytes, " bytes of a packed constant");
    MOKA_TRY(fill(v, to.get()));
    return to;
  }

  Result<std::shared_ptr<const std::byte>> pack_stored(int arg, std::string_view key, size_t bytes,
                                                       const std::function<Status(std::byte*)>& fill) override {
    const Preparation::Input& in = input(arg);
    if (!in.pooled) return fail(ErrorCode::internal, "a kernel packs an input that is not stored");
    tell(arg, key, bytes);
    if (!may_pack(in, key, bytes)) return not_packed();
    return options_.constants->pack_stored(*in.value, key, bytes, fill);
  }

  Result<std::shared_ptr<const kernel::Buffer>> upload(
      int arg, std::string_view key, size_t bytes,
      const std::function<Status(const ir::TensorView&, std::byte*)>& fill) override {
    return on_device(arg, key, bytes, [&](std::byte* to) -> Status {
      const ir::TensorView v = MOKA_TRY(constant(arg));
      return fill(v, to);
    });
  }

  Result<std::shared_ptr<const kernel::Buffer>> upload_stored(int arg, std::string_view key, size_t bytes,
                                                              const std::function<Status(std::byte*)>& fill) override {
    if (!input(arg).pooled) return fail(ErrorCode::internal, "a kernel uploads an input that is not stored");
    return on_device(arg, key, bytes, fill);
  }

 private:
  static Error not_packed() { return fail(ErrorCode::internal, "weights that are not packed yet"); }
  bool may_pack(const Preparation::Input& in, std::string_view key, size_t bytes) const {
    return packs_ || options_.constants->is_packed(*in.value, key, bytes);
  }

  Result<std::shared_ptr<const kernel::Buffer>> on_device(int arg, std::string_view key, size_t bytes,
                                                          const ConstantPool::FillStored& fill) {
    const kernel::Memory* memory = preparation_.device->memory();
    if (memory == nullptr) return fail(ErrorCode::internal, "a kernel uploads to a device in host memory");
    std::shared_ptr<const kernel::Buffer> made;
    if (const Preparation::Input& in = input(arg); in.pooled)
      made = MOKA_TRY_ON(options_.constants->upload(*in.value, *memory, key, bytes, fill), *preparation_.device);
    else
      made = MOKA_TRY_ON(upload_to(*memory, bytes, fill), *preparation_.device);
    tell(arg, key, bytes, made.get());
    return made;
  }

  void tell(int arg, std::string_view key, size_t bytes, const kernel::Buffer* buffer = nullptr) {
    preparation_.choice->packed.push_back({arg, std::string(key), bytes, buffer});
  }
  const Preparation::Input& input(int arg) const { return preparation_.inputs[static_cast<size_t>(arg)]; }

  const Preparation& preparation_;
  const PlanOptions& options_;
  FileReader* const reader_;
  const bool packs_;
  std::vector<ir::Tensor> held_;
};

Status prepare(Preparation& p, Context context) {
  try {
    MOKA_TRY_IN(p.choice->prepare(context), cat("operation '", p.op->name, "' (", p.op->type_name(), ")"));
  } catch (const std::bad_alloc&) {
    return fail(ErrorCode::out_of_budget, "no memory to prepare operation '", p.op->name, "'");
  }
  return {};
}

/// Prepares the kernels on as many threads as the options allow.
Status prepare_all(std::vector<Preparation>& all, const PlanOptions& options) {
  std::vector<Status> results(all.size());
  FileReader reader;
  const Watch* const watch = Watch::current();
  const std::thread::id caller = std::this_thread::get_id();
  std::atomic<size_t> done{0};
  kernel::parallel_for(options.threads, static_cast<int64_t>(all.size()), [&](int64_t i, int) {
    Status& result = results[static_cast<size_t>(i)];
    if (std::this_thread::get_id() == caller)
      result = Watch::at("pack", done, all.size());
    else if (watch != nullptr)
      result = watch->stop().check();
    Preparation& p = all[static_cast<size_t>(i)];
    if (result.ok()) result = prepare(p, Context(p, options, &reader, true));
    done++;
  });
  for (Status& s : results) MOKA_TRY(std::move(s));
  return {};
}

}  // namespace

Status prepare_kernel(Preparation& p, const PlanOptions& options, FileReader* reader) {
  MOKA_TRY(prepare(p, Context(p, options, reader, true)));
  p.choice->prepare = nullptr;
  return {};
}

Status prepare_from_packed(Preparation& p, const PlanOptions& options) {
  MOKA_TRY(prepare(p, Context(p, options, nullptr, false)));
  p.choice->prepare = nullptr;
  return {};
}

Status prepare_kernels(std::vector<Preparation>& all, const PlanOptions& options) {
  if (all.empty()) return {};
  const trace::Span span(trace::Lane::activity, [&] {
    return trace::label("prepare kernels", "prepare kernels", {{"operations", all.size()}});
  });
  const auto start = Clock::now();
  Status status = prepare_all(all, options);
  if (options.constants) options.constants->add_prepare_seconds(seconds_since(start));
  MOKA_TRY(std::move(status));
  if (!options.renewable)
    for (const Preparation& p : all) p.choice->prepare = nullptr;
  return {};
}

Status renew(const Plan& plan, const PlanOptions& options) {
  const trace::Span span(trace::Lane::activity, "prepare kernels again");
  if (plan.renewable != nullptr) MOKA_TRY(prepare_all(*plan.renewable, options));
  const auto renew_all = [&](const std::shared_ptr<PlanCache>& plans) -> Status {
    if (plans == nullptr) return {};
    for (const auto& inner : plans->snapshot()) MOKA_TRY(renew(*inner, options));
    return {};
  };
  const auto renew_blocks = [&](const auto& step) -> Status {
    if (const Control* control = control_of(step))
      for (const auto& block : control->blocks) MOKA_TRY(renew_all(block));
    return {};
  };
  for (const Step& step : plan.sequence.steps) MOKA_TRY(renew_blocks(step));
  if (plan.sequence.pending) MOKA_TRY(renew_blocks(*plan.sequence.pending));
  return renew_all(plan.continuations);
}

}  // namespace moka::plan
