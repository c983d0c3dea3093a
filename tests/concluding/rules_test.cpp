// SPDX-License-Identifier: Apache-2.0
#include "concluding/tape_util.h"

/// Each rule concludes from a trace that shows what it is about, and not from one that almost does.
namespace moka::test {
namespace {

using trace::Lane;

/// A model that predicts every `step`, for `length` of it.
trace::ModelId predicting(Tape& tape, int count, double length = 100, double step = 200,
                          const std::string& name = "net.mlmodel") {
  const trace::ModelId m = tape.model(name, "/models/" + name);
  for (int i = 0; i < count; i++) tape.activity(m, "predict", 1000 + step * i, 1000 + step * i + length);
  return m;
}

void loading(Tape& tape, int loads, int predictions_each) {
  double at = 0;
  for (int i = 0; i < loads; i++) {
    const trace::ModelId m = tape.model("loaded.mlmodel");
    tape.activity(m, "load", at, at + 500, {{"path", "/models/loaded.mlmodel"}});
    at += 500;
    for (int p = 0; p < predictions_each; p++, at += 100) tape.activity(m, "predict", at, at + 100);
  }
}

TEST(TraceRules, LoadedRepeatedly) {
  Tape often, kept, twice;
  loading(often, 4, 2);
  EXPECT_EQ(often.texts("loaded-repeatedly"), Texts{"loaded 4 times for 8 predictions: keep the model"});
  const TraceConclusion c = often.concluded("loaded-repeatedly").conclusions[0];
  EXPECT_NEAR(c.seconds, 3 * 500e-6, 1e-9);
  EXPECT_NEAR(c.share, 1500.0 / 2800, 1e-9);
  EXPECT_EQ(c.count, 4);
  EXPECT_EQ(c.model, "loaded.mlmodel");
  ASSERT_EQ(c.events.size(), 4u);
  EXPECT_EQ(c.events[0].lane, "Activity");
  EXPECT_EQ(c.events[0].thread, "thread 1, t");
  EXPECT_NEAR(c.events[3].start, 2100e-6, 1e-9);
  EXPECT_NEAR(c.events[3].seconds, 500e-6, 1e-9);
  loading(kept, 4, 40);
  EXPECT_EQ(kept.texts("loaded-repeatedly"), Texts{});
  loading(twice, 2, 1);
  EXPECT_EQ(twice.texts("loaded-repeatedly"), Texts{});
}

TEST(TraceRules, ConvertedType) {
  Tape tape;
  const trace::ModelId m = predicting(tape, 10);
  for (int i = 0; i < 10; i++) {
    const double at = 1000 + 200 * i;
    tape.data(m, "x", "convert", at + 1, at + 11, "fp16 to fp32");
    tape.data(m, "y", "convert", at + 12, at + 22, "fp16 to fp32");
    tape.operation(m, "conv", "conv", at + 30, at + 60);
    tape.data(m, "z", "convert", at + 70, at + 80, "fp32 to fp16");
    if (i % 5 == 0) tape.data(m, "w", "convert", at + 22, at + 25, "fp64 to fp32");
  }
  EXPECT_EQ(
      tape.texts("converted-type"),
      (Texts{"converts float16 to float32 twice a call: pass float32 arrays, or declare float16 inputs and load with "
             "the precision exact (inputs 'x' and 'y')",
             "converts float32 to float16 once a call: declare float32 outputs, or load with the precision exact "
             "(output 'z')"}));
  EXPECT_EQ(tape.texts("gaps"), Texts{});
  EXPECT_EQ(tape.texts("pixels"), Texts{});
}

TEST(TraceRules, GapsPixelsAndCopies) {
  Tape tape;
  const trace::ModelId m = predicting(tape, 10);
  for (int i = 0; i < 10; i++) {
    const double at = 1000 + 200 * i;
    tape.data(m, "x", "convert", at + 1, at + 6, "its strides are not row-major");
    tape.data(m, "image", "convert", at + 7, at + 32, "pixels to planes of fp32");
    tape.operation(m, "conv", "conv", at + 40, at + 60);
    tape.data(m, "z", "copy", at + 70, at + 80, "it is not computed in memory of its own");
  }
  EXPECT_EQ(tape.texts("gaps"),
            Texts{"rearranges 'x' once a call, because strides are not row-major: pass arrays without "
                  "gaps"});
  EXPECT_EQ(tape.texts("pixels"),
            Texts{"spends 25% of its predictions on turning pixels of 'image' into planes: pass arrays"});
  EXPECT_EQ(tape.texts("copied-output"), Texts{"copies output 'z' once a call: pass backings that overlap nothing"});
  EXPECT_EQ(tape.texts("converted-type"), Texts{});
  Tape few;
  const trace::ModelId other = predicting(few, 4);
  for (int i = 0; i < 4; i++)
    few.data(other, "x", "convert", 1001 + 200 * i, 1050 + 200 * i, "its strides are not row-major");
  for (const char* rule : {"gaps", "pixels", "copied-output", "converted-type"}) EXPECT_EQ(few.texts(rule), Texts{});
}

TEST(TraceRules, Waits) {
  const auto waiting = [](double length) {
    Tape tape;
    const trace::ModelId m = tape.model("net.mlmodel", "/net");
    for (int i = 0; i < 10; i++)
      for (int64_t thread = 1; thread < 4; thread++) {
        tape.activity(m, "predict", 200 * i, 200 * i + 100, {}, thread);
        tape.activity(m, "wait for a turn", 200 * i + 1, 200 * i + 1 + length, {}, thread);
      }
    return tape.texts("waits");
  };
  EXPECT_EQ(waiting(60), Texts{"waits 60% of the time of its predictions for a turn, in 3 threads: predict from fewer "
                               "threads"});
  EXPECT_EQ(waiting(5), Texts{});
}

TEST(TraceRules, OneThread) {
  const auto computing = [](double alone, int others) {
    Tape tape;
    const trace::ModelId m = predicting(tape, 10);
    for (int i = 0; i < 10; i++) {
      tape.operation(m, "conv", "conv", 1000 + 200 * i, 1040 + 200 * i, others);
      tape.operation(m, "sort", "argsort", 1040 + 200 * i, 1040 + 200 * i + alone, 1);
    }
    return tape.texts("one-thread");
  };
  EXPECT_EQ(computing(60, 8), Texts{"waits 60% of the time for one thread of 8: 'sort' (argsort) takes 60%"});
  EXPECT_EQ(computing(10, 8), Texts{});
  EXPECT_EQ(computing(60, 1), Texts{});  // all have one
}

TEST(TraceRules, NewShapesAndNewMemory) {
  const auto planning = [](int plans, int sessions) {
    Tape tape;
    const trace::ModelId m = predicting(tape, 20);
    for (int i = 0; i < plans; i++) tape.activity(m, "plan", 1010 + 200 * i, 1040 + 200 * i);
    for (int i = 0; i < sessions; i++) tape.activity(m, "make session", 1050 + 200 * i, 1070 + 200 * i);
    tape.activity(m, "plan", 10, 40);  // of a load
    return tape;
  };
  EXPECT_EQ(planning(12, 12).texts("new-shapes"),
            Texts{"plans again in 12 of 20 predictions, for new shapes: pad inputs to a few sizes"});
  EXPECT_EQ(planning(12, 12).texts("new-memory"), Texts{});
  EXPECT_EQ(planning(1, 12).texts("new-shapes"), Texts{});
  EXPECT_EQ(planning(0, 12).texts("new-memory"),
            Texts{"makes memory in 12 of 20 predictions, 12% of their time: raise the memory limit"});
  EXPECT_EQ(planning(0, 2).texts("new-memory"), Texts{});
}

TEST(TraceRules, CompiledAndPackedAgain) {
  Tape tape;
  for (int i = 0; i < 3; i++) tape.add(Lane::activity, 0, "compile net", "compile", 1e5 * i, 1e5 * i + 2e4);
  tape.add(Lane::activity, 0, "compile other", "compile", 4e5, 5e5);
  EXPECT_EQ(tape.texts("compiled-again"), Texts{"compiles 'net' 3 times: keep the compiled model"});
  EXPECT_NEAR(tape.concluded("compiled-again").conclusions[0].seconds, 0.04, 1e-9);
  const auto packing = [](double length) {
    Tape out;
    for (int i = 0; i < 3; i++) {
      const trace::ModelId m = out.model("packed.mlmodel");
      out.activity(m, "load", 1e5 * i, 1e5 * i + 9e4, {{"path", "/packed"}});
      out.add(Lane::activity, m, "prepare kernels", "prepare kernels", 1e5 * i + 10, 1e5 * i + 10 + length);
    }
    return out.texts("packed-again");
  };
  EXPECT_EQ(packing(4.5e4), Texts{"prepares weights at 3 loads, 50% of the time of loading: use a cache"});
  EXPECT_EQ(packing(4e3), Texts{});
}

TEST(TraceRules, CrossingsAndSmallRegions) {
  const auto crossing = [](double length) {
    Tape tape;
    const trace::ModelId m = predicting(tape, 10);
    for (int i = 0; i < 10; i++) {
      const double at = 1000 + 200 * i;
      tape.data(m, "x", "upload", at + 1, at + 1 + length, "");
      tape.data(m, "y", "download", at + 50, at + 50 + length, "");
      tape.add(Lane::compute, m, "submit", "submit", at + 20, at + 25, {{"device", "gpu"}});
      tape.add(Lane::compute, m, "wait", "wait", at + 25, at + 25 + 4 * length, {{"device", "gpu"}});
      tape.add(Lane::compute, m, "gpu", "region", at + 20, at + 30, {}, 2);
    }
    return tape;
  };
  EXPECT_EQ(crossing(15).texts("crossings"), Texts{"moves values between devices 2.0 times a call, 8 kB and 30% of its "
                                                   "time: keep the operations on one device"});
  EXPECT_EQ(crossing(5).texts("crossings"), Texts{});
  EXPECT_EQ(crossing(15).texts("small-regions"),
            Texts{"submits 1.0 regions a call, each of 10 µs, and waits for them 65% of its time: give the GPU larger "
                  "parts"});
  EXPECT_EQ(crossing(5).texts("small-regions"), Texts{});
}

TEST(TraceRules, ReferenceKernelAndLayouts) {
  const auto slow = [](double length, const char* device) {
    Tape tape;
    const trace::ModelId m = predicting(tape, 10);
    for (int i = 0; i < 10; i++) {
      const double at = 1000 + 200 * i;
      tape.operation(m, "conv", "conv", at, at + 20, 1, device);
      tape.add(Lane::compute, m, "x", "convert_layout", at + 20, at + 20 + length);
      tape.operation(m, "odd", "custom", at + 60, at + 60 + length, 1, "reference");
    }
    return tape;
  };
  EXPECT_EQ(slow(20, "cpu").texts("reference-kernel"),
            Texts{"spends 50% of its computing time in 'odd' (custom), which no fast kernel takes"});
  EXPECT_EQ(slow(20, "reference").texts("reference-kernel"), Texts{});  // it was asked for
  EXPECT_EQ(slow(2, "cpu").texts("reference-kernel"), Texts{});
  EXPECT_EQ(slow(20, "cpu").texts("layouts"),
            Texts{"converts layouts once a call, 33% of its computing time: try moka tune"});
  EXPECT_EQ(slow(2, "cpu").texts("layouts"), Texts{});
}

TEST(TraceRules, SingleRows) {
  const auto rows = [](int count, double step, double computing, bool batch) {
    Tape tape;
    const trace::ModelId m = predicting(tape, count, 20, step);
    for (int i = 0; i < count; i++) tape.operation(m, "trees", "trees", 1005 + step * i, 1005 + step * i + computing);
    if (batch) tape.add(Lane::activity, m, "predict batch", "predict batch", 999, 1001 + step * count, {}, 2);
    return tape.texts("single-rows");
  };
  EXPECT_EQ(rows(400, 25, 5, false),
            Texts{"makes 399 predictions of 20 µs in a loop, 75% of it outside of operations: predict rows"});
  EXPECT_EQ(rows(400, 25, 5, true), Texts{});
  EXPECT_EQ(rows(400, 25, 15, false), Texts{});
  EXPECT_EQ(rows(400, 1000, 5, false), Texts{});
  EXPECT_EQ(rows(100, 25, 5, false), Texts{});
}

TEST(TraceRules, FirstPrediction) {
  const auto first = [](double length, bool is_loaded) {
    Tape tape;
    const trace::ModelId m = tape.model("net.mlmodel");
    if (is_loaded) tape.activity(m, "load", 0, 500, {{"path", "/net"}});
    tape.activity(m, "predict", 1000, 1000 + length);
    for (int i = 0; i < 5; i++) tape.activity(m, "predict", 1e5 + 2000 * i, 1e5 + 2000 * i + 1000);
    return tape.texts("first-prediction");
  };
  EXPECT_EQ(first(8e4, true),
            Texts{"takes 80 ms for the first prediction and 1.0 ms for later ones: predict once after loading"});
  EXPECT_EQ(first(4000, true), Texts{});
  EXPECT_EQ(first(8e4, false), Texts{});
}

TEST(TraceRules, ManyThreads) {
  const auto dividing = [](double length) {
    Tape tape;
    const trace::ModelId m = predicting(tape, 20);
    for (int i = 0; i < 20; i++) tape.operation(m, "add", "add", 1000 + 200 * i, 1000 + 200 * i + length, 16);
    return tape.texts("many-threads");
  };
  EXPECT_EQ(dividing(4), Texts{"divides operations of 4.0 µs among 16 threads: load with fewer threads"});
  EXPECT_EQ(dividing(40), Texts{});
}

TEST(TraceRules, AreAllTestedAndListed) {
  const std::vector<TraceRule> rules = trace_rules();
  EXPECT_EQ(rules.size(), 18u);  // a new rule comes with a test above
  for (const TraceRule& r : rules) {
    EXPECT_FALSE(r.summary.empty()) << r.name;
    EXPECT_FALSE(r.remedy.empty()) << r.name;
  }
}

}  // namespace
}  // namespace moka::test
