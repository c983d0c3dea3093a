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
    Region region{.device = device, .steps = {}, .uploads = {{0, 1}}, .downloads = {{3, 4}}};
    for (int i : {1, 2}) {
      plan::Run step;
      step.device = device;
      step.choice = std::make_shared<kernel::KernelChoice>();
      step.in = {i};
      step.out = {i + 1};
      region.steps.emplace_back(std::move(step));
    }
    plan_.regions.push_back(std::move(region));
    plan_.steps = {Upload{0, 0}, Launch{0}, Wait{0}, Download{0, 0}};
    plan_.inputs = {0};
    plan_.outputs = {4};
    plan_.device_arenas = {{device, 512}};
    plan_.arena_bytes = 64;
  }

  std::string checked() const {
    const Status s = check(plan_);
    return s.ok() ? "" : s.error().message();
  }
  Place& place(size_t i) { return plan_.places[i]; }
  plan::Run& run(size_t i) { return std::get<plan::Run>(plan_.regions[0].steps[i]); }

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
  std::swap(run(0), run(1));
  EXPECT_EQ(checked(), "step 1 reads place 2 before it is written");
}

TEST_F(BrokenPlan, ADeviceReadsHostMemory) {
  run(0).in = {0};
  EXPECT_EQ(checked(), "step 1 reads place 0 in another memory than it runs in");
}

TEST_F(BrokenPlan, TheHostReadsDeviceMemory) {
  plan_.steps.insert(plan_.steps.begin() + 1, Step(run(0)));
  EXPECT_EQ(checked(), "step 1 reads place 1 in another memory than it runs in");
}

TEST_F(BrokenPlan, AKernelWritesAnotherMemory) {
  place(2).device = nullptr;
  place(2).offset = 0;
  EXPECT_EQ(checked(), "step 1 writes place 2 in another memory than it runs in");
}

TEST_F(BrokenPlan, AKernelReadsAnotherLayout) {
  place(1).layout = Layout{}.as_half();
  place(0).layout = Layout{}.as_half();
  EXPECT_EQ(checked(), "step 1 reads place 1 in another layout than it has");
}

TEST_F(BrokenPlan, ATransferChangesTheLayout) {
  place(4).layout = Layout{}.as_half();
  EXPECT_EQ(checked(), "step 5 transfers place 3 to place 4, which does not cross memories in one layout");
}

TEST_F(BrokenPlan, ATransferStaysInOneMemory) {
  plan_.regions[0].uploads[0].from = 4;
  place(4).storage = Storage::external;
  place(1).device = nullptr;
  EXPECT_EQ(checked(), "step 0 transfers place 4 to place 1, which does not cross memories in one layout");
}

TEST_F(BrokenPlan, ADownloadDoesNotWait) {
  std::swap(plan_.steps[2], plan_.steps[3]);
  EXPECT_EQ(checked(), "step 4 downloads from a region before it was waited for");
}

TEST_F(BrokenPlan, AnUploadComesAfterTheLaunch) {
  run(0).in = {0};
  place(0).device = run(0).device;
  std::swap(plan_.steps[0], plan_.steps[1]);
  EXPECT_EQ(checked(), "step 3 uploads to a region that was launched");
}

TEST_F(BrokenPlan, ARegionIsLaunchedTwice) {
  plan_.steps[2] = Launch{0};
  EXPECT_EQ(checked(), "step 6 launches a region again");
}

TEST_F(BrokenPlan, ARegionIsNeverLaunched) {
  plan_.steps.resize(1);
  plan_.outputs.clear();
  EXPECT_EQ(checked(), "region 0 is never launched");
}

TEST_F(BrokenPlan, AStepNamesNoRegion) {
  plan_.steps[2] = Wait{7};
  EXPECT_EQ(checked(), "the host's step 2 names region 7, which does not exist");
}

TEST_F(BrokenPlan, AStepNamesNoUpload) {
  plan_.steps[0] = Upload{0, 1};
  EXPECT_EQ(checked(), "region 0 has no upload 1");
}

TEST_F(BrokenPlan, AStepNamesNoDownload) {
  plan_.regions[0].downloads.clear();
  EXPECT_EQ(checked(), "region 0 has no download 0");
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
