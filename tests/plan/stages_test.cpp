// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "devices/reference/device.h"
#include "devices/simulator/device.h"
#include "ir/text_reader.h"
#include "plan/plan.h"
#include "plan/text.h"

/// Text in, text out: what each stage makes of a small program, and what its check says of a broken value.
namespace moka::plan {
namespace {

using ir::DType;
using ir::Type;

/// A sum that is seen as a row, and what of it is not zero.
constexpr const char* kSum = R"(
  tensor<int32, [2]> shape = const()[name = string("shape"), val = tensor<int32, [2]>([1, -1])];
  fp32 half = const()[name = string("half"), val = fp32(0.5)];
  fp32 two = const()[name = string("two"), val = fp32(2)];
  fp32 one = mul(x = half, y = two)[name = string("one")];
  tensor<fp32, [2, 3]> sum = add(x = x, y = one)[name = string("sum")];
  tensor<fp32, [1, 6]> row = reshape(x = sum, shape = shape)[name = string("row")];
} -> (row);)";

constexpr const char* kFound = R"(
  tensor<int32, [?, 2]> found = non_zero(x = x)[name = string("found")];
  tensor<int32, [?, 2]> twice = add(x = found, y = found)[name = string("twice")];
} -> (twice);)";

constexpr const char* kBranch = R"(
  tensor<fp32, [2, 3]> y = exp(x = x)[name = string("y")];
  tensor<fp32, [2, 3]> z = cond(pred = flag)[name = string("z")] {
    block() { tensor<fp32, [2, 3]> a = sqrt(x = y)[name = string("a")]; } -> (a);
    block() { } -> (x);
  };
} -> (z);)";

constexpr const char* kCache = R"(
  tensor<fp16, [4]> old = read_state(input = cache)[name = string("old")];
  tensor<fp16, [4]> next = add(x = old, y = x)[name = string("next")];
  write_state(data = next, input = cache)[name = string("write")];
} -> (next);)";

/// One of several devices with the same kernels, which say for which of them they are asked.
class Card final : public kernel::Device {
 public:
  explicit Card(std::string_view name) : name_(name) {}
  std::string_view name() const override { return name_; }
  std::string description() const override { return "refuses everything"; }
  kernel::ComputeUnit unit() const override { return kernel::ComputeUnit::cpu; }
  int rank() const override { return 0; }
  std::span<const kernel::KernelDef> kernels() const override {
    static const kernel::KernelDef defs[] = {{"card.any", {}, [](const kernel::MatchCall& m) {
                                                return kernel::Match::no(cat("not on ", m.device->name()));
                                              }}};
    return defs;
  }

 private:
  std::string_view name_;
};

class Stages : public ::testing::Test {
 protected:
  void SetUp() override {
    options_.devices = {&devices::reference::device()};
    options_.constants = std::make_shared<ConstantPool>(nullptr);
  }
  void read(const char* body, const char* inputs = "tensor<fp32, [2, 3]> x") {
    auto program = ir::read_text(cat("program(1.3)\n{ func main<ios18>(", inputs, ") {", body, "}"), ops::table());
    ASSERT_TRUE(program.ok()) << program.error().message();
    program_ = std::move(*program);
    std::vector<Type> types;
    for (const auto& v : main().inputs()) types.push_back(v->type);
    auto made = resolve(main(), types, nullptr, *options_.constants);
    ASSERT_TRUE(made.ok()) << made.error().message();
    resolved_ = *made;
  }
  const ir::Block& main() const { return program_.functions[0]->body(); }
  Claims claims() const { return claim(*resolved_, nullptr, options_).value(); }
  Assignment assignment() const { return assign(*resolved_, claims(), options_).value(); }
  std::shared_ptr<const Plan> plan() const { return plan_resolved(resolved_, nullptr, options_, false).value(); }
  void pin_to_simulator() {
    const kernel::Device* device = &devices::simulator::device();
    options_.devices.insert(options_.devices.begin(), device);
    options_.pinned_device = [device](const ir::Op&) { return device; };
  }

  ir::Program program_;
  PlanOptions options_;
  std::shared_ptr<const Resolved> resolved_;
};

TEST_F(Stages, KernelsKnowTheDeviceThatIsAsked) {
  const Card first("card"), second("card1");
  options_.devices = {&first, &second, &devices::reference::device()};
  read(kBranch, "tensor<fp32, [2, 3]> x, bool flag");
  const Claims all = claims();
  ASSERT_TRUE(all.ops.at(0).host);
  const std::vector<Refusal>& refusals = all.ops[0].host->kernel.refusals;
  ASSERT_EQ(refusals.size(), 2u);
  EXPECT_EQ(refusals[0].reason, "card.any: not on card");
  EXPECT_EQ(refusals[1].reason, "card.any: not on card1");
}

TEST_F(Stages, ResolveFoldsConstantsAndSeesViews) {
  read(kSum);
  EXPECT_EQ(to_text(*resolved_),
            "input     x: tensor<fp32, [2, 3]>\n"
            "constant  one: tensor<fp32, []>\n"
            "constant  shape: tensor<int32, [2]>\n"
            "compute   sum: tensor<fp32, [2, 3]> = add(x=x, y=one)\n"
            "view      row: tensor<fp32, [1, 6]> = reshape(x=sum, shape=shape)\n"
            "output    row\n");
}

TEST_F(Stages, ResolveEndsWhereValuesDecideAShape) {
  read(kFound);
  EXPECT_EQ(to_text(*resolved_),
            "input     x: tensor<fp32, [2, 3]>\n"
            "pending   non_zero(x=x)\n");
  const std::vector<Type> found{Type::tensor(DType::int32, {4, 2})};
  EXPECT_EQ(to_text(*resolve_rest(*resolved_, found, *options_.constants).value()),
            "outer     x: tensor<fp32, [2, 3]>\n"
            "compute   found: tensor<int32, [4, 2]> = non_zero(x=x)\n"
            "compute   twice: tensor<int32, [4, 2]> = add(x=found, y=found)\n"
            "output    twice\n");
}

TEST_F(Stages, ResolveShowsBlocksAndWhatTheyUse) {
  read(kBranch, "tensor<fp32, [2, 3]> x, bool flag");
  EXPECT_EQ(to_text(*resolved_),
            "input     x: tensor<fp32, [2, 3]>\n"
            "input     flag: tensor<bool, []>\n"
            "compute   y: tensor<fp32, [2, 3]> = exp(x=x)\n"
            "compute   z: tensor<fp32, [2, 3]> = cond(pred=flag) with y, x\n"
            "  block\n"
            "  outer     y: tensor<fp32, [2, 3]>\n"
            "  compute   a: tensor<fp32, [2, 3]> = sqrt(x=y)\n"
            "  output    a\n"
            "  block\n"
            "  outer     x: tensor<fp32, [2, 3]>\n"
            "  output    x\n"
            "output    z\n");
}

TEST_F(Stages, ResolveTellsHowStatesAreUsed) {
  read(kCache, "tensor<fp16, [4]> x, state<tensor<fp16, [4]>> cache");
  EXPECT_EQ(to_text(*resolved_),
            "input     x: tensor<fp16, [4]>\n"
            "input     cache: state<tensor<fp16, [4]>>\n"
            "compute   old: tensor<fp16, [4]> = read_state(input=cache), a view of the state\n"
            "compute   next: tensor<fp16, [4]> = add(x=old, y=x)\n"
            "compute   'write' = write_state(input=cache, data=next)\n"
            "output    next\n");
}

TEST_F(Stages, ClaimsOfOneUnitNeedNoAssignment) {
  read(kSum);
  EXPECT_EQ(to_text(*resolved_, claims(), assignment()),
            "'sum' (add)\n"
            "  reference reference, 0.12 us\n"
            "'row' (reshape), a view\n");
}

TEST_F(Stages, TheAssignmentPutsRegionsOnDevices) {
  pin_to_simulator();
  read(kSum);
  EXPECT_EQ(to_text(*resolved_, claims(), assignment()),
            "'sum' (add) -> region 0 on simulator\n"
            "  reference reference, 0.12 us\n"
            "  simulator simulator.reference, 1 us\n"
            "'row' (reshape), a view -> region 0 on simulator\n");
}

TEST_F(Stages, ASequenceMovesValuesToItsRegions) {
  pin_to_simulator();
  read(kSum);
  EXPECT_EQ(to_text(plan()->sequence),
            "upload    2 (on simulator) = 0 (x), region 0 on simulator\n"
            "run       4 (sum, on simulator) = add(2 (on simulator), 3 (on simulator)) by simulator.reference, region "
            "0 on simulator\n"
            "launch    region 0 on simulator\n"
            "wait      region 0 on simulator\n"
            "download  7 = 6 (row, on simulator), region 0 on simulator\n"
            "output    7\n");
  EXPECT_EQ(to_text(plan()->sequence, plan()->memory),
            "arena of 64 bytes on the host\n"
            "arena of 512 bytes on simulator\n"
            "external  0 (x)\n"
            "constant  1 (one)\n"
            "arena     2 (on simulator): 24 bytes at 0, steps 0 to 1\n"
            "constant  3 (on simulator)\n"
            "constant  5 (shape)\n"
            "arena     7: 24 bytes at 0, steps 4 to 5\n"
            "arena     4 (sum, on simulator): 24 bytes at 256, steps 1 to 4\n"
            "arena     6 (row, on simulator): 24 bytes at 256, steps 1 to 4, in 4\n");
}

TEST_F(Stages, ATransferNamesBothRegions) {
  const std::vector<const kernel::Device*> both = devices::simulator::devices();
  options_.devices.insert(options_.devices.begin(), both.begin(), both.end());
  options_.pinned_device = [both](const ir::Op& op) { return both[op.name == "a" ? 0 : 1]; };
  read(R"(
  tensor<fp32, [2, 3]> a = exp(x = x)[name = string("a")];
  tensor<fp32, [2, 3]> b = sqrt(x = a)[name = string("b")];
} -> (b);)");
  EXPECT_EQ(to_text(plan()->sequence),
            "upload    1 (on simulator) = 0 (x), region 0 on simulator\n"
            "run       2 (a, on simulator) = exp(1 (on simulator)) by simulator.reference, region 0 on simulator\n"
            "launch    region 0 on simulator\n"
            "wait      region 0 on simulator\n"
            "transfer  3 (on simulator1) = 2 (a, on simulator), region 0 on simulator to region 1 on simulator1\n"
            "run       4 (b, on simulator1) = sqrt(3 (on simulator1)) by simulator.reference, region 1 on simulator1\n"
            "launch    region 1 on simulator1\n"
            "wait      region 1 on simulator1\n"
            "download  5 = 4 (b, on simulator1), region 1 on simulator1\n"
            "output    5\n");
}

TEST_F(Stages, EachStageOfAPlanHasAText) {
  read(kBranch, "tensor<fp32, [2, 3]> x, bool flag");
  for (const char* stage : {"resolve", "claim", "arrange", "memory"})
    EXPECT_NE(stage_text(*plan(), options_, stage).value().find("z"), std::string::npos) << stage;
  EXPECT_EQ(stage_text(*plan(), options_, "arrange").value(),
            "run       2 (y) = exp(0 (x)) by reference\n"
            "cond      3 (z) = cond(1 (flag), 2 (y), 0 (x))\n"
            "output    3 (z)\n"
            "\n"
            "block 0 of 'z'\n"
            "run       1 (a) = sqrt(0 (y)) by reference\n"
            "output    1 (a)\n"
            "\n"
            "block 1 of 'z'\n"
            "output    0 (x)\n");
  EXPECT_EQ(stage_text(*plan(), options_, "emit").error().message(),
            "stage 'emit': expected resolve, claim, arrange or memory");
}

TEST_F(Stages, WhatFollowsAPlanHasATextToo) {
  read(kFound);
  const std::vector<Type> found{Type::tensor(DType::int32, {4, 2})};
  const auto first = plan();
  const auto rest = first->continuations->get(found, options_, [&] { return plan_rest(*first, found, options_); });
  ASSERT_TRUE(rest.ok());
  EXPECT_EQ((*rest)->resolved, nullptr) << "nothing follows it";
  EXPECT_EQ(stage_text(*first, options_, "resolve").value(),
            "input     x: tensor<fp32, [2, 3]>\n"
            "pending   non_zero(x=x)\n"
            "\n"
            "after 'found'\n"
            "outer     x: tensor<fp32, [2, 3]>\n"
            "compute   found: tensor<int32, [4, 2]> = non_zero(x=x)\n"
            "compute   twice: tensor<int32, [4, 2]> = add(x=found, y=found)\n"
            "output    twice\n");
}

class BrokenResolved : public Stages {
 protected:
  void SetUp() override {
    Stages::SetUp();
    read(kSum);
    broken_ = *resolved_;
  }
  std::string checked() const {
    const Status s = check(broken_);
    return s.ok() ? "" : s.error().message();
  }
  ResolvedValue& value(const char* name) {
    for (ResolvedValue& v : broken_.values)
      if (v.value->name == name) return v;
    ADD_FAILURE() << name;
    return broken_.values[0];
  }
  Resolved broken_;
};

TEST_F(BrokenResolved, IsRightBeforeItIsBroken) { EXPECT_EQ(checked(), ""); }

TEST_F(BrokenResolved, ReadsBeforeWrites) {
  std::swap(broken_.ops[0], broken_.ops[1]);
  EXPECT_EQ(checked(), "'row' reads 'sum' before it is computed");
}

TEST_F(BrokenResolved, ComputesTwice) {
  broken_.ops.push_back(broken_.ops[0]);
  EXPECT_EQ(checked(), "'sum' is computed twice");
}

TEST_F(BrokenResolved, HasATypeThatIsNotConcrete) {
  value("sum").type = Type::tensor(DType::fp32, {2, ir::kAnyDim});
  EXPECT_EQ(checked(), "'sum' is a tensor<fp32, [2, ?]>, which is not concrete");
}

TEST_F(BrokenResolved, WritesAConstant) {
  value("sum").source = ResolvedValue::Source::constant;
  EXPECT_EQ(checked(), "'sum' writes value 4, which it does not own");
}

TEST_F(BrokenResolved, HoldsAConstantOfAnotherType) {
  value("one").type = Type::tensor(DType::int32, {});
  EXPECT_EQ(checked(), "constant 'one' is a tensor<int32, []> and holds fp32");
}

TEST_F(BrokenResolved, ReadsWhatIsNotThere) {
  broken_.ops[0].in[0] = 100;
  EXPECT_EQ(checked(), "'sum' reads value 100, which is not there");
}

TEST_F(BrokenResolved, HasOperandsThatDoNotCoverItsInputs) {
  broken_.ops[0].first.back()--;
  EXPECT_EQ(checked(), "the operands of 'sum' do not cover its 2 inputs");
}

TEST_F(BrokenResolved, HasAnInputThatIsNotSupplied) {
  broken_.inputs[0] = broken_.outputs[0];
  EXPECT_EQ(checked(), "input 6 is not supplied");
}

TEST_F(BrokenResolved, HasAnOutputThatIsNotComputed) {
  broken_.ops.pop_back();
  EXPECT_EQ(checked(), "output 6 is not computed");
}

TEST_F(BrokenResolved, ListsAValueTwice) {
  broken_.values.push_back(broken_.values[0]);
  EXPECT_EQ(checked(), "value 7 is not the one of its name, or is listed twice");
}

class BrokenAssignment : public Stages {
 protected:
  void SetUp() override {
    Stages::SetUp();
    pin_to_simulator();
    read(kSum);
    broken_ = assignment();
  }
  std::string checked() const {
    const Status s = check(broken_, *resolved_);
    return s.ok() ? "" : s.error().message();
  }
  Assignment broken_;
};

TEST_F(BrokenAssignment, IsRightBeforeItIsBroken) { EXPECT_EQ(checked(), ""); }

TEST_F(BrokenAssignment, RunsBeforeWhatItReads) {
  std::swap(broken_.order[0], broken_.order[1]);
  EXPECT_EQ(checked(), "'row' comes before 'sum', which it reads");
}

TEST_F(BrokenAssignment, RunsTwice) {
  broken_.order[1] = broken_.order[0];
  EXPECT_EQ(checked(), "operation 0 is not in the block, or is assigned twice");
}

TEST_F(BrokenAssignment, LeavesAnOperationOut) {
  broken_.order.pop_back();
  EXPECT_EQ(checked(), "an assignment of 1 operations for 2");
}

TEST_F(BrokenAssignment, HasARegionWithoutADevice) {
  broken_.device[0] = nullptr;
  EXPECT_EQ(checked(), "'sum' has a region but no device, or a device but no region");
}

TEST_F(BrokenAssignment, InterruptsARegion) {
  read(R"(
  tensor<fp32, [2, 3]> a = exp(x = x)[name = string("a")];
  tensor<fp32, [2, 3]> b = exp(x = a)[name = string("b")];
  tensor<fp32, [2, 3]> c = exp(x = b)[name = string("c")];
} -> (c);)");
  broken_ = assignment();
  broken_.region[1] = -1;
  broken_.device[1] = nullptr;
  EXPECT_EQ(checked(), "region 0 goes on at 'c' after it was left");
}

}  // namespace
}  // namespace moka::plan
