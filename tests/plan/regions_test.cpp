#include <gtest/gtest.h>

#include <future>

#include "devices/reference/device.h"
#include "devices/simulator/device.h"
#include "ir/text_reader.h"
#include "plan/plan.h"

/// The contents of plans for a device with its own memory. Operations whose names begin with "d" are pinned to it.
namespace moka::plan {
namespace {

class Regions : public ::testing::Test {
 protected:
  const Plan& planned(const std::string& inputs, const std::string& body, const std::string& outputs) {
    program_ = ir::read_text(
                   "program(1.0)\n{\n func main<ios18>(" + inputs + ") {\n" + body + "\n } -> (" + outputs + ");\n}\n",
                   ops::table(), {})
                   .value();
    const kernel::Device* device = &devices::simulator::device();
    const kernel::Device* host = &devices::reference::device();
    options_.devices = {device, host};
    options_.pinned_device = [=](const ir::Op& op) { return op.name.starts_with("d") ? device : host; };
    options_.constants = std::make_shared<ConstantPool>(nullptr);
    const ir::Block& block = program_.functions[0]->body();
    std::vector<ir::Type> types;
    for (const auto& v : block.inputs()) types.push_back(v->type);
    plan_ = plan_block(block, types, nullptr, options_).value();
    return *plan_;
  }

  /// The host's view of a plan: "up submit run:h wait down".
  static std::string text(const Plan& plan) {
    std::string out;
    for (const Step& s : plan.steps) {
      std::string word;
      switch (s.kind) {
        case Step::Kind::run: word = s.region >= 0 ? "" : "run:" + s.op->name; break;
        case Step::Kind::convert: word = s.region >= 0 ? "" : "convert"; break;
        case Step::Kind::transfer:
          word = plan.places[static_cast<size_t>(s.in[0])].device == nullptr ? "up" : "down";
          break;
        case Step::Kind::submit: word = "submit"; break;
        case Step::Kind::wait: word = "wait"; break;
        case Step::Kind::cond: word = "cond"; break;
        case Step::Kind::loop: word = "loop"; break;
        case Step::Kind::placed: word = "placed"; break;
      }
      if (!word.empty()) out += (out.empty() ? "" : " ") + word;
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
  const Plan& p = planned("tensor<fp32, [8]> x",
                          op("d1", "relu", "x = x") + op("d2", "exp", "x = d1") + op("d3", "sin", "x = d2"), "d3");
  EXPECT_EQ(text(p), "up submit wait down");
  ASSERT_EQ(p.regions.size(), 1u);
  EXPECT_EQ(p.regions[0].steps.size(), 3u);
  ASSERT_EQ(p.device_arenas.size(), 1u);
  EXPECT_GT(p.device_arenas[0].bytes, 0u);
}

TEST_F(Regions, AHostOperationBetweenEndsARegion) {
  const Plan& p = planned("tensor<fp32, [8]> x",
                          op("d1", "relu", "x = x") + op("h", "exp", "x = d1") + op("d2", "sin", "x = h"), "d2");
  EXPECT_EQ(text(p), "up submit wait down run:h up submit wait down");
  EXPECT_EQ(p.regions.size(), 2u);
}

TEST_F(Regions, TheHostWorksWhileARegionRuns) {
  const Plan& p =
      planned("tensor<fp32, [8]> x",
              op("h", "exp", "x = x") + op("d1", "relu", "x = x") + op("sum", "add", "x = d1, y = h"), "sum");
  EXPECT_EQ(text(p), "up submit run:h wait down run:sum");
}

TEST_F(Regions, AValueCrossesOnce) {
  const Plan& p = planned("tensor<fp32, [8]> x",
                          op("d1", "relu", "x = x") + op("d2", "add", "x = d1, y = x") + op("h1", "exp", "x = d2") +
                              op("h2", "sin", "x = d2"),
                          "h1, h2");
  EXPECT_EQ(text(p), "up submit wait down run:h1 run:h2");
}

TEST_F(Regions, BlocksFindValuesOnTheHost) {
  const Plan& p = planned("tensor<fp32, [8]> x, tensor<bool, []> more",
                          op("d1", "relu", "x = x") +
                              "tensor<fp32, [8]> y = cond(pred = more)[name = string(\"choice\")] {\n"
                              "block a() { tensor<fp32, [8]> u = exp(x = d1); } -> (u);\n"
                              "block b() { tensor<fp32, [8]> v = sin(x = d1); } -> (v);\n};\n",
                          "y");
  EXPECT_EQ(text(p), "up submit wait down cond");
}

TEST_F(Regions, WhatADeviceRefusesRunsOnTheHost) {
  const Plan& p =
      planned("tensor<fp32, [8]> x",
              op("d1", "random_normal", "shape = tensor<int32, [1]>([8])") + op("d2", "add", "x = d1, y = x"), "d2");
  EXPECT_EQ(text(p), "run:d1 up up submit wait down");
  for (const Step& s : p.steps)
    if (s.op != nullptr && s.op->name == "d1") {
      ASSERT_NE(s.bids, nullptr);
      ASSERT_EQ(s.bids->size(), 2u);
      EXPECT_EQ((*s.bids)[1].refusal, "simulator.reference: state that the host keeps");
    }
}

std::string read_state(const std::string& name) { return op(name, "read_state", "input = s"); }
std::string write_state(const std::string& data, const std::string& state = "s") {
  return "write_state(input = " + state + ", data = " + data + ")[name = string(\"d" + state + data + "\")];\n";
}

/// Between operations of a device a state is an ordinary value, which is stored once, at the end.
TEST_F(Regions, AStateCrossesOnceEachWay) {
  const Plan& p =
      planned("state<tensor<fp32, [8]>> s, tensor<fp32, [8]> x",
              read_state("d1") + op("d2", "add", "x = d1, y = x") + write_state("d2") + read_state("d3") +
                  op("d4", "mul", "x = d3, y = x") + write_state("d4") + read_state("d5") + op("d6", "exp", "x = d5"),
              "d6");
  EXPECT_EQ(text(p), "up up submit wait down down convert");
  ASSERT_EQ(p.regions.size(), 1u);
  EXPECT_EQ(p.regions[0].steps.size(), 3u);
}

/// A prediction returns a state's content from the time when it was read.
TEST_F(Regions, AStateThatIsReturnedIsCopiedBeforeItChanges) {
  const Plan& p = planned("state<tensor<fp32, [8]>> s, tensor<fp32, [8]> x",
                          read_state("d0") + op("d1", "add", "x = d0, y = x") + write_state("d1"), "d0");
  const Place& result = p.places[static_cast<size_t>(p.outputs[0])];
  EXPECT_EQ(p.places[static_cast<size_t>(result.root)].storage, Storage::arena);
}

/// Two states that exchange their contents.
TEST_F(Regions, AStateThatIsGivenToAnotherIsTakenFirst) {
  const Plan& p = planned("state<tensor<fp32, [8]>> s, state<tensor<fp32, [8]>> t, tensor<fp32, [8]> x",
                          read_state("d1") + op("d2", "read_state", "input = t") + op("d3", "add", "x = d1, y = d2") +
                              write_state("d2") + write_state("d1", "t"),
                          "d3");
  std::vector<std::pair<Storage, Storage>> copies;
  for (const Step& s : p.steps)
    if (s.kind == Step::Kind::convert && s.region < 0)
      copies.emplace_back(p.places[static_cast<size_t>(s.in[0])].storage,
                          p.places[static_cast<size_t>(s.out[0])].storage);
  // A value that is read after its state has changed is already a copy.
  const std::pair out{Storage::external, Storage::arena}, in{Storage::arena, Storage::external};
  EXPECT_EQ(copies, (std::vector{out, in, in}));
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
    Plan plan;
    for (int i = 0; i < 6; i++) {  // host: 0, 3; device: 1, 2 in region 0 and 4, 5 in region 1
      Place p;
      p.type = ir::Type::tensor(ir::DType::fp32, {8});
      p.root = i;
      if (i % 3 != 0) p.device = device, p.region = i / 3;
      plan.places.push_back(std::move(p));
    }
    plan.regions = {{.device = device, .uploads = {1}}, {.device = device, .uploads = {4}}};
    const auto add = [&](Step::Kind kind, int region, std::vector<int> in, std::vector<int> out) {
      Step s;
      s.kind = kind;
      s.region = region;
      s.device = device;
      s.in = std::move(in);
      s.out = std::move(out);
      plan.steps.push_back(std::move(s));
    };
    add(Step::Kind::transfer, 0, {0}, {1});
    add(Step::Kind::run, 0, {1}, {2});
    add(Step::Kind::submit, 0, {}, {});
    if (waits) add(Step::Kind::wait, 0, {}, {});
    add(Step::Kind::transfer, 1, {3}, {4});
    add(Step::Kind::run, 1, {4}, {5});
    add(Step::Kind::submit, 1, {}, {});
    find_regions(plan);
    find_lifetimes(plan, nullptr);
    return plan;
  };
  const Plan running = planned(false), done = planned(true);
  EXPECT_EQ(running.places[4].first, running.regions[0].first);
  EXPECT_GT(done.places[4].first, done.places[2].last);
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
