// SPDX-License-Identifier: Apache-2.0
#include "moka/trace.h"

#include <nanobind/nanobind.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <map>
#include <optional>

#include "bindings.h"
#include "interpreter.h"
#include "moka/conclusions.h"

namespace moka::python {

namespace nb = nanobind;

namespace {

/// Begins when it is made, so that errors come before the block that it traces.
class PythonTrace {
 public:
  PythonTrace(const std::string& path, bool force, size_t ring, double last)
      : trace_(std::in_place, path, overwrite(force), TraceRing{ring, last}) {}
  void stop() {
    if (trace_) trace_->stop();
  }
  const std::string& path() const { return trace_->path(); }

 private:
  std::optional<Trace> trace_;
};

/// A TraceSpan that Python ends.
class PythonSpan {
 public:
  PythonSpan(std::string name, int64_t bytes, std::string reason)
      : name_(std::move(name)), bytes_(bytes), reason_(std::move(reason)) {}
  void enter() { span_.emplace(name_, bytes_, reason_); }
  void exit() { span_.reset(); }

 private:
  std::string name_;
  int64_t bytes_;
  std::string reason_;
  std::optional<TraceSpan> span_;
};

void bind_conclusions(nb::module_& m) {
  nb::class_<TraceEvent>(m, "TraceEvent", "An event that shows a conclusion.")
      .def_ro("process", &TraceEvent::process)
      .def_ro("model", &TraceEvent::model)
      .def_ro("lane", &TraceEvent::lane, "'Activity', 'Data' or 'Compute'.")
      .def_ro("thread", &TraceEvent::thread)
      .def_ro("name", &TraceEvent::name)
      .def_ro("kind", &TraceEvent::kind)
      .def_ro("start", &TraceEvent::start, "Seconds since the first event of the trace.")
      .def_ro("seconds", &TraceEvent::seconds)
      .def_prop_ro("details", [](const TraceEvent& e) {
        return std::map<std::string, std::string>(e.details.begin(), e.details.end());
      });
  nb::class_<TraceConclusion>(m, "TraceConclusion", "What a rule concludes from a trace.")
      .def_ro("rule", &TraceConclusion::rule, "'loaded-repeatedly'.")
      .def_ro("process", &TraceConclusion::process)
      .def_ro("model", &TraceConclusion::model)
      .def_ro("text", &TraceConclusion::text)
      .def_ro("remedy", &TraceConclusion::remedy)
      .def_ro("count", &TraceConclusion::count, "How many events it is drawn from.")
      .def_ro("seconds", &TraceConclusion::seconds, "How long these events take, on all threads.")
      .def_ro("share", &TraceConclusion::share, "The part of the time that the trace covers.")
      .def_ro("events", &TraceConclusion::events, "Some of the events, with the first and the longest.")
      .def("__repr__",
           [](const TraceConclusion& c) { return "<moka.TraceConclusion " + c.rule + ": " + c.text + ">"; });
  nb::class_<TraceConclusions>(m, "TraceConclusions", "What a trace tells about the program that it was taken of.")
      .def_ro("seconds", &TraceConclusions::seconds)
      .def_ro("predictions", &TraceConclusions::predictions)
      .def_ro("models", &TraceConclusions::models)
      .def_ro("left_out", &TraceConclusions::left_out, "Events that a full ring or a slow writer left out.")
      .def_ro("conclusions", &TraceConclusions::conclusions, "The most expensive first.")
      .def("to_json", [](const TraceConclusions& c) { return to_json(c); });
  const auto options = [](std::vector<std::string> only, std::vector<std::string> ignore, const std::string& rules) {
    return ConclusionOptions{std::move(only), std::move(ignore), rules};
  };
  m.def(
      "conclude_trace",
      [options](const std::string& path, std::vector<std::string> only, std::vector<std::string> ignore,
                const std::string& rules) {
        return conclude_trace(path, options(std::move(only), std::move(ignore), rules));
      },
      nb::arg("path"), nb::arg("only"), nb::arg("ignore"), nb::arg("rules"), nb::call_guard<Unlocked>());
  m.def(
      "conclusions_page",
      [options](const std::string& path, std::vector<std::string> only, std::vector<std::string> ignore,
                const std::string& rules) {
        return conclusions_page(path, options(std::move(only), std::move(ignore), rules));
      },
      nb::arg("path"), nb::arg("only"), nb::arg("ignore"), nb::arg("rules"), nb::call_guard<Unlocked>());
}

}  // namespace

void bind_trace(nb::module_& m) {
  nb::class_<PythonTrace>(m, "Trace", "A trace that is being written. trace() makes it.")
      .def(nb::init<const std::string&, bool, size_t, double>(), nb::arg("path"), nb::arg("force") = false,
           nb::arg("ring") = 0, nb::arg("last") = 0.0, nb::call_guard<Unlocked>())
      .def_prop_ro("path", &PythonTrace::path)
      .def("stop", &PythonTrace::stop, nb::call_guard<Unlocked>(),
           "Ends it. Raises IOError: not all could be written.");

  nb::class_<PythonSpan>(m, "TraceSpan")
      .def(nb::init<std::string, int64_t, std::string>(), nb::arg("name"), nb::arg("bytes") = 0, nb::arg("reason") = "")
      .def("enter", &PythonSpan::enter)
      .def("exit", &PythonSpan::exit);

  nb::class_<TraceGroup>(m, "TraceGroup", "Slices of a trace that have all of these in common.")
      .def_ro("lane", &TraceGroup::lane, "'Activity', 'Data' or 'Compute'.")
      .def_ro("process", &TraceGroup::process)
      .def_ro("model", &TraceGroup::model)
      .def_ro("name", &TraceGroup::name)
      .def_ro("kind", &TraceGroup::kind, "'predict', the type of an operation, 'convert', ...")
      .def_ro("device", &TraceGroup::device)
      .def_ro("kernel", &TraceGroup::kernel)
      .def_ro("reason", &TraceGroup::reason)
      .def_ro("count", &TraceGroup::count)
      .def_ro("total", &TraceGroup::total, "Seconds.")
      .def_ro("minimum", &TraceGroup::minimum)
      .def_prop_ro("average", &TraceGroup::average)
      .def_ro("maximum", &TraceGroup::maximum)
      .def_ro("bytes", &TraceGroup::bytes)
      .def("__repr__", [](const TraceGroup& g) {
        return "<moka.TraceGroup " + g.lane + " " + g.kind + " '" + g.name + "' x " + std::to_string(g.count) + ">";
      });

  nb::class_<TraceCounter>(m, "TraceCounter")
      .def_ro("name", &TraceCounter::name)
      .def_ro("process", &TraceCounter::process)
      .def_ro("is_bytes", &TraceCounter::is_bytes)
      .def_ro("samples", &TraceCounter::samples)
      .def_ro("minimum", &TraceCounter::minimum)
      .def_ro("mean", &TraceCounter::mean)
      .def_ro("maximum", &TraceCounter::maximum);

  nb::class_<TraceSummary>(m, "TraceSummary", "How often everything in a trace happened and how long it took.")
      .def_ro("seconds", &TraceSummary::seconds)
      .def_ro("unfinished", &TraceSummary::unfinished)
      .def_ro("groups", &TraceSummary::groups)
      .def_ro("counters", &TraceSummary::counters);
  m.def(
      "summarize_trace", [](const std::string& path) { return summarize_trace(path); }, nb::arg("path"),
      nb::call_guard<Unlocked>());
  m.def(
      "allow_tracing", [](const std::string& where) { return allow_tracing(where); }, nb::arg("where"),
      nb::call_guard<Unlocked>());
  bind_conclusions(m);
}

}  // namespace moka::python
