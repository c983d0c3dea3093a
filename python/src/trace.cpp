// SPDX-License-Identifier: Apache-2.0
#include "moka/trace.h"

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <optional>

#include "bindings.h"
#include "interpreter.h"

namespace moka::python {

namespace nb = nanobind;

namespace {

/// Begins when it is made, so that errors come before the block that it traces.
class PythonTrace {
 public:
  PythonTrace(const std::string& path, bool force) : trace_(std::in_place, path, overwrite(force)) {}
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

}  // namespace

void bind_trace(nb::module_& m) {
  nb::class_<PythonTrace>(m, "Trace", "A trace that is being written. trace() makes it.")
      .def(nb::init<const std::string&, bool>(), nb::arg("path"), nb::arg("force") = false, nb::call_guard<Unlocked>())
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
}

}  // namespace moka::python
