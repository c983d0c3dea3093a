// SPDX-License-Identifier: Apache-2.0
#include "devices/graph_util.h"
#include "devices/null/device.h"
#include "devices/reference/device.h"

namespace moka::devices_test {
namespace {

TEST(Null, CopiesAndRefusesTheRest) {
  Graph g;
  ir::Value* x = g.input({2, 3});
  ir::Value* y = g.op("identity", {{"x", x}});
  g.function().body().set_outputs({y, g.op("sqrt", {{"x", g.op("square", {{"x", y}})}})});
  plan::PlanOptions o = options(false, 1);
  o.devices.insert(o.devices.begin(), &devices::null::device());
  const std::vector<ir::Type> types{x->type};
  auto plan = plan::plan_block(g.function().body(), types, nullptr, o);
  ASSERT_TRUE(plan.ok()) << plan.error().to_string();
  for (const plan::Step& s : (*plan)->sequence.steps) {
    const plan::Run* run = std::get_if<plan::Run>(&s);
    if (run == nullptr) continue;
    const bool copy = run->op->type_name() == "identity";
    EXPECT_EQ(run->device->name(), copy ? "null" : "reference");
    if (!copy) {
      ASSERT_FALSE(run->refusals.empty());
      EXPECT_EQ(run->refusals[0].reason, "null.anything: no hardware");
    }
  }
  runtime::ExecContext context;
  context.options = &o;
  auto frame = runtime::Frame::make(*plan, nullptr, context);
  ASSERT_TRUE(frame.ok());
  (*frame)->set_input(0, g.inputs()[0].data());
  ASSERT_TRUE((*frame)->run().ok());
  for (int64_t i = 0; i < 6; i++) EXPECT_EQ((*frame)->output(0).as<float>()[i], g.inputs()[0].as<float>()[i]);
}

}  // namespace
}  // namespace moka::devices_test
