// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "devices/simulator/device.h"
#include "plan/plan.h"

/// `plan::check` refuses a sequence, or its memory, after any one of these changes.
namespace moka::plan {
namespace {

using kernel::Layout;

/// x goes from the host to a device, y = f(x) and z = g(y) run there, and z comes back, as in a real plan.
class BrokenSequence : public ::testing::Test {
 protected:
  void SetUp() override {
    const kernel::Device* device = &devices::simulator::device();
    const auto add = [&](const kernel::Device* in, size_t offset, Lifetime life) {
      Place p;
      p.type = ir::Type::tensor(ir::DType::fp32, {16});
      p.device = in;
      p.root = static_cast<int>(sequence_.places.size());
      sequence_.places.push_back(p);
      memory_.places.push_back({64, offset, life});
    };
    add(nullptr, 0, {0, 0});
    add(device, 0, {0, 1});
    add(device, 256, {1, 2});
    add(device, 0, {2, 3});
    add(nullptr, 0, {5, 6});
    place(0).storage = External{};
    Region region{.device = device, .steps = {}, .uploads = {1}, .downloads = {3}};
    for (int i : {1, 2}) {
      plan::Run step;
      step.device = device;
      step.choice = std::make_shared<kernel::KernelChoice>();
      step.in = {i};
      step.out = {i + 1};
      region.steps.emplace_back(std::move(step));
    }
    sequence_.regions.push_back(std::move(region));
    sequence_.steps = {Upload{0, {0, 0}}, Launch{0}, Wait{0}, Download{{0, 0}, 4}};
    sequence_.inputs = {0};
    sequence_.outputs = {4};
    memory_.steps.resize(6);
    memory_.devices = {{device, 512}};
    memory_.arena_bytes = 64;
  }

  std::string checked() const {
    Status s = check(sequence_);
    if (s.ok()) s = check(sequence_, memory_);
    return s.ok() ? "" : s.error().message();
  }
  Place& place(size_t i) { return sequence_.places[i]; }
  plan::Run& run(size_t i) { return std::get<plan::Run>(sequence_.regions[0].steps[i]); }

  Sequence sequence_;
  Memory memory_;
};

TEST_F(BrokenSequence, IsRightBeforeItIsBroken) { EXPECT_EQ(checked(), ""); }

TEST_F(BrokenSequence, AStepHasNoMemory) {
  memory_.steps.pop_back();
  EXPECT_EQ(checked(), "memory of 5 places and 5 steps for a sequence of 5 and 6");
}

TEST_F(BrokenSequence, PlacesThatLiveTogetherOverlap) {
  memory_.places[2].offset = 0;
  EXPECT_EQ(checked(), "places 1 and 2 overlap in the arena during steps 1 to 1");
}

TEST_F(BrokenSequence, APlaceIsOutsideOfItsArena) {
  memory_.devices[0].bytes = 256;
  EXPECT_EQ(checked(), "place 2 at 256 + 64 is outside of the arena of 256");
}

TEST_F(BrokenSequence, APlaceIsNotAligned) {
  memory_.places[2].offset = 64;
  EXPECT_EQ(checked(), "place 2 at 64 + 64 is outside of the arena of 512");
}

TEST_F(BrokenSequence, ADeviceHasNoArena) {
  memory_.devices.clear();
  EXPECT_EQ(checked(), "places in the memory of 'simulator' have no arena");
}

TEST_F(BrokenSequence, AValueIsReadBeforeItIsWritten) {
  std::swap(run(0), run(1));
  EXPECT_EQ(checked(), "step 1 reads place 2 before it is written");
}

TEST_F(BrokenSequence, ADeviceReadsHostMemory) {
  run(0).in = {0};
  EXPECT_EQ(checked(), "step 1 reads place 0 in another memory than it runs in");
}

TEST_F(BrokenSequence, TheHostReadsDeviceMemory) {
  sequence_.steps.insert(sequence_.steps.begin() + 1, Step(run(0)));
  EXPECT_EQ(checked(), "step 1 reads place 1 in another memory than it runs in");
}

TEST_F(BrokenSequence, AKernelWritesAnotherMemory) {
  place(2).device = nullptr;
  EXPECT_EQ(checked(), "step 1 writes place 2 in another memory than it runs in");
}

TEST_F(BrokenSequence, AKernelReadsAnotherLayout) {
  place(1).layout = Layout{}.as_half();
  place(0).layout = Layout{}.as_half();
  EXPECT_EQ(checked(), "step 1 reads place 1 in another layout than it has");
}

TEST_F(BrokenSequence, ATransferChangesTheLayout) {
  place(4).layout = Layout{}.as_half();
  EXPECT_EQ(checked(), "step 5 transfers place 3 to place 4, which does not cross memories in one layout");
}

TEST_F(BrokenSequence, ATransferStaysInOneMemory) {
  place(1).device = nullptr;
  EXPECT_EQ(checked(), "step 0 transfers place 0 to place 1, which does not cross memories in one layout");
}

TEST_F(BrokenSequence, ATransferEndsInAnotherMemory) {
  place(1).device = devices::simulator::devices()[1];
  EXPECT_EQ(checked(), "step 0 transfers place 0 to place 1, which are not in the memories of its regions");
}

TEST_F(BrokenSequence, ATransferTakesNoResult) {
  sequence_.steps[3] = Transfer{{0, 1}, {0, 0}};
  EXPECT_EQ(checked(), "region 0 has no download 1");
}

TEST_F(BrokenSequence, ATransferComesAfterTheLaunch) {
  sequence_.steps[3] = Transfer{{0, 0}, {0, 0}};
  EXPECT_EQ(checked(), "step 5 uploads to a region that was launched");
}

TEST_F(BrokenSequence, ADownloadDoesNotWait) {
  std::swap(sequence_.steps[2], sequence_.steps[3]);
  EXPECT_EQ(checked(), "step 4 downloads from a region before it was waited for");
}

TEST_F(BrokenSequence, AnUploadComesAfterTheLaunch) {
  run(0).in = {0};
  place(0).device = run(0).device;
  std::swap(sequence_.steps[0], sequence_.steps[1]);
  EXPECT_EQ(checked(), "step 3 uploads to a region that was launched");
}

TEST_F(BrokenSequence, ARegionIsLaunchedTwice) {
  sequence_.steps[2] = Launch{0};
  EXPECT_EQ(checked(), "step 6 launches a region again");
}

TEST_F(BrokenSequence, ARegionIsNeverLaunched) {
  sequence_.steps.resize(1);
  sequence_.outputs.clear();
  EXPECT_EQ(checked(), "region 0 is never launched");
}

TEST_F(BrokenSequence, AStepNamesNoRegion) {
  sequence_.steps[2] = Wait{7};
  EXPECT_EQ(checked(), "the host's step 2 names region 7, which does not exist");
}

TEST_F(BrokenSequence, AStepNamesNoUpload) {
  sequence_.steps[0] = Upload{0, {0, 1}};
  EXPECT_EQ(checked(), "region 0 has no upload 1");
}

TEST_F(BrokenSequence, AStepNamesNoDownload) {
  sequence_.regions[0].downloads.clear();
  EXPECT_EQ(checked(), "region 0 has no download 0");
}

TEST_F(BrokenSequence, AStepNamesNoPlace) {
  run(0).out = {9};
  EXPECT_EQ(checked(), "step 1 names place 9, which does not exist");
}

TEST_F(BrokenSequence, AnOutputNamesNoPlace) {
  sequence_.outputs = {-1};
  EXPECT_EQ(checked(), "an output names place -1, which does not exist");
}

TEST_F(BrokenSequence, APlaceIsPartOfAPart) {
  place(2).root = 1;
  place(3).root = 2;
  EXPECT_EQ(checked(), "place 3 is part of place 2, which has no storage of its own");
}

TEST_F(BrokenSequence, AnOutputStaysOnTheDevice) {
  sequence_.outputs = {3};
  EXPECT_EQ(checked(), "output place 3 is in the memory of 'simulator'");
}

TEST_F(BrokenSequence, AnOutputIsNeverWritten) {
  sequence_.steps.pop_back();
  EXPECT_EQ(checked(), "output place 4 is never written");
}

}  // namespace
}  // namespace moka::plan
