// SPDX-License-Identifier: Apache-2.0
#include "check/diff.h"

#include <nanobind/nanobind.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "bindings.h"
#include "interpreter.h"
#include "moka/comparison.h"
#include "moka/difference.h"
#include "values.h"

namespace nb = nanobind;

namespace moka::python {

namespace {

std::optional<int> index_of(int index) { return index < 0 ? std::nullopt : std::optional(index); }

void bind_differences(nb::module_& m) {
  nb::class_<NumberDifference>(m, "NumberDifference", "How two arrays of numbers differ.")
      .def_ro("elements", &NumberDifference::elements)
      .def_ro("different", &NumberDifference::different, "Elements that are not equal.")
      .def_ro("largest", &NumberDifference::largest, "The largest absolute difference of finite elements.")
      .def_ro("snr", &NumberDifference::snr, "Signal to noise in dB, where the first array is the signal.")
      .def_ro("at", &NumberDifference::at, "Indices of the largest difference.")
      .def_ro("first", &NumberDifference::first, "The element there.")
      .def_ro("second", &NumberDifference::second)
      .def_ro("unlike", &NumberDifference::unlike, "Elements that are NaN or infinite on one side only.")
      .def_ro("is_rounding", &NumberDifference::is_rounding, "Rounding to float16 explains the difference.");
  nb::class_<ModelComparison::Difference>(m, "Difference", "What differs between an operation and its partner.")
      .def_prop_ro(
          "kind", [](const ModelComparison::Difference& d) { return name_of(d.kind); },
          "type, input, parameter, weight, or element: the same numbers in another element type.")
      .def_prop_ro(
          "a", [](const ModelComparison::Difference& d) { return index_of(d.a); },
          "Index of the operation in Comparison.a. None: the outputs of the function.")
      .def_prop_ro("b", [](const ModelComparison::Difference& d) { return index_of(d.b); })
      .def_ro("parameter", &ModelComparison::Difference::parameter)
      .def_ro("first", &ModelComparison::Difference::first, "Short text of what the first model has. Empty: absent.")
      .def_ro("second", &ModelComparison::Difference::second)
      .def_ro("first_name", &ModelComparison::Difference::first_name, "Name of the constant or the operation.")
      .def_ro("second_name", &ModelComparison::Difference::second_name)
      .def_ro("numbers", &ModelComparison::Difference::numbers)
      .def_ro("form_changed", &ModelComparison::Difference::form_changed,
              "One side stores the weight in another way, such as a palette, as the texts say.")
      .def("__repr__", [](const ModelComparison::Difference& d) {
        return std::string(name_of(d.kind)) + " " + d.parameter + ": " + d.first + ", " + d.second;
      });
  nb::class_<ModelComparison::Feature>(m, "Feature", "A property of the interface that differs.")
      .def_ro("what", &ModelComparison::Feature::what)
      .def_ro("first", &ModelComparison::Feature::first)
      .def_ro("second", &ModelComparison::Feature::second);
}

}  // namespace

void bind_diff(nb::module_& m) {
  nb::module_ module = m.def_submodule("diff", "What moka.diff is made of.");
  bind_differences(module);
  nb::class_<ModelComparison::Operation>(module, "Operation")
      .def_ro("name", &ModelComparison::Operation::name)
      .def_ro("type", &ModelComparison::Operation::type)
      .def_ro("inputs", &ModelComparison::Operation::inputs, "Parameters with the values that they read.")
      .def_ro("outputs", &ModelComparison::Operation::outputs, "Values with their types.")
      .def_ro("is_transparent", &ModelComparison::Operation::is_transparent,
              "A cast between floating-point types or an identity.")
      .def_prop_ro(
          "partner", [](const ModelComparison::Operation& o) { return index_of(o.partner); },
          "Index of the partner in the other list.")
      .def_ro("paired_by", &ModelComparison::Operation::paired_by, "graph, weights, name or place.")
      .def_prop_ro(
          "fused_into", [](const ModelComparison::Operation& o) { return index_of(o.fused_into); },
          "Without a partner: index of the operation in the other list that takes its place.")
      .def("__repr__", [](const ModelComparison::Operation& o) { return o.name + " (" + o.type + ")"; });
  nb::class_<ModelComparison>(module, "Comparison", "The operations and weights of two functions side by side.")
      .def_ro("function_a", &ModelComparison::function_a)
      .def_ro("function_b", &ModelComparison::function_b)
      .def_ro("a", &ModelComparison::a, "The operations of the first model, without constants.")
      .def_ro("b", &ModelComparison::b)
      .def_ro("differences", &ModelComparison::differences)
      .def_ro("interface", &ModelComparison::interface, "Inputs, outputs, states and class labels that differ.")
      .def_ro("metadata", &ModelComparison::metadata, "Author, descriptions and the like that differ.")
      .def_ro("fault", &ModelComparison::fault, "Why a model cannot be imported, so that only fields are compared.")
      .def_ro("fields", &ModelComparison::fields, "With a fault: fields of the specifications that differ.")
      .def_ro("constants", &ModelComparison::constants, "Compared constants.")
      .def_ro("elements", &ModelComparison::elements, "Their elements.")
      .def_prop_ro("same", &ModelComparison::same);
  module.def(
      "compare_models",
      [](const std::string& a, const std::string& b, const std::string& function_a, const std::string& function_b,
         const ModelConfiguration& c) {
        return compare_models(a, b, {function_a, function_b, c.key});
      },
      nb::arg("a"), nb::arg("b"), nb::arg("function_a"), nb::arg("function_b"), nb::arg("configuration"),
      nb::call_guard<Unlocked>(), "configuration: has the key of encrypted models.");
  nb::class_<DiffOptions>(module, "Options")
      .def(nb::init<>())
      .def_rw("runs", &DiffOptions::runs)
      .def_rw("seed", &DiffOptions::seed)
      .def_prop_rw(
          "map", [](const DiffOptions& o) { return o.map; },
          [](DiffOptions& o, const std::map<std::string, std::string>& map) {
            o.map = {map.begin(), map.end()};
          })
      .def_rw("ranges", &DiffOptions::ranges)
      .def_prop_rw(
          "pixels", [](const DiffOptions& o) { return std::pair(o.pixels.scale, o.pixels.bias); },
          [](DiffOptions& o, std::pair<double, double> p) {
            o.pixels = {p.first, p.second};
          })
      .def_rw("tolerance", &DiffOptions::tolerance, nb::arg().none())
      .def_rw("same_names", &DiffOptions::same_names);
  module.def(
      "values",
      [](const Model& a, const Model& b, const ModelComparison& structure, const List& inputs, const DiffOptions& how) {
        Borrowed borrowed;
        DiffOptions options = how;
        options.inputs = to_rows(inputs, a, borrowed);
        const Unlocked unlocked;
        cli::Diff diff;
        diff.structure = structure;
        diff.values = diff_values(a, b, structure, options);
        return cli::rendered(cli::to_json(diff)["values"]);
      },
      nb::arg("a"), nb::arg("b"), nb::arg("structure"), nb::arg("inputs"), nb::arg("options"), nb::call_guard<Call>(),
      "The values side by side as JSON, as the command line prints them.");
}

}  // namespace moka::python
