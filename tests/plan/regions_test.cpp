// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <future>

#include "devices/reference/device.h"
#include "devices/simulator/device.h"
#include "ir/text_reader.h"
#include "plan/plan.h"

/// The contents of plans for a device with its own memory. Operations whose names begin with "d" are pinned to it,
/// and those with "e" to another one.
namespace moka::plan {
namespace {

class Regions : public ::testing::Test {
 protected:
  const Sequence& planned(const std::string& inputs, const std::string& body, const std::string& outputs) {
    program_ = ir::read_text(
                   "program(1.0)\n{\n func main<ios18>(" + inputs + ") {\n" + body + "\n } -> (" + outputs + ");\n}\n",
                   ops::table(), {})
                   .value();
    const kernel::Device* device = &devices::simulator::device();
    const kernel::Device* host = &devices::reference::device();
    const kernel::Device* second = devices::simulator::devices()[1];
    options_.devices = {device, second, host};
    options_.pinned_device = [=](const ir::Op& op) {
      return op.name.starts_with("d") ? device : op.name.starts_with("e") ? second : host;
    };
    options_.constants = std::make_shared<ConstantPool>(nullptr);
    const ir::Block& block = program_.functions[0]->body();
    std::vector<ir::Type> types;
    for (const auto& v : block.inputs()) types.push_back(v->type);
    plan_ = plan_block(block, types, nullptr, options_).value();
    return plan_->sequence;
  }

  /// The host's view of a sequence: "up launch run:h wait down".
  static std::string text(const Sequence& sequence) {
    std::string out;
    constexpr const char* kWords[] = {"run:", "placed", "convert", "cond", "loop",
                                      "up",   "launch", "wait",    "down", "transfer"};
    for (const Step& s : sequence.steps) {
      out += (out.empty() ? "" : " ") + std::string(kWords[s.index()]);
      if (const plan::Run* run = std::get_if<plan::Run>(&s)) out += run->op->name;
    }
    return out;
  }

  ir::Program program_;
  PlanOptions options_;
  std::shared_ptr<const Plan> plan_;
};

std::string op(const std::string& name, const std::string& type, const std::string& args) {
  return "tensor<fp32, [8]> " + name + " = " + type + "(" + args + ")[name = string(\"" + name + "\")];\n";
}

TEST_F(Regions, AChainIsOneSubmission) {
  const Sequence& p = planned("tensor<fp32, [8]> x",
                              op("d1", "relu", "x = x") + op("d2", "exp", "x = d1") + op("d3", "sin", "x = d2"), "d3");
  EXPECT_EQ(text(p), "up launch wait down");
  ASSERT_EQ(p.regions.size(), 1u);
  EXPECT_EQ(p.regions[0].steps.size(), 3u);
  ASSERT_EQ(plan_->memory.devices.size(), 1u);
  EXPECT_GT(plan_->memory.devices[0].bytes, 0u);
}

TEST_F(Regions, AHostOperationBetweenEndsARegion) {
  const Sequence& p = planned("tensor<fp32, [8]> x",
                              op("d1", "relu", "x = x") + op("h", "exp", "x = d1") + op("d2", "sin", "x = h"), "d2");
  EXPECT_EQ(text(p), "up launch wait down run:h up launch wait down");
  EXPECT_EQ(p.regions.size(), 2u);
}

TEST_F(Regions, TheHostWorksWhileARegionRuns) {
  const Sequence& p =
      planned("tensor<fp32, [8]> x",
              op("h", "exp", "x = x") + op("d1", "relu", "x = x") + op("sum", "add", "x = d1, y = h"), "sum");
  EXPECT_EQ(text(p), "up launch run:h wait down run:sum");
}

TEST_F(Regions, AValueGoesFromOneDeviceToAnotherInOneStep) {
  const Sequence& p =
      planned("tensor<fp32, [8]> x",
              op("d1", "relu", "x = x") + op("e1", "exp", "x = d1") + op("d2", "add", "x = e1, y = d1"), "d2");
  EXPECT_EQ(text(p), "up launch wait transfer launch wait transfer launch wait down");
  const auto on_host = [](const Place& place) { return place.device == nullptr; };
  EXPECT_EQ(std::count_if(p.places.begin(), p.places.end(), on_host), 2) << "only x and d2";
}

TEST_F(Regions, WhatTheHostHasIsUploadedToAnotherDevice) {
  const Sequence& p =
      planned("tensor<fp32, [8]> x",
              op("d1", "relu", "x = x") + op("h", "sin", "x = d1") + op("e1", "add", "x = d1, y = h"), "e1");
  EXPECT_EQ(text(p), "up launch wait down run:h up up launch wait down");
}

TEST_F(Regions, AHostOperationAndADeviceReadOneResult) {
  const Sequence& p =
      planned("tensor<fp32, [8]> x",
              op("d1", "relu", "x = x") + op("e1", "exp", "x = d1") + op("h", "add", "x = e1, y = d1"), "h");
  EXPECT_EQ(p.regions[0].downloads.size(), 1u);
  EXPECT_EQ(text(p), "up launch wait transfer launch wait down down run:h");
}

TEST_F(Regions, AValueCrossesOnce) {
  const Sequence& p = planned("tensor<fp32, [8]> x",
                              op("d1", "relu", "x = x") + op("d2", "add", "x = d1, y = x") + op("h1", "exp", "x = d2") +
                                  op("h2", "sin", "x = d2"),
                              "h1, h2");
  EXPECT_EQ(text(p), "up launch wait down run:h1 run:h2");
}

TEST_F(Regions, BlocksFindValuesOnTheHost) {
  const Sequence& p = planned("tensor<fp32, [8]> x, tensor<bool, []> more",
                              op("d1", "relu", "x = x") +
                                  "tensor<fp32, [8]> y = cond(pred = more)[name = string(\"choice\")] {\n"
                                  "block a() { tensor<fp32, [8]> u = exp(x = d1); } -> (u);\n"
                                  "block b() { tensor<fp32, [8]> v = sin(x = d1); } -> (v);\n};\n",
                              "y");
  EXPECT_EQ(text(p), "up launch wait down cond");
}

TEST_F(Regions, WhatADeviceRefusesRunsOnTheHost) {
  const Sequence& p =
      planned("tensor<fp32, [8]> x",
              op("d1", "random_normal", "shape = tensor<int32, [1]>([8])") + op("d2", "add", "x = d1, y = x"), "d2");
  EXPECT_EQ(text(p), "run:d1 up up launch wait down");
  const plan::Run& d1 = std::get<plan::Run>(p.steps[0]);
  ASSERT_NE(d1.bids, nullptr);
  ASSERT_EQ(d1.bids->size(), 3u) << "the host and both devices";
  EXPECT_EQ((*d1.bids)[1].refusal, "simulator.reference: state that the host keeps");
}

std::string read_state(const std::string& name) { return op(name, "read_state", "input = s"); }
std::string write_state(const std::string& data, const std::string& state = "s") {
  return "write_state(input = " + state + ", data = " + data + ")[name = string(\"d" + state + data + "\")];\n";
}

/// Between operations of a device a state is an ordinary value, which is stored once, at the end.
TEST_F(Regions, AStateCrossesOnceEachWay) {
  const Sequence& p =
      planned("state<tensor<fp32, [8]>> s, tensor<fp32, [8]> x",
              read_state("d1") + op("d2", "add", "x = d1, y = x") + write_state("d2") + read_state("d3") +
                  op("d4", "mul", "x = d3, y = x") + write_state("d4") + read_state("d5") + op("d6", "exp", "x = d5"),
              "d6");
  EXPECT_EQ(text(p), "up up launch wait down down convert");
  ASSERT_EQ(p.regions.size(), 1u);
  EXPECT_EQ(p.regions[0].steps.size(), 3u);
}

/// A prediction returns a state's content from the time when it was read.
TEST_F(Regions, AStateThatIsReturnedIsCopiedBeforeItChanges) {
  const Sequence& p = planned("state<tensor<fp32, [8]>> s, tensor<fp32, [8]> x",
                              read_state("d0") + op("d1", "add", "x = d0, y = x") + write_state("d1"), "d0");
  EXPECT_TRUE(p.place(p.place(p.outputs[0]).root).is<InArena>());
}

/// Two states that exchange their contents.
TEST_F(Regions, AStateThatIsGivenToAnotherIsTakenFirst) {
  const Sequence& p = planned("state<tensor<fp32, [8]>> s, state<tensor<fp32, [8]>> t, tensor<fp32, [8]> x",
                              read_state("d1") + op("d2", "read_state", "input = t") +
                                  op("d3", "add", "x = d1, y = d2") + write_state("d2") + write_state("d1", "t"),
                              "d3");
  std::vector<std::string> copies;
  const auto kind = [&](int i) {
    return p.place(i).is<External>() ? "state" : p.place(i).is<InArena>() ? "arena" : "?";
  };
  for (const Step& s : p.steps)
    if (const Convert* convert = std::get_if<Convert>(&s))
      copies.push_back(cat(kind(convert->from), " to ", kind(convert->to)));
  // A value that is read after its state has changed is already a copy.
  EXPECT_EQ(copies, (std::vector<std::string>{"state to arena", "arena to state", "arena to state"}));
}

TEST_F(Regions, WithoutAcceleratorsTheHostRunsAll) {
  options_.devices = {&devices::reference::device()};
  EXPECT_TRUE(accelerators(options_).empty());
  EXPECT_EQ(host_devices(options_).size(), 1u);
}

/// In memory that host and device share, an upload is written at once. Its bytes must be free from the first step of
/// every region that may still be running.
TEST(Lifetimes, OfUploadsBeginBeforeRegionsThatRun) {
  const kernel::Device* device = &devices::simulator::device();
  const auto planned = [&](bool waits) {
    Sequence sequence;
    for (int i = 0; i < 6; i++) {  // host: 0, 3; device: 1, 2 in region 0 and 4, 5 in region 1
      Place p;
      p.type = ir::Type::tensor(ir::DType::fp32, {8});
      p.root = i;
      if (i % 3 != 0) p.device = device;
      sequence.places.push_back(std::move(p));
    }
    plan::Run first, second;
    first.choice = second.choice = std::make_shared<kernel::KernelChoice>();
    first.in = {1}, first.out = {2};
    second.in = {4}, second.out = {5};
    sequence.regions.push_back({.device = device, .steps = {first}, .uploads = {1}, .downloads = {}});
    sequence.regions.push_back({.device = device, .steps = {second}, .uploads = {4}, .downloads = {}});
    sequence.steps = {Upload{0, {0, 0}}, Launch{0}};
    if (waits) sequence.steps.emplace_back(Wait{0});
    sequence.steps.emplace_back(Upload{3, {1, 0}});
    sequence.steps.emplace_back(Launch{1});
    return lifetimes(sequence);
  };
  const std::vector<Lifetime> running = planned(false), done = planned(true);
  EXPECT_EQ(running[4].first, 1) << "the first step of the region that runs";
  EXPECT_GT(done[4].first, done[2].last);
}

TEST(PlanCache, KnownPlansDoNotWaitForNewOnes) {
  PlanCache cache;
  const auto make = [] { return Result<std::shared_ptr<const Plan>>(std::make_shared<const Plan>()); };
  const PlanCache::Key known{ir::Type::tensor(ir::DType::fp32, {1})}, slow{ir::Type::tensor(ir::DType::fp32, {2})};
  const auto first = cache.get(known, {}, make).value();
  std::promise<void> started, finish;
  auto making = std::async(std::launch::async, [&] {
    return cache
        .get(slow, {},
             [&] {
               started.set_value();
               finish.get_future().wait();
               return make();
             })
        .value();
  });
  started.get_future().wait();
  EXPECT_EQ(cache.get(known, {}, make).value(), first);
  auto waiting = std::async(std::launch::async, [&] { return cache.get(slow, {}, make).value(); });
  finish.set_value();
  EXPECT_EQ(making.get(), waiting.get());
  EXPECT_EQ(cache.snapshot().size(), 2u);
}

TEST(PlanCache, AFailureIsNotKept) {
  PlanCache cache;
  const PlanCache::Key key{ir::Type::tensor(ir::DType::fp32, {1})};
  EXPECT_FALSE(
      cache.get(key, {}, [] { return Result<std::shared_ptr<const Plan>>(fail(ErrorCode::data, "no")); }).ok());
  EXPECT_TRUE(cache.snapshot().empty());
  EXPECT_TRUE(
      cache.get(key, {}, [] { return Result<std::shared_ptr<const Plan>>(std::make_shared<const Plan>()); }).ok());
}

}  // namespace
}  // namespace moka::plan
