// SPDX-License-Identifier: Apache-2.0
#include "moka/report.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <stdexcept>
#include <thread>

#include "moka/custom.h"
#include "moka/trace.h"
#include "temporary_folder.h"

namespace moka {
namespace {

constexpr const char* kNet = R"(program(1.3)
{
  func main<ios18>(tensor<fp32, [1, 16, 24, 24]> x, tensor<fp32, [16, 16, 3, 3]> w) {
    tensor<fp32, [1, 16, 24, 24]> first = conv(x = x, weight = w, pad_type = string("same"))[name = string("first")];
    tensor<fp32, [1, 16, 24, 24]> second = relu(x = first)[name = string("second")];
    tensor<fp32, [1, 16, 24, 24]> z = softmax(x = second, axis = int32(1))[name = string("z")];
  } -> (z);
}
)";
constexpr const char* kCounter = R"(program(1.3)
{
  func main<ios18>(tensor<fp32, [1]> x, state<tensor<fp32, [1]>> sum) {
    tensor<fp32, [1]> before = read_state(input = sum)[name = string("before")];
    tensor<fp32, [1]> after = add(x = before, y = x)[name = string("after")];
    write_state(input = sum, data = after)[name = string("write")];
  } -> (after);
}
)";

Model net(const ModelConfiguration& c) { return Model::from_mil(kNet, c); }

/// A short setting whose machine is known.
ReportSetting quick(const std::string& name = "default") {
  ReportSetting s;
  s.name = name;
  s.seconds = 0.02;
  s.configuration.threads = 1;
  s.machine = ReportMachine{{{"cpu", "cpu", "a processor", 1e11, 1e11, 1e10}}, "the test"};
  return s;
}

const Report& measured() {
  static const Report report = measure_report({"net", "", "", 0, 0}, net, {quick()});
  return report;
}

ErrorKind kind_of(const std::function<void()>& act, std::string* message = nullptr) {
  try {
    act();
  } catch (const Exception& e) {
    if (message != nullptr) *message = e.what();
    return e.kind();
  }
  return ErrorKind{};
}

TEST(Report, StatisticsAreConsistent) {
  const Report& report = measured();
  EXPECT_EQ(report.model.name, "net");
  EXPECT_EQ(report.model.type, net({}).description().type);
  ASSERT_EQ(report.settings.size(), 1u);
  const MeasuredSetting& s = report.settings[0];
  ASSERT_FALSE(s.failure) << s.failure->message;
  for (const TimeStatistics* t : {&s.load, &s.steady}) {
    EXPECT_GT(t->minimum, 0);
    EXPECT_LE(t->minimum, t->median);
    EXPECT_LE(t->median, t->p90);
    EXPECT_LE(t->p90, t->p99);
    EXPECT_LE(t->p99, t->maximum);
    EXPECT_LE(t->minimum, t->mean);
    EXPECT_LE(t->mean, t->maximum);
    EXPECT_LE(t->samples.size(), t->count);
  }
  EXPECT_EQ(s.load.count, 3u);
  EXPECT_GE(s.steady.count, 10u);
  EXPECT_GT(s.first, 0);
  EXPECT_EQ(s.threads, 1);
  EXPECT_GT(s.memory.arena_bytes, 0u);
  EXPECT_LE(s.memory.arena_bytes, s.memory.unshared_bytes);
  EXPECT_GT(s.memory.resident_before, 0u);
  EXPECT_LE(s.memory.peak_after_load_bytes, s.memory.peak_bytes);
  EXPECT_FALSE(report.compilation);
}

TEST(Report, WorkAndSharesOfOperations) {
  const MeasuredSetting& s = measured().settings[0];
  double shares = 0;
  std::vector<std::string> kernels;
  for (const ReportedOperation& o : s.operations) {
    shares += o.share.value_or(0);
    if (!o.kernel.empty()) kernels.push_back(o.name);
    if (o.type != "conv") continue;
    const double results = 16 * 24 * 24;
    // A fused relu passes once over the result.
    EXPECT_EQ(o.arithmetic, results * 16 * 9 * 2 + results * static_cast<double>(o.fused.size()));
    EXPECT_EQ(o.bytes_moved, 4 * (2 * results + 16 * 16 * 9));
    ASSERT_TRUE(o.roof);
    const double least = std::max(o.arithmetic / 1e11, o.bytes_moved / 1e10);
    EXPECT_DOUBLE_EQ(o.roof->fraction, least / o.measured_seconds);
    EXPECT_EQ(o.roof->is_arithmetic, o.arithmetic / 1e11 > o.bytes_moved / 1e10);
  }
  EXPECT_NEAR(shares, 1, 1e-9);
  EXPECT_EQ(std::count(kernels.begin(), kernels.end(), "first"), 1);
  EXPECT_EQ(s.plan.operations_in_source, 3u);
  EXPECT_EQ(s.plan.predictions % 2, 1);
  ASSERT_TRUE(s.plan.coverage);
  const ReportCoverage& c = *s.plan.coverage;
  EXPECT_EQ(c.error, "");
  EXPECT_EQ(c.predictions, s.plan.predictions);
  EXPECT_NEAR(c.fraction, (c.operations_seconds + c.conversions_seconds) / c.prediction_seconds, 1e-9);
}

TEST(Report, JsonComesBackEqual) {
  Report report = measured();
  report.compilation = ReportCompilation{0, "cannot \"be\" compiled"};
  report.settings.push_back({});
  report.settings[1].name = "fails";
  report.settings[1].failure = Failure{ErrorKind::out_of_budget, "too large"};
  report.settings[0].operations[0].bids.push_back({"gpu", "gpu", 0, "no <such> layer", "another", "a page"});
  report.settings[0].operations[0].shape = "1x3";
  report.settings[0].operations[0].candidates = {{"a.kernel", 1e-6}, {"b", 2}};
  const std::string text = to_json(report);
  const Report back = parse_report(text);
  EXPECT_EQ(to_json(back), text);
  EXPECT_EQ(back.settings[1].failure->kind, ErrorKind::out_of_budget);
  EXPECT_EQ(back.settings[0].steady.samples, report.settings[0].steady.samples);
  EXPECT_EQ(back.settings[0].operations[0].candidates[1].seconds, 2);
  const std::string page = report_page(report);
  EXPECT_NE(page.find("no \\u003csuch> layer"), std::string::npos);
  EXPECT_EQ(page.find("<such>"), std::string::npos);
}

TEST(Report, ReportsOfEarlierVersionsAreRead) {
  const Report old =
      parse_report(R"({"format": "moka-report", "version": 1, "moka": "0.1", "date": "2026-01-01T00:00:00Z",
    "processors": 2, "future": [1], "model": {"name": "Net", "path": "Net", "type": "mlProgram", "specificationVersion": 8, "bytes": 12},
    "settings": [{"name": "default", "options": {"computeUnits": "cpuOnly", "threads": 2, "precision": "exact", "device": "",
      "function": "", "batch": 1, "shapes": []}, "first": 0.5,
      "steady": {"count": 3, "mean": 2, "median": 2, "p90": 3, "p99": 3, "minimum": 1, "maximum": 3, "samples": [1, 2, 3]},
      "load": {"count": 1, "mean": 1, "median": 1, "p90": 1, "p99": 1, "minimum": 1, "maximum": 1, "samples": [1],
        "parts": {"open": 1, "import": 0, "passes": 0, "plan": 0, "pack": 0}},
      "machine": {"units": [{"device": "cpu", "unit": "cpu", "description": "p", "fp32": 1, "fp16": 1, "bytesPerSecond": 1}], "from": "f"},
      "memory": {"weightBytes": 1, "packedBytes": 2, "arenaBytes": 3, "unsharedArenaBytes": 4, "peakBytes": 5, "peakAfterLoadBytes": 5},
      "plan": {"predictionSeconds": 1, "operationsSeconds": 1, "predictions": 3, "operationsInSource": 1, "folded": 0, "complete": true},
      "operations": [{"name": "a", "type": "relu", "device": "cpu", "kernel": "k", "note": "", "depth": 0, "fused": ["b"],
        "refusals": [], "outputs": ["tensor<fp32, [1]>"], "layout": "row_major", "estimatedSeconds": null}], "remarks": []},
      {"name": "bad", "error": "why", "wrongUse": true}]})");
  EXPECT_EQ(old.settings[0].compute_units, ComputeUnits::cpu_only);
  EXPECT_EQ(old.settings[0].precision, Precision::exact);
  EXPECT_EQ(old.settings[0].memory.peak_bytes, 5u);
  EXPECT_EQ(old.settings[0].memory.resident_before, 0u);
  EXPECT_EQ(old.settings[0].operations[0].fused, std::vector<std::string>{"b"});
  EXPECT_EQ(old.settings[1].failure->kind, ErrorKind::invalid_argument);
  EXPECT_FALSE(old.compilation);
}

TEST(Report, TheFirstVersionIsRead) {
  const Report old = read_report(std::filesystem::path(MOKA_GOLDEN) / "report" / "version_1.json");
  EXPECT_EQ(old.model.type, "neuralNetworkClassifier");
  EXPECT_EQ(old.model.bytes, 3082u);
  EXPECT_DOUBLE_EQ(old.compilation->seconds, 0.001640744);
  ASSERT_EQ(old.settings.size(), 2u);
  EXPECT_EQ(old.settings[0].steady.count, 657u);
  EXPECT_EQ(old.settings[0].steady.samples.size(), 40u);
  EXPECT_EQ(old.settings[0].machine.from, "for this report");
  EXPECT_EQ(old.settings[0].plan.coverage->predictions, 101);
  EXPECT_EQ(old.settings[1].failure->message, "function: expected one of 'main', got 'x'");
  EXPECT_EQ(old.settings[1].failure->kind, ErrorKind::invalid_argument);
  EXPECT_EQ(compare_reports(old, old).regressions, 0u);
}

TEST(Report, OtherTextsAreRefused) {
  const auto why = [](const std::string& text) {
    std::string message;
    EXPECT_EQ(kind_of([&] { parse_report(text); }, &message), ErrorKind::malformed) << text;
    return message;
  };
  EXPECT_EQ(why("[1, 2"), "expected a report that 'moka report --save' wrote, got something else");
  EXPECT_EQ(why(std::string(100'000, '[')),
            "expected a report that 'moka report --save' wrote, got lists nested too deep");
  EXPECT_EQ(why(R"({"format": "moka-report", "version": 2})"),
            "expected a report that 'moka report --save' wrote, got one of another version");
  const std::string head = R"({"format": "moka-report", "version": 1, "model": {"name": "n", "type": "t", "bytes": )";
  EXPECT_EQ(
      why(head + R"(1e30, "specificationVersion": 1}, "settings": []})"),
      "expected a report that 'moka report --save' wrote, got one in which 'model.bytes' should be a whole number and "
      "is 1e+30");
  EXPECT_EQ(
      why(head + R"(1, "specificationVersion": 1}, "settings": [{"name": "s", "steady": 3}]})"),
      "expected a report that 'moka report --save' wrote, got one in which 'settings[0].steady' should be an object "
      "and is 3");
  EXPECT_EQ(why(head + R"(1, "specificationVersion": 1}, "settings": 3})"),
            "expected a report that 'moka report --save' wrote, got one in which 'settings' should be a list and is 3");
}

Report with_samples(double seconds, double p90) {
  Report report = measured();
  TimeStatistics& t = report.settings[0].steady;
  t.samples.assign(100, seconds);
  t.median = seconds;
  t.p90 = p90;
  return report;
}

ReportChange::Verdict verdict_of(const ReportComparison& comparison, const std::string& what) {
  for (const ReportChange& c : comparison.changes)
    if (c.what == what) return c.verdict;
  ADD_FAILURE() << "nothing about " << what;
  return {};
}

TEST(Report, ComparisonFindsWhatIsBeyondNoise) {
  using Verdict = ReportChange::Verdict;
  const ReportComparison same = compare_reports(measured(), measured());
  EXPECT_EQ(same.regressions, 0u);
  for (const ReportChange& c : same.changes) EXPECT_EQ(c.verdict, Verdict::same) << c.what;
  const Report fast = with_samples(1e-3, 1e-3), slow = with_samples(2e-3, 2e-3);
  const ReportComparison worse = compare_reports(fast, slow);
  EXPECT_EQ(worse.regressions, 2u);
  EXPECT_EQ(verdict_of(worse, "prediction"), Verdict::worse);
  EXPECT_EQ(verdict_of(compare_reports(slow, fast), "prediction"), Verdict::better);
  EXPECT_EQ(compare_reports(fast, slow, 2).regressions, 0u);
  Report noisy = fast;
  for (size_t i = 50; i < 100; i++) noisy.settings[0].steady.samples[i] = 4e-3;
  EXPECT_EQ(verdict_of(compare_reports(noisy, slow), "prediction"), Verdict::same);
}

TEST(Report, ComparisonOfMemoryLeavesOutWhatWasThereBefore) {
  Report a = measured(), b = measured();
  a.settings[0].memory.resident_before = 100'000'000;
  a.settings[0].memory.peak_bytes = 110'000'000;
  b.settings[0].memory.resident_before = 900'000'000;
  b.settings[0].memory.peak_bytes = 910'000'000;
  EXPECT_EQ(verdict_of(compare_reports(a, b), "peak memory"), ReportChange::Verdict::same);
  b.settings[0].memory.peak_bytes = 930'000'000;
  const ReportComparison found = compare_reports(a, b);
  EXPECT_EQ(verdict_of(found, "peak memory"), ReportChange::Verdict::worse);
  EXPECT_EQ(found.regressions, 1u);
}

TEST(Report, ComparisonRemarksOnSettings) {
  Report a = measured(), b = measured();
  b.model.name = "other";
  b.settings[0].failure = Failure{ErrorKind::data, "no"};
  const ReportComparison found = compare_reports(a, b);
  EXPECT_EQ(found.regressions, 1u);
  EXPECT_EQ(found.remarks,
            (std::vector<std::string>{"the models have different names: net and other", "default: fails now: no"}));
  b.settings[0].name = "else";
  EXPECT_EQ(compare_reports(a, b).remarks.back(), "the reports have no setting in common: default and else");
  b = measured();
  for (ReportedOperation& o : b.settings[0].operations)
    if (o.name == "first") o.kernel = "another";
  EXPECT_EQ(compare_reports(a, b).remarks.size(), 1u);
  EXPECT_EQ(kind_of([&] { compare_reports(a, b, -1); }), ErrorKind::invalid_argument);
}

TEST(Report, AStopEndsIt) {
  std::stop_source source;
  ReportOptions options;
  options.stop = source.get_token();
  std::vector<std::string> stages;
  options.progress = [&](const ReportProgress& p) {
    if (stages.empty() || stages.back() != p.stage) stages.emplace_back(p.stage);
    if (p.stage == "predict" && stages.size() > 1) source.request_stop();
  };
  ReportSetting endless = quick();
  endless.seconds = 1e6;
  EXPECT_EQ(kind_of([&] { measure_report({}, net, {endless}, options); }), ErrorKind::cancelled);
  EXPECT_EQ(stages, (std::vector<std::string>{"load", "predict"}));
  options = {};
  options.deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(50);
  EXPECT_EQ(kind_of([&] { measure_report({}, net, {endless}, options); }), ErrorKind::deadline_exceeded);
}

TEST(Report, MeasuredPlansEndEarly) {
  const Model model = net({});
  const ComputePlan plan = model.measure_plan({}, 3);
  EXPECT_EQ(plan.predictions, 3);
  EXPECT_GT(plan.measured_seconds, 0);
  std::stop_source source;
  source.request_stop();
  PredictionOptions options;
  options.stop = source.get_token();
  EXPECT_EQ(kind_of([&] { model.measure_plan({}, 3, options); }), ErrorKind::cancelled);
  EXPECT_EQ(kind_of([&] { model.measure_plan({}, 0); }), ErrorKind::invalid_argument);
}

TEST(Report, WhatProgressThrowsLeaves) {
  ReportOptions options;
  options.progress = [](const ReportProgress&) { throw std::logic_error("a mistake"); };
  EXPECT_THROW(measure_report({}, net, {quick()}, options), std::logic_error);
  for (const char* stage : {"load", "predict", "operations"}) {
    options.progress = [&](const ReportProgress& p) {
      if (p.stage == stage) throw Exception(ErrorKind::data, "a mistake");
    };
    EXPECT_EQ(kind_of([&] { measure_report({}, net, {quick(), quick("other")}, options); }), ErrorKind::data) << stage;
  }
}

TEST(Report, AFailureIsThatOfItsSetting) {
  ReportSetting bad = quick("bad");
  bad.shapes = {{"x", {1, 16, 25, 24, 3}}};
  ReportSetting unknown = quick("unknown");
  unknown.shapes = {{"q", {1}}};
  const Report report = measure_report({}, net, {bad, unknown, quick()});
  ASSERT_TRUE(report.settings[0].failure);
  EXPECT_EQ(report.settings[0].failure->kind, ErrorKind::invalid_argument);
  EXPECT_EQ(report.settings[0].shapes, std::vector<std::string>{"x=1x16x25x24x3"});
  EXPECT_TRUE(report.settings[0].operations.empty());
  EXPECT_EQ(report.settings[1].failure->message, "shape q=1: expected an array input of the model");
  EXPECT_FALSE(report.settings[2].failure);
}

TEST(Report, MistakesAreRefused) {
  const auto refused = [](const auto& change) {
    ReportSetting s = quick();
    change(s);
    std::string message;
    EXPECT_EQ(kind_of([&] { measure_report({}, net, {s}); }, &message), ErrorKind::invalid_argument);
    return message;
  };
  EXPECT_EQ(refused([](auto& s) { s.seconds = 0; }), "setting 'default': expected seconds above 0, got 0");
  EXPECT_EQ(refused([](auto& s) { s.batch = 0; }), "setting 'default': expected a batch of 1 to 1024, got 0");
  std::string message;
  kind_of([] { measure_report({}, net, {quick(), quick()}); }, &message);
  EXPECT_EQ(message, "setting 'default': expected settings of different names, got two of this one");
  EXPECT_EQ(kind_of([] { measure_report("/absent.mlpackage"); }), ErrorKind::not_found);
  EXPECT_EQ(kind_of([] { read_report("/absent.json"); }), ErrorKind::not_found);
  EXPECT_EQ(kind_of([] { read_report("/"); }), ErrorKind::io);
}

TEST(Report, GivenInputsStatesAndBatches) {
  size_t made = 0;
  ReportSetting s = quick();
  s.batch = 3;
  s.make_inputs = [&](const Model& model) {
    made++;
    EXPECT_EQ(model.function().states.size(), 1u);
    return Features{{"x", MultiArray::of(std::vector<float>{2}, {1})}};
  };
  const auto load = [](const ModelConfiguration& c) { return Model::from_mil(kCounter, c); };
  const Report report = measure_report({}, load, {s});
  ASSERT_FALSE(report.settings[0].failure) << report.settings[0].failure->message;
  EXPECT_EQ(made, 1u);
  EXPECT_EQ(report.settings[0].batch, 3);
  s.make_inputs = nullptr;
  s.inputs = {{"y", 1.0}};
  EXPECT_EQ(measure_report({}, load, {s}).settings[0].failure->kind, ErrorKind::invalid_argument);
}

TEST(Report, AFileIsCompiledAndNoFileStays) {
  const test::TemporaryFolder folder;
  const std::string model = std::string(MOKA_GOLDEN) + "/flexible/range.mlmodel";
  const char* before = std::getenv("TMPDIR");
  const std::string kept = before == nullptr ? "" : before;
  setenv("TMPDIR", folder.path().c_str(), 1);
  bool was_used = false;
  ReportOptions options;
  options.progress = [&](const ReportProgress& p) {
    if (p.stage == "load") was_used |= !std::filesystem::is_empty(folder.path());
  };
  const Report report = measure_report(model + "/", {quick()}, options);
  EXPECT_EQ(report.model.name, "range.mlmodel");
  EXPECT_EQ(report.model.path, model);
  EXPECT_EQ(report.model.bytes, std::filesystem::file_size(model));
  EXPECT_EQ(report.model.type, Model::describe(model).type);
  ASSERT_TRUE(report.compilation);
  EXPECT_EQ(report.compilation->error, "");
  EXPECT_GT(report.compilation->seconds, 0);
  EXPECT_EQ(report.settings[0].plan.coverage->error, "");
  EXPECT_FALSE(was_used);
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
  setenv("TMPDIR", (folder / "absent").c_str(), 1);
  const Report without = measure_report({}, net, {quick()});
  EXPECT_EQ(without.settings[0].plan.coverage->error.substr(0, 12), "there is no ");
  kept.empty() ? unsetenv("TMPDIR") : setenv("TMPDIR", kept.c_str(), 1);
}

TEST(Report, AnEarlierPeakDoesNotCount) {
  constexpr size_t kLarge = 200'000'000;
  {
    const std::vector<char> touched(kLarge, 1);
    EXPECT_EQ(std::count(touched.begin(), touched.end(), 1), static_cast<std::ptrdiff_t>(kLarge));
  }
  ReportOptions options;
  options.reset_peak = false;
  const ReportMemory kept = measure_report({}, net, {quick()}, options).settings[0].memory;
  EXPECT_FALSE(kept.peak_is_of_setting);
  EXPECT_GE(kept.peak_bytes, kLarge);
  const ReportMemory own = measure_report({}, net, {quick()}).settings[0].memory;
  if (!own.peak_is_of_setting) GTEST_SKIP() << "the system does not reset the peak of resident memory";
  EXPECT_GE(own.peak_bytes, own.resident_before);
  EXPECT_LT(own.peak_bytes, own.resident_before + kLarge / 2);
}

TEST(Report, OtherThreadsDoNotCount) {
  std::atomic<bool> is_done = false;
  std::thread other([&] {
    const Model model = net({});
    const Features inputs = model.random_inputs();
    while (!is_done) (void)model.predict(inputs);
  });
  const Report report = measure_report({}, net, {quick()});
  is_done = true;
  other.join();
  const ReportPlan& plan = report.settings[0].plan;
  EXPECT_EQ(plan.coverage->error, "");
  EXPECT_EQ(plan.coverage->predictions, plan.predictions);
  EXPECT_LE(plan.coverage->fraction, 1);
}

TEST(Report, ATracedProgramHasNoCoverage) {
  const test::TemporaryFolder folder;
  const Trace trace((folder / "t.pftrace").string());
  const Report report = measure_report({}, net, {quick()});
  EXPECT_EQ(report.settings[0].plan.coverage->error, "the program is traced already");
}

TEST(Report, SettingsAreCombined) {
  ReportChoices choices;
  choices.compute_units = {ComputeUnits::all, ComputeUnits::cpu_only};
  choices.threads = {1, 2};
  choices.batches = {4};
  const std::vector<ReportSetting> made = report_settings(quick("base"), choices);
  ASSERT_EQ(made.size(), 4u);
  EXPECT_EQ(made[0].name, "all, 1 thread, batch of 4");
  EXPECT_EQ(made[3].name, "cpuOnly, 2 threads, batch of 4");
  EXPECT_EQ(made[3].configuration.threads, 2);
  EXPECT_EQ(made[3].batch, 4);
  EXPECT_EQ(report_settings(quick("base"), {})[0].name, "base");
  choices.threads.resize(13);
  EXPECT_EQ(kind_of([&] { report_settings(quick(), choices); }), ErrorKind::invalid_argument);
}

TEST(Report, FilesAreReportsOrRefused) {
  const test::TemporaryFolder folder;
  const std::filesystem::path path = folder / "r.json", other = folder / "text";
  write_report(path, measured());
  write_report(path, measured());
  EXPECT_EQ(to_json(read_report(path)), to_json(measured()));
  std::ofstream(other) << "mine";
  EXPECT_EQ(kind_of([&] { write_report(other, measured()); }), ErrorKind::invalid_argument);
  write_report(other, measured(), Overwrite::any);
  std::ofstream(other) << "{}";
  std::string message;
  EXPECT_EQ(kind_of([&] { read_report(other); }, &message), ErrorKind::malformed);
  EXPECT_EQ(message.substr(0, other.string().size()), other.string());
  EXPECT_EQ(kind_of([&] { read_report(path.string() + '\0' + "x"); }, &message), ErrorKind::invalid_argument);
  EXPECT_EQ(message.substr(0, path.string().size()), path.string());
}

}  // namespace
}  // namespace moka
