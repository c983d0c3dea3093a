// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "api/internal.h"

namespace moka {

namespace {
constexpr size_t kMostSelections = 8;
}  // namespace

api::Variants::Made api::Variants::get(const Key& key, const std::function<Made()>& make) {
  std::shared_ptr<Variant> variant;
  {
    const std::lock_guard lock(mutex_);
    auto it = std::find_if(all_.begin(), all_.end(), [&](const auto& v) { return v->key == key; });
    if (it != all_.end()) {
      std::rotate(it, it + 1, all_.end());
    } else {
      const auto selects = [](const auto& v) { return !v->key.outputs.empty() || !v->key.sizes.empty(); };
      if ((!key.outputs.empty() || !key.sizes.empty()) &&
          std::count_if(all_.begin(), all_.end(), selects) >= std::ptrdiff_t{kMostSelections})
        all_.erase(std::find_if(all_.begin(), all_.end(), selects));
      all_.push_back(std::make_shared<Variant>());
      all_.back()->key = key;
    }
    variant = all_.back();
  }
  std::call_once(variant->once, [&] { variant->model = make(); });
  if (variant->model->ok()) return variant->model->value();
  const Error& e = variant->model->error();
  return fail(e.code(), e.to_string());
}

Status Model::Impl::check_outputs(const std::vector<std::string>& names) const {
  const auto& described = model->function().outputs;
  for (const std::string& name : names) {
    if (std::any_of(described.begin(), described.end(), [&](const auto& f) { return f.name == name; })) continue;
    std::string all;
    for (const auto& f : described) all += cat(all.empty() ? "'" : ", '", f.name, "'");
    return fail(ErrorCode::invalid_argument, "output '", name, "': not an output of the model; expected ", all);
  }
  return {};
}

Result<std::shared_ptr<const runtime::Model>> Model::Impl::model_for(const api::Leading& leading,
                                                                     const std::vector<std::string>& outputs,
                                                                     const api::Variants::Sizes& sizes) const {
  const bool batches = leading.batch != 1, sequences = leading.sequence != 1 || sequences_only;
  const bool is_default =
      std::all_of(sizes.begin(), sizes.end(), [&](const auto& s) { return sized.at(s.first).size == s.second; });
  const bool own = !batches && sequences == sequences_only && is_default;
  if (own && outputs.empty()) return model;
  MOKA_TRY(check_outputs(outputs));
  const auto& described = model->function().outputs;
  api::Variants::Key key{sequences, batches, false, {}, sizes};
  for (const auto& f : described)
    if (std::find(outputs.begin(), outputs.end(), f.name) != outputs.end()) key.outputs.push_back(f.name);
  if (key.outputs.size() == described.size()) key.outputs.clear();
  if (own && key.outputs.empty()) return model;
  auto made = variants.get(key, [&]() -> api::Variants::Made {
    runtime::CompileOptions options = compile_options;
    options.outputs = key.outputs;
    import::ImportedModel again =
        MOKA_TRY(source->import({compile_options.plan.budget, sequences, batches, false, key.sizes}));
    return std::shared_ptr<const runtime::Model>(MOKA_TRY(runtime::Model::compile(std::move(again), options)));
  });
  if (made.ok() || own) return made;
  const bool is_rank5 = batches || sequences != sequences_only;
  return fail(made.error().code(), is_rank5 ? "inputs of rank 5: " : "inputs of these sizes: ", made.error().message());
}

}  // namespace moka
