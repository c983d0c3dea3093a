// SPDX-License-Identifier: Apache-2.0
#include "moka/trace.h"

#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <vector>

#include "api/api_util.h"
#include "moka/program.h"

/// The slices that predictions add to the lanes of a trace. tests/python/test_trace.py compares lanes with Perfetto's
/// messages.
namespace moka {
namespace {

namespace fs = std::filesystem;

class Traced : public testing::Test {
 protected:
  void SetUp() override { path_ = (fs::temp_directory_path() / ("moka_trace_" + std::to_string(getpid()))).string(); }
  void TearDown() override { fs::remove(path_); }
  template <class F>
  TraceSummary traced(F&& f) {
    {
      Trace trace(path_);
      f();
    }
    return summarize_trace(path_);
  }
  static std::vector<TraceGroup> lane(const TraceSummary& s, std::string_view name) {
    std::vector<TraceGroup> out;
    for (const TraceGroup& g : s.groups)
      if (g.lane == name) out.push_back(g);
    return out;
  }
  std::string path_;
};

constexpr int64_t kElements = 5000;

Model doubling(DataType type = DataType::float32) {
  ProgramBuilder b;
  auto x = b.input("x", type, {1, kElements});
  b.output(b.op("add", {{"x", x}, {"y", x}}, "y"));
  ModelConfiguration exact;
  exact.precision = Precision::exact;
  return b.build(exact);
}

TEST_F(Traced, BackingsOfTheRightTypeAreComputedIn) {
  const Model model = doubling();
  MultiArray x(DataType::float32, {1, kElements}), y(DataType::float32, {1, kElements});
  for (float& v : x.as<float>()) v = 3;
  Features outputs{{"y", y}};
  const TraceSummary s = traced([&] { model.predict({{"x", x}}, outputs); });
  EXPECT_EQ(outputs.array("y").data(), y.data());
  EXPECT_EQ(y.at(0), 6);
  EXPECT_EQ(y.at(kElements - 1), 6);
  EXPECT_TRUE(lane(s, "Data").empty());
  // The frame is no longer in the caller's memory.
  for (float& v : y.as<float>()) v = -1;
  EXPECT_EQ(model.predict({{"x", x}}).array("y").at(5), 6);
  EXPECT_EQ(y.at(5), -1);
}

TEST_F(Traced, BackingsThatOverlapWhatIsReadGetACopy) {
  const Model model = doubling();
  std::vector<float> memory(static_cast<size_t>(kElements + 8), 1);
  MultiArray x(memory.data(), DataType::float32, {1, kElements}),
      y(memory.data() + 8, DataType::float32, {1, kElements});
  Features outputs{{"y", y}};
  const TraceSummary s = traced([&] { model.predict({{"x", x}}, outputs); });
  EXPECT_EQ(memory[7], 1);
  for (const size_t i : {8, 9, 5000, 5007}) EXPECT_EQ(memory[i], 2) << i;
  const auto data = lane(s, "Data");
  ASSERT_EQ(data.size(), 1u);
  EXPECT_EQ(data[0].kind, "copy");
  EXPECT_EQ(data[0].bytes, kElements * 4);
}

TEST_F(Traced, TwoOutputsMayNotShareABacking) {
  ProgramBuilder b;
  auto x = b.input("x", DataType::float32, {1, kElements});
  b.output(b.op("add", {{"x", x}, {"y", 1.0f}}, "one"));
  b.output(b.op("add", {{"x", x}, {"y", 2.0f}}, "two"));
  const Model model = b.build();
  MultiArray in(DataType::float32, {1, kElements}), both(DataType::float32, {1, kElements});
  Features outputs{{"one", both}, {"two", both}};
  model.predict({{"x", in}}, outputs);
  EXPECT_EQ(both.at(0), 2);  // they are stored in order
}

TEST_F(Traced, ConversionsSayTheirBytesAndReason) {
  const Model model = doubling();
  MultiArray x(DataType::float64, {1, kElements});
  const TraceSummary s = traced([&] {
    for (int i = 0; i < 3; i++) model.predict({{"x", x}});
  });
  const auto data = lane(s, "Data");
  ASSERT_EQ(data.size(), 1u);
  EXPECT_EQ(data[0].name, "x");
  EXPECT_EQ(data[0].reason, "fp64 to fp32");
  EXPECT_EQ(data[0].count, 3);
  EXPECT_EQ(data[0].bytes, 3 * kElements * 4);
}

TEST_F(Traced, BytesThatWereCopiedAreThoseOfTheTrace) {
  const Model model = doubling();
  const auto most_copied = [&](DataType type) {
    const MultiArray x(type, {1, kElements});
    for (const TraceCounter& c : traced([&] { model.predict({{"x", x}}); }).counters)
      if (c.name == "Copied inputs and outputs") return c.maximum;
    return -1.0;
  };
  for (int i = 0; i < 2; i++) EXPECT_EQ(most_copied(DataType::float64), kElements * 4);
  EXPECT_EQ(most_copied(DataType::float32), 0);
}

TEST_F(Traced, TheLanesAgreeWithThePlan) {
  TraceSummary s;
  const Model model = doubling();
  s = traced([&] {
    for (int i = 0; i < 4; i++) model.predict(model.random_inputs());
  });
  const ComputePlan plan = model.compute_plan();
  size_t found = 0;
  for (const TraceGroup& g : lane(s, "Compute"))
    for (const PlannedOperation& o : plan.operations)
      if (g.name == o.name && g.kind == o.type) {
        found++;
        EXPECT_EQ(g.kernel, o.kernel);
        EXPECT_EQ(g.device, o.device);
        EXPECT_EQ(g.count, 4);
      }
  EXPECT_EQ(found, plan.operations.size());
  const auto activity = lane(s, "Activity");
  const auto predict =
      std::find_if(activity.begin(), activity.end(), [](const auto& g) { return g.kind == "predict"; });
  ASSERT_NE(predict, activity.end());
  EXPECT_EQ(predict->count, 4);
}

TEST_F(Traced, DevicesWithTheirOwnMemoryShowTransfersAndRegions) {
  ModelConfiguration c;
  c.device = "simulator";
  const Model model = doubling().configured(c);
  const Features inputs = model.random_inputs();
  const TraceSummary s = traced([&] {
    for (int i = 0; i < 3; i++) model.predict(inputs);
  });
  const ComputePlan plan = model.compute_plan(inputs);
  ASSERT_EQ(plan.regions.size(), 1u);
  const auto find = [&](std::string_view lane, std::string_view kind) {
    TraceGroup sum;
    for (const TraceGroup& g : s.groups)
      if (g.lane == lane && g.kind == kind) {
        EXPECT_EQ(g.device, "simulator");
        sum.count += g.count;
        sum.bytes += g.bytes;
      }
    return sum;
  };
  EXPECT_EQ(find("Data", "upload").bytes, static_cast<int64_t>(3 * plan.regions[0].upload_bytes));
  EXPECT_EQ(find("Data", "download").bytes, static_cast<int64_t>(3 * plan.regions[0].download_bytes));
  EXPECT_EQ(find("Compute", "submit").count, 3);
  EXPECT_EQ(find("Compute", "wait").count, 3);
  EXPECT_EQ(find("Compute", "region").count, 3);
}

TEST_F(Traced, OneTraceAtATime) {
  Trace trace(path_);
  EXPECT_THROW(Trace(path_ + "2"), Exception);
  trace.stop();
  trace.stop();
  EXPECT_THROW(Trace("/nonexistent/folder/t.pftrace"), Exception);
  EXPECT_THROW(summarize_trace("/nonexistent/t.pftrace"), Exception);
}

TEST_F(Traced, ReplacesOnlyTracesAndTellsOfAFullDisk) {
  std::ofstream(path_) << "keep me";
  EXPECT_THROW(Trace{path_}, Exception);
  std::string text;
  std::getline(std::ifstream(path_), text);
  EXPECT_EQ(text, "keep me");
  Trace(path_, Overwrite::any).stop();
  Trace(path_).stop();
  EXPECT_GT(fs::file_size(path_), 20u);
  Trace full("/dev/full");
  try {
    full.stop();
    FAIL() << "no error";
  } catch (const Exception& e) {
    EXPECT_EQ(e.kind(), ErrorKind::io);
    EXPECT_STREQ(e.what(), "trace '/dev/full': cannot be written: No space left on device");
  }
}

TEST_F(Traced, SpansOfTheProgramAreOnTheLaneData) {
  const TraceSummary s = traced([] { TraceSpan span("resize", 640, "the picture is larger"); });
  const auto data = lane(s, "Data");
  ASSERT_EQ(data.size(), 1u);
  EXPECT_EQ(data[0].name, "resize");
  EXPECT_EQ(data[0].bytes, 640);
  EXPECT_EQ(data[0].reason, "the picture is larger");
}

}  // namespace
}  // namespace moka
