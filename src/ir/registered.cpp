// SPDX-License-Identifier: Apache-2.0
#include "ir/registered.h"

#include <algorithm>
#include <mutex>
#include <unordered_map>

#include "base/bytes.h"

namespace moka::ir {

namespace {

struct Instances {
  struct Entry {
    std::weak_ptr<const Registered> instance;
    std::shared_ptr<const RegisteredSource> source;
  };
  std::mutex mutex;
  int64_t last = 0;
  std::unordered_map<int64_t, Entry> alive;
};
/// Never freed: programs may outlive static objects.
Instances& instances() {
  static auto& all = *new Instances;
  return all;
}

/// The number and what it names, freed together.
struct Handle {
  int64_t number = 0;
  std::shared_ptr<const Registered> instance;
  ~Handle() {
    Instances::Entry entry;  // its destructor frees constants: not under the lock
    const std::lock_guard lock(instances().mutex);
    if (const auto it = instances().alive.find(number); it != instances().alive.end()) {
      entry = std::move(it->second);
      instances().alive.erase(it);
    }
  }
};

struct Classes {
  std::mutex mutex;
  RegisteredClasses all;
};
Classes& classes() {
  static auto& all = *new Classes;
  return all;
}

}  // namespace

Result<std::optional<RegisteredShader>> Registered::shader(std::span<const Type>, std::span<const Type>) const {
  return std::optional<RegisteredShader>();
}

Tensor registered_handle(std::shared_ptr<const Registered> instance, std::shared_ptr<const RegisteredSource> source) {
  auto handle = std::make_shared<Handle>();
  handle->instance = std::move(instance);
  {
    const std::lock_guard lock(instances().mutex);
    handle->number = ++instances().last;
    instances().alive[handle->number] = {handle->instance, std::move(source)};
  }
  const Bytes bytes{std::as_bytes(std::span(&handle->number, 1)), handle};
  return Tensor::wrap(DType::int64, {}, bytes).value();
}

Result<std::shared_ptr<const Registered>> registered_instance(const TensorView& handle) {
  const int64_t number = load_i64(handle, 0);
  {
    const std::lock_guard lock(instances().mutex);
    if (const auto it = instances().alive.find(number); it != instances().alive.end())
      if (auto instance = it->second.instance.lock()) return instance;
  }
  return fail(ErrorCode::not_found, "registered instance ", number,
              ": expected one that this process has made, got a number that names none");
}

std::shared_ptr<const RegisteredSource> registered_source(const Op& op) {
  if (op.type_name() != "moka_registered") return nullptr;
  const Value* handle = op.input("instance");
  if (handle == nullptr || handle->constant() == nullptr) return nullptr;
  const int64_t number = load_i64(handle->constant()->tensor.view(), 0);
  const std::lock_guard lock(instances().mutex);
  const auto it = instances().alive.find(number);
  return it == instances().alive.end() ? nullptr : it->second.source;
}

Result<std::shared_ptr<const Registered>> registered_instance(const OpCall& call) {
  const TensorView* handle = call.value("instance");
  if (handle == nullptr || handle->count() != 1) return call.error("instance", "one known number", "something else");
  return registered_instance(*handle);
}

Status run_registered(const Registered& instance, std::span<const TensorView> in, std::span<const TensorView> out) {
  const auto types_of = [](std::span<const TensorView> views) {
    std::vector<Type> types;
    for (const TensorView& v : views) types.push_back(v.dtype == DType::none ? Type() : Type::tensor(v.dtype, v.shape));
    return types;
  };
  const RegisteredPlan plan = MOKA_TRY(instance.plan(types_of(in), types_of(out), 1));
  if (plan.channels_last && std::any_of(in.begin(), in.end(), [](const TensorView& v) { return v.shape.rank() >= 3; }))
    return fail(ErrorCode::unsupported, instance.what(), ": channels last, which only the device 'cpu' gives");
  constexpr size_t kAlignment = 64;
  std::vector<std::byte> memory(plan.scratch + plan.thread_scratch + 2 * kAlignment);
  const auto aligned = [](std::byte* p) {
    const auto address = reinterpret_cast<uintptr_t>(p);
    return p + (kAlignment - address % kAlignment) % kAlignment;
  };
  std::byte* scratch = aligned(memory.data());
  return instance.run(
      {in, out, scratch, plan.scratch, aligned(scratch + plan.scratch), plan.thread_scratch, 0, plan.tiles, 0});
}

void register_class(RegisteredKind kind, const std::string& name, RegisteredClass entry) {
  auto made = std::make_shared<const RegisteredClass>(std::move(entry));
  std::shared_ptr<const RegisteredClass> before;  // its destructor may call other code: not under the lock
  const std::lock_guard lock(classes().mutex);
  auto& place = classes().all[{kind, name}];
  before = std::exchange(place, std::move(made));
}

bool unregister_class(RegisteredKind kind, std::string_view name) {
  std::shared_ptr<const RegisteredClass> before;
  const std::lock_guard lock(classes().mutex);
  const auto it = classes().all.find({kind, std::string(name)});
  if (it == classes().all.end()) return false;
  before = std::move(it->second);
  classes().all.erase(it);
  return true;
}

std::shared_ptr<const RegisteredClass> registered_class(RegisteredKind kind, std::string_view name) {
  const std::lock_guard lock(classes().mutex);
  const auto it = classes().all.find({kind, std::string(name)});
  return it == classes().all.end() ? nullptr : it->second;
}

RegisteredClasses registered_classes() {
  const std::lock_guard lock(classes().mutex);
  return classes().all;
}

void set_registered_classes(RegisteredClasses all) {
  const std::lock_guard lock(classes().mutex);
  classes().all.swap(all);  // the destructors of the former ones may call other code: not under the lock
}

std::vector<std::string> registered_names(RegisteredKind kind) {
  const std::lock_guard lock(classes().mutex);
  std::vector<std::string> out;
  for (const auto& [key, entry] : classes().all)
    if (key.first == kind) out.push_back(key.second);
  return out;
}

}  // namespace moka::ir
