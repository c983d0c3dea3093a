// SPDX-License-Identifier: Apache-2.0
#include "moka/edit.h"

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include "bindings.h"
#include "interpreter.h"
#include "values.h"

namespace moka::python {

namespace {

edit::Labels labels_of(const List& labels, const char* what) {
  std::vector<int64_t> numbers;
  std::vector<std::string> texts;
  if (nb::try_cast(labels, texts)) return texts;
  if (nb::try_cast(labels, numbers)) return numbers;
  raise_type(std::string(what) + ": expected labels that are all text or all integers");
}

edit::Names names_of(const std::map<std::string, std::string>& names) { return {names.begin(), names.end()}; }

}  // namespace

void bind_edit(nb::module_& m) {
  nb::module_ edit = m.def_submodule("edit", "What moka.edit is made of.");
  nb::enum_<edit::Side>(edit, "Side")
      .value("any", edit::Side::any)
      .value("inputs", edit::Side::inputs)
      .value("outputs", edit::Side::outputs);
  edit.def("rename_features", [](const ModelSource& s, const std::map<std::string, std::string>& names,
                                 edit::Side side) { return edit::rename_features(s, names_of(names), side); });
  edit.def("rename_operations", [](const ModelSource& s, const std::map<std::string, std::string>& names) {
    return edit::rename_operations(s, names_of(names));
  });
  edit.def("rename_values", [](const ModelSource& s, const std::map<std::string, std::string>& names) {
    return edit::rename_values(s, names_of(names));
  });
  edit.def("set_type", &edit::set_type);
  edit.def("set_image",
           [](const ModelSource& s, const std::string& feature, const std::string& color, std::vector<double> scale,
              std::vector<double> bias, const std::string& layout, edit::Side side) {
             return edit::set_image(s, feature, {color_of(color), std::move(scale), std::move(bias), layout}, side);
           });
  edit.def(
      "normalize",
      [](const ModelSource& s, const std::string& input, const std::vector<double>& mean,
         const std::vector<double>& std,
         std::optional<int> axis) { return edit::normalize(s, input, mean, std, axis); },
      nb::arg("model"), nb::arg("input"), nb::arg("mean"), nb::arg("std"), nb::arg("axis").none());
  using Range = std::pair<int64_t, int64_t>;
  using Sizes = std::tuple<std::vector<Range>, std::vector<std::vector<int64_t>>, std::vector<int64_t>>;
  edit.def("set_sizes", [](const ModelSource& s, const std::map<std::string, Sizes>& inputs) {
    std::map<std::string, edit::InputSizes> all;
    for (const auto& [name, given] : inputs) {
      edit::InputSizes& to = all[name];
      for (const auto& [lower, upper] : std::get<0>(given)) to.ranges.push_back({lower, upper});
      to.shapes = std::get<1>(given);
      to.standard = std::get<2>(given);
    }
    return edit::set_sizes(s, all);
  });
  edit.def("set_labels", [](const ModelSource& s, const List& labels, const std::string& output,
                            const std::string& label, const std::string& probabilities) {
    return edit::set_labels(s, labels_of(labels, "set_labels"), {output, label, probabilities});
  });
  edit.def(
      "add_samples",
      [](const ModelSource& s, const nb::ndarray<float, nb::ndim<2>, nb::c_contig, nb::device::cpu>& rows,
         const List& labels, std::optional<int64_t> neighbors) {
        const std::vector<int64_t> shape{static_cast<int64_t>(rows.shape(0)), static_cast<int64_t>(rows.shape(1))};
        return edit::add_samples(s, MultiArray(rows.data(), DataType::float32, shape), labels_of(labels, "labels"),
                                 neighbors);
      },
      nb::arg("model"), nb::arg("rows"), nb::arg("labels"), nb::arg("neighbors").none());
  edit.def("remove_labels", &edit::remove_labels);
  edit.def(
      "strip_weights", [](const ModelSource& s, std::optional<uint64_t> seed) { return edit::strip_weights(s, seed); },
      nb::arg("model"), nb::arg("seed").none());
  edit.def("set_target", &edit::set_target);
  edit.def("set_metadata", &edit::set_metadata);
  edit.def("set_user_defined", &edit::set_user_defined);
  edit.def("describe_feature", &edit::describe_feature);
  edit.def("cut", &edit::cut);
  edit.def("bisect", [](const ModelSource& s) {
    auto [first, second] = edit::bisect(s);
    return std::pair(std::move(first), std::move(second));
  });
  edit.def("bisect_into_pipeline", &edit::bisect_into_pipeline);
  edit.def("join", [](const std::vector<std::pair<std::string, ModelSource>>& models) { return edit::join(models); });
  edit.def("extract_stage", &edit::extract_stage);
  edit.def("inline_pipeline", &edit::inline_pipeline);
  edit.def("extract_function", &edit::extract_function);
  edit.def("add_function", &edit::add_function);
  edit.def("set_default_function", &edit::set_default_function);
  edit.def("make_updatable", &edit::make_updatable);
  edit.def("set_loss", [](const ModelSource& s, const std::string& loss, const std::string& input,
                          const std::string& name) {
    if (loss != "cross-entropy" && loss != "mse")
      throw Exception(ErrorKind::invalid_argument, "expected the loss 'cross-entropy' or 'mse', got '" + loss + "'");
    using Kind = LossLayer::Kind;
    return edit::set_loss(s, loss == "mse" ? Kind::mean_squared_error : Kind::categorical_cross_entropy, input, name);
  });
  edit.def("set_optimizer", &edit::set_optimizer);
  edit.def(
      "set_update_parameter",
      [](const ModelSource& s, const std::string& name, double value, std::optional<std::pair<double, double>> range,
         std::vector<int64_t> allowed) {
        return edit::set_update_parameter(s, name, {value, range, std::move(allowed)});
      },
      nb::arg("model"), nb::arg("name"), nb::arg("value"), nb::arg("range").none(), nb::arg("allowed"));
  edit.def("check", &edit::check);
}

}  // namespace moka::python
