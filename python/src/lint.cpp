// SPDX-License-Identifier: Apache-2.0
#include "moka/lint.h"

#include <nanobind/nanobind.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "bindings.h"
#include "interpreter.h"
#include "values.h"

namespace moka::python {

namespace {

/// Dicts of values for a function of the model.
std::vector<Features> inputs_of(const std::string& path, const std::string& function, const nb::list& inputs,
                                Borrowed& borrowed) {
  std::vector<Features> out;
  if (nb::len(inputs) == 0) return out;
  const ModelDescription description = Model::describe(path);
  const std::string& name = function.empty() ? description.default_function : function;
  const FunctionDescription* described = nullptr;
  for (const FunctionDescription& f : description.functions)
    if (f.name == name || description.functions.size() == 1) described = &f;
  if (described == nullptr) throw Exception(ErrorKind::invalid_argument, "function '" + name + "': the model has none");
  for (nb::handle item : inputs) out.push_back(to_features(item, described->inputs, borrowed));
  return out;
}

}  // namespace

void bind_lint(nb::module_& m) {
  nb::module_ module = m.def_submodule("lint", "What moka.lint is made of.");
  nb::class_<lint::Finding>(module, "Finding", "What will go wrong, and where.")
      .def_ro("rule", &lint::Finding::rule)
      .def_prop_ro(
          "level", [](const lint::Finding& f) { return std::string(lint::to_string(f.level)); },
          "error, warning or note.")
      .def_ro("function", &lint::Finding::function, "The function of an ML program with several.")
      .def_ro("place", &lint::Finding::place)
      .def_ro("reason", &lint::Finding::reason)
      .def_ro("evidence", &lint::Finding::evidence)
      .def_ro("remedy", &lint::Finding::remedy)
      .def("__repr__", [](const lint::Finding& f) {
        return std::string(lint::to_string(f.level)) + " " + f.rule + ": " + f.place + ": " + f.reason;
      });
  nb::class_<lint::Rule>(module, "Rule", "What is looked for.")
      .def_ro("name", &lint::Rule::name)
      .def_prop_ro("level", [](const lint::Rule& r) { return std::string(lint::to_string(r.level)); })
      .def_ro("summary", &lint::Rule::summary)
      .def_ro("remedy", &lint::Rule::remedy)
      .def_ro("can_fix", &lint::Rule::can_fix);
  nb::class_<lint::Report>(module, "Report", "The findings, the worst first.")
      .def_ro("findings", &lint::Report::findings)
      .def_ro("remarks", &lint::Report::remarks, "What could not be looked at, and why.")
      .def_ro("predictions", &lint::Report::predictions, "With which values were measured.")
      .def_ro("sizes", &lint::Report::sizes, "Combinations of input sizes that were tried.");
  nb::class_<lint::Options>(module, "Options")
      .def(nb::init<>())
      .def_rw("only", &lint::Options::only)
      .def_rw("ignore", &lint::Options::ignore)
      .def_rw("target", &lint::Options::target)
      .def_rw("as_float16", &lint::Options::as_float16)
      .def_rw("ranges", &lint::Options::ranges)
      .def_rw("predict", &lint::Options::predict)
      .def_rw("seed", &lint::Options::seed)
      .def_rw("function", &lint::Options::function);
  module.def("rules", &lint::rules);
  module.def("check", [](const std::string& path, lint::Options options, const List& inputs) {
    Borrowed borrowed;
    options.inputs = inputs_of(path, options.function, inputs, borrowed);
    const Unlocked unlocked;
    return lint::check(path, options);
  });
  module.def("fix", [](const std::string& path, lint::Options options, const List& inputs) {
    Borrowed borrowed;
    options.inputs = inputs_of(path, options.function, inputs, borrowed);
    const Unlocked unlocked;
    lint::Repair repair = lint::fix(path, options);
    return std::pair(std::move(repair.model), std::move(repair.done));
  });
}

}  // namespace moka::python
