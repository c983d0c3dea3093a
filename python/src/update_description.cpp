// SPDX-License-Identifier: Apache-2.0
#include <nanobind/nanobind.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/variant.h>
#include <nanobind/stl/vector.h>

#include "bindings.h"
#include "moka/description.h"
#include "values.h"

namespace moka::python {

namespace {

using Value = std::variant<bool, int64_t, double>;

Value value_of(const UpdateParameter& p) {
  return std::visit([](auto value) { return Value(value); }, p.value);
}

std::optional<std::pair<Value, Value>> range_of(const UpdateParameter& p) {
  if (p.range) return std::pair<Value, Value>(p.range->first, p.range->second);
  if (p.bounds) return std::pair<Value, Value>(p.bounds->first, p.bounds->second);
  return std::nullopt;
}

}  // namespace

void bind_update_description(nb::module_& m) {
  nb::class_<UpdateParameter>(m, "UpdateParameter",
                              "Core ML's MLParameterDescription: what an update takes, and what is allowed.")
      .def_ro("name", &UpdateParameter::name, "Core ML's key: 'learningRate', 'miniBatchSize', 'epochs', ...")
      .def_prop_ro("default_value", value_of)
      .def_prop_ro("range", range_of, "(lowest, highest), or None.")
      .def_prop_ro(
          "allowed_values",
          [](const UpdateParameter& p) { return p.allowed.empty() ? std::nullopt : std::optional(p.allowed); },
          "The allowed integers, or None.");

  nb::class_<UpdatableLayer>(m, "UpdatableLayer", "A layer whose weights an update changes.")
      .def_ro("name", &UpdatableLayer::name)
      .def_ro("type", &UpdatableLayer::type, "'innerProduct', 'convolution', ...")
      .def_ro("parameters", &UpdatableLayer::parameters, "Its weights, as Model(parameters=) names them.");

  nb::class_<LossLayer>(m, "LossLayer", "What an update makes small.")
      .def_ro("name", &LossLayer::name)
      .def_prop_ro(
          "type", [](const LossLayer& l) { return std::string(to_string(l.kind)); },
          "'categoricalCrossEntropy' or 'meanSquaredError'.")
      .def_ro("input", &LossLayer::input, "The value of the network that is compared.")
      .def_ro("target", &LossLayer::target, "The value with which it is compared.")
      .def_ro("training_input", &LossLayer::training_input,
              "The training input that gives the target: the target itself, or the label of a classifier.");

  nb::class_<NearestNeighbors>(m, "NearestNeighbors", "What a nearest-neighbors classifier is made of.")
      .def_ro("dimensions", &NearestNeighbors::dimensions)
      .def_ro("samples", &NearestNeighbors::samples)
      .def_ro("index", &NearestNeighbors::index, "'linear' or 'kdTree'.")
      .def_ro("leaf_size", &NearestNeighbors::leaf_size)
      .def_ro("weighting", &NearestNeighbors::weighting, "'uniform' or 'inverseDistance'.")
      .def_ro("string_labels", &NearestNeighbors::string_labels)
      .def_ro("default_label", &NearestNeighbors::default_label,
              "The label that a model without samples predicts; an integer as text.");

  nb::class_<UpdateDescription>(m, "UpdateDescription",
                                "What a model can learn. The last model of a pipeline is the one that learns.")
      .def_ro("training_inputs", &UpdateDescription::training_inputs)
      .def_ro("layers", &UpdateDescription::layers)
      .def_ro("losses", &UpdateDescription::losses)
      .def_prop_ro(
          "optimizer",
          [](const UpdateDescription& u) { return u.optimizer.empty() ? std::nullopt : std::optional(u.optimizer); },
          "'sgd', 'adam' or None.")
      .def_prop_ro(
          "parameters",
          [](const UpdateDescription& u) {
            std::map<std::string, UpdateParameter> out;
            for (const UpdateParameter& p : u.parameters) out.emplace(p.name, p);
            return out;
          },
          "By Core ML's keys: 'learningRate', 'miniBatchSize', 'momentum', 'beta1', 'beta2', 'eps', 'epochs', "
          "'shuffle', 'seed', 'numberOfNeighbors'.")
      .def_ro("nearest_neighbors", &UpdateDescription::neighbors)
      .def_ro("stage", &UpdateDescription::stage, "The indices that lead to the model that learns, in a pipeline.")
      .def_ro("remarks", &UpdateDescription::remarks, "What Core ML does differently.");
}

}  // namespace moka::python
