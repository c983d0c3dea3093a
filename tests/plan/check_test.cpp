#include <gtest/gtest.h>

#include "devices/simulator/device.h"
#include "plan/plan.h"

/// `plan::check` refuses a plan after any one of these changes.
namespace moka::plan {
namespace {

using kernel::Layout;

/// x goes from the host to a device, y = f(x) and z = g(y) run there, and z comes back, as in a real plan.
class BrokenPlan : public ::testing::Test {
 protected:
  void SetUp() override {
    const kernel::Device* device = &devices::simulator::device();
    const auto add = [&](Storage storage, const kernel::Device* in, size_t offset, int first, int last) {
      Place p;
      p.type = ir::Type::tensor(ir::DType::fp32, {16});
      p.storage = storage;
      p.device = in;
      p.region = in == nullptr ? -1 : 0;
      p.root = static_cast<int>(plan_.places.size());
      p.bytes = 64;
      p.offset = offset;
      p.first = first;
      p.last = last;
      plan_.places.push_back(p);
    };
    add(Storage::external, nullptr, 0, 0, 0);
    add(Storage::arena, device, 0, 0, 1);
    add(Storage::arena, device, 256, 1, 2);
    add(Storage::arena, device, 0, 2, 3);
    add(Storage::arena, nullptr, 0, 5, 6);
    const auto step = [&](Step::Kind kind, std::vector<int> in, std::vector<int> out) {
      Step s;
      s.kind = kind;
      s.region = 0;
      s.device = device;
      s.in = std::move(in);
      s.out = std::move(out);
      plan_.steps.push_back(std::move(s));
    };
    step(Step::Kind::transfer, {0}, {1});
    step(Step::Kind::run, {1}, {2});
    step(Step::Kind::run, {2}, {3});
    step(Step::Kind::submit, {}, {});
    step(Step::Kind::wait, {}, {});
    step(Step::Kind::transfer, {3}, {4});
    plan_.inputs = {0};
    plan_.outputs = {4};
    plan_.regions = {{device, 0, 3, {1, 2}, {1}, {3}}};
    plan_.device_arenas = {{device, 512}};
    plan_.arena_bytes = 64;
  }

  std::string checked() const {
    const Status s = check(plan_);
    return s.ok() ? "" : s.error().message();
  }
  Place& place(size_t i) { return plan_.places[i]; }
  Step& step(size_t i) { return plan_.steps[i]; }

  Plan plan_;
};

TEST_F(BrokenPlan, IsRightBeforeItIsBroken) { EXPECT_EQ(checked(), ""); }

TEST_F(BrokenPlan, PlacesThatLiveTogetherOverlap) {
  place(2).offset = 0;
  EXPECT_EQ(checked(), "places 1 and 2 overlap in the arena during steps 1 to 1");
}

TEST_F(BrokenPlan, APlaceIsOutsideOfItsArena) {
  plan_.device_arenas[0].bytes = 256;
  EXPECT_EQ(checked(), "place 2 at 256 + 64 is outside of the arena of 256");
}

TEST_F(BrokenPlan, APlaceIsNotAligned) {
  place(2).offset = 64;
  EXPECT_EQ(checked(), "place 2 at 64 + 64 is outside of the arena of 512");
}

TEST_F(BrokenPlan, ADeviceHasNoArena) {
  plan_.device_arenas.clear();
  EXPECT_EQ(checked(), "places in the memory of 'simulator' have no arena");
}

TEST_F(BrokenPlan, AValueIsReadBeforeItIsWritten) {
  std::swap(step(1), step(2));
  EXPECT_EQ(checked(), "step 1 reads place 2 before it is written");
}

TEST_F(BrokenPlan, ADeviceReadsHostMemory) {
  step(1).in = {0};
  EXPECT_EQ(checked(), "step 1 reads place 0 in another memory than it runs in");
}

TEST_F(BrokenPlan, TheHostReadsDeviceMemory) {
  step(1).region = -1;
  EXPECT_EQ(checked(), "step 1 reads place 1 in another memory than it runs in");
}

TEST_F(BrokenPlan, AKernelWritesAnotherMemory) {
  place(2).device = nullptr;
  place(2).offset = 0;
  EXPECT_EQ(checked(), "step 1 writes place 2 in another memory than it runs in");
}

TEST_F(BrokenPlan, ATransferChangesTheLayout) {
  place(4).layout = Layout{}.as_half();
  EXPECT_EQ(checked(), "step 5 transfers place 3 to place 4, which does not cross memories in one layout");
}

TEST_F(BrokenPlan, ADownloadDoesNotWait) {
  std::swap(step(4), step(5));
  EXPECT_EQ(checked(), "step 4 downloads from a region before it was waited for");
}

TEST_F(BrokenPlan, AnUploadComesAfterTheSubmission) {
  std::swap(step(0), step(3));
  EXPECT_EQ(checked(), "step 1 belongs to a region that was submitted");
}

TEST_F(BrokenPlan, ARegionIsSubmittedTwice) {
  step(4).kind = Step::Kind::submit;
  EXPECT_EQ(checked(), "step 4 submits a region again");
}

TEST_F(BrokenPlan, ARegionIsNeverSubmitted) {
  plan_.steps.erase(plan_.steps.begin() + 3, plan_.steps.end());
  plan_.outputs.clear();
  EXPECT_EQ(checked(), "region 0 is never submitted");
}

TEST_F(BrokenPlan, AStepNamesNoRegion) {
  step(2).region = 7;
  EXPECT_EQ(checked(), "step 2 belongs to region 7, which does not exist");
}

TEST_F(BrokenPlan, AnOutputStaysOnTheDevice) {
  plan_.outputs = {3};
  EXPECT_EQ(checked(), "output place 3 is in the memory of 'simulator'");
}

TEST_F(BrokenPlan, AnOutputIsNeverWritten) {
  plan_.steps.pop_back();
  EXPECT_EQ(checked(), "output place 4 is never written");
}

}  // namespace
}  // namespace moka::plan
