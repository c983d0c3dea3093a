// SPDX-License-Identifier: Apache-2.0
#include <cstdlib>
#include <new>
#include <thread>

#include "devices/graph_util.h"

namespace {
thread_local bool counting = false;
thread_local int64_t allocations = 0;

void* take(size_t n) {
  if (counting) allocations++;
  return std::malloc(n);
}
/// Never inlined, because GCC 12 warns when it sees a free next to an operator new.
[[gnu::noinline]] void give_back(void* p) noexcept { std::free(p); }
}  // namespace

// All forms of new that match the delete below. AddressSanitizer would use its own for a missing one.
void* operator new(size_t n, const std::nothrow_t&) noexcept { return take(n); }
void* operator new[](size_t n, const std::nothrow_t&) noexcept { return take(n); }
void* operator new(size_t n) {
  if (void* p = take(n)) return p;
  throw std::bad_alloc();
}
void* operator new[](size_t n) {
  if (void* p = take(n)) return p;
  throw std::bad_alloc();
}
void operator delete(void* p) noexcept { give_back(p); }
void operator delete(void* p, size_t) noexcept { give_back(p); }
void operator delete[](void* p) noexcept { give_back(p); }
void operator delete[](void* p, size_t) noexcept { give_back(p); }

namespace moka::devices_test {
namespace {

using namespace ir;

Graph network(int64_t channels) {
  Graph g;
  Value* x = g.input({1, 3, 21, 23});
  Value* a = g.op(
      "conv",
      {{"x", x}, {"weight", g.random({channels, 3, 3, 3})}, {"strides", Tensor::i32({2, 2})}, {"pad_type", "same"}});
  a = g.op("silu", {{"x", a}});
  Value* b = g.op("conv", {{"x", a},
                           {"weight", g.random({channels, 1, 3, 3})},
                           {"groups", static_cast<int>(channels)},
                           {"pad_type", "same"}});
  b = g.op("add", {{"x", a}, {"y", b}});
  b = g.op("reduce_mean", {{"x", b}, {"axes", Tensor::i32({2, 3})}, {"keep_dims", false}});
  b = g.op("linear", {{"x", b}, {"weight", g.random({10, channels})}, {"bias", g.random({10})}});
  g.function().body().set_outputs({g.op("softmax", {{"x", b}})});
  return g;
}

/// Threads that run frames of one plan at the same time get the same results as a single thread.
TEST(CpuSharing, ManySessions) {
  Graph g = network(17);
  const plan::PlanOptions o = options(true, 1);
  const std::vector<Type> types{g.function().body().inputs()[0]->type};
  auto plan = plan::plan_block(g.function().body(), types, nullptr, o);
  ASSERT_TRUE(plan.ok()) << plan.error().to_string();
  auto expected = run(g.function(), g.inputs(), true, 1);
  ASSERT_TRUE(expected.ok());
  std::atomic<int> wrong = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; t++)
    threads.emplace_back([&] {
      runtime::ExecContext context;
      context.options = &o;
      auto frame = runtime::Frame::make(*plan, nullptr, context);
      if (!frame.ok()) return void(wrong++);
      (*frame)->set_input(0, g.inputs()[0].data());
      for (int n = 0; n < 50; n++) {
        if (!(*frame)->run().ok()) wrong++;
        for (int64_t i = 0; i < 10; i++)
          wrong += (*frame)->output(0).as<float>()[i] != expected->outputs[0].as<float>()[i];
      }
    });
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(wrong, 0);
}

/// Allocations of a prediction other than the first, on the calling thread.
int64_t allocations_of(Graph& g) {
  const plan::PlanOptions o = options(true, 1);
  std::vector<Type> types;
  for (const auto& v : g.function().body().inputs()) types.push_back(v->type);
  auto plan = plan::plan_block(g.function().body(), types, nullptr, o);
  if (!plan.ok()) return -1;
  runtime::ExecContext context;
  context.options = &o;
  auto frame = runtime::Frame::make(*plan, nullptr, context);
  if (!frame.ok()) return -1;
  for (size_t i = 0; i < types.size(); i++) (*frame)->set_input(i, g.inputs()[i].data());
  (void)(*frame)->run();
  allocations = 0;
  counting = true;
  (void)(*frame)->run();
  counting = false;
  return allocations;
}

TEST(CpuSharing, OwnKernelsDoNotAllocate) {
  Graph g;
  Value* x = g.input({2, 16, 9, 9});
  Value* y = g.op("softmax", {{"x", g.op("add", {{"x", g.op("gelu", {{"x", x}})}, {"y", x}})}});
  y = g.op("layer_norm", {{"x", y}, {"axes", Tensor::i32({-1})}});
  g.function().body().set_outputs({g.op("reduce_mean", {{"x", y}, {"axes", Tensor::i32({2, 3})}})});
  EXPECT_EQ(allocations_of(g), 0);
}

/// oneDNN builds its argument table on every execution. Moka must add nothing that grows with the network.
TEST(CpuSharing, OneDnnAllocatesOnlyItsArgumentTable) {
  Graph g = network(32);
  const int64_t n = allocations_of(g);
  EXPECT_GE(n, 0);
  EXPECT_LE(n, 3 * 8) << "three primitives";
}

}  // namespace
}  // namespace moka::devices_test
