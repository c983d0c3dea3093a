// SPDX-License-Identifier: Apache-2.0
#include <set>

#include "api/internal.h"
#include "base/output.h"
#include "runtime/measure.h"

namespace moka::api {

namespace {

runtime::KernelMachine machine_of(std::span<const kernel::Device* const> devices) {
  std::string all;
  for (const kernel::Device* d : devices)
    if (const std::string identity = d->identity(); !identity.empty()) all += cat(all.empty() ? "" : "; ", identity);
  return {all, std::string(kernel::build())};
}

void collect_names(const ir::Block& block, std::set<std::string_view>& names) {
  for (const auto& op : block.ops()) {
    names.insert(op->name);
    for (size_t b = 0; b < op->block_count(); b++) collect_names(*op->block(b), names);
  }
}

}  // namespace

Result<KernelCache> kernel_cache_for(const ModelConfiguration& configuration,
                                     std::span<const kernel::Device* const> devices) {
  KernelCache out;
  std::string path = configuration.kernel_cache;
  if (path.empty())
    if (const char* variable = std::getenv("MOKA_KERNEL_CACHE"); variable != nullptr) path = variable;
  if (path == "off") path.clear();
  if (path == "default") path = MOKA_TRY(runtime::default_kernel_cache());
  const bool measures = configuration.measure_kernels != MeasureKernels::no;
  if (path.empty() && !measures && configuration.pinned_kernels.empty()) return out;

  out.choices = std::make_shared<plan::KernelChoices>();
  out.choices->pins.insert(configuration.pinned_kernels.begin(), configuration.pinned_kernels.end());
  if (measures) {
    out.choices->measure = configuration.measure_kernels == MeasureKernels::all ? plan::KernelChoices::Measure::all
                                                                                : plan::KernelChoices::Measure::missing;
    out.choices->timer = runtime::kernel_timer();
    out.choices->measuring = configuration.measuring;
  }
  if (path.empty()) return out;
  if (measures) MOKA_TRY_IN(check_output(path, OutputKind::kernel_times), "kernel cache");
  out.path = path;
  out.machine = machine_of(devices);
  auto ignored = [&](const std::string& why) { out.remark = cat("kernel cache '", path, "' is not used: ", why); };
  auto text = runtime::read_kernel_cache(path);
  if (!text.ok()) {
    if (text.error().code() == ErrorCode::not_found) {
      if (!measures) out.remark = cat("kernel cache '", path, "' does not exist");
      return out;
    }
    ignored(text.error().to_string());
  } else {
    int others = 0;
    auto entries = runtime::parse_kernel_cache(*text, out.machine, &others);
    if (!entries.ok())
      ignored(entries.error().to_string());
    else if (entries->empty() && others > 0 && !measures)
      ignored("it was measured on another processor or with another build");
    else
      for (plan::Measurement& m : *entries) out.choices->add(std::move(m));
  }
  if (!out.remark.empty()) warn(out.remark);
  return out;
}

Status KernelCache::save() const {
  if (choices && choices->timer) choices->timer->rest();
  if (!choices || !choices->has_measured()) return {};
  static std::mutex mutex;  // guards reading and replacing the file
  std::lock_guard lock(mutex);
  const std::vector<plan::Measurement> made = choices->take_measured();
  return path.empty() ? Status() : runtime::update_kernel_cache(path, machine, made);
}

Status check_pins(const plan::KernelChoices& choices, const ir::Function& function) {
  if (choices.pins.empty()) return {};
  std::set<std::string_view> names;
  collect_names(function.body(), names);
  for (const auto& [name, kernel] : choices.pins)
    if (!names.contains(name) && name.find('=') == std::string::npos)
      return fail(ErrorCode::not_found, "operation '", name, "', pinned to kernel '", kernel,
                  "', is not in the optimized program: it does not exist, or was folded or fused into another");
  return {};
}

}  // namespace moka::api
