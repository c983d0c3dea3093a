// SPDX-License-Identifier: Apache-2.0
#include <nanobind/nanobind.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "bindings.h"
#include "moka/model_structure.h"

namespace moka::python {

namespace nb = nanobind;

void bind_structure(nb::module_& m) {
  nb::class_<ModelStructure> structure(m, "ModelStructure", "Core ML's MLModelStructure, as the model's file says it.");
  nb::class_<ModelStructure::Operation> operation(structure, "Operation");
  nb::class_<ModelStructure::Block> block(structure, "Block");
  block.def_ro("inputs", &ModelStructure::Block::inputs, "(value, type) of each.")
      .def_ro("operations", &ModelStructure::Block::operations)
      .def_ro("outputs", &ModelStructure::Block::outputs);
  operation.def_ro("name", &ModelStructure::Operation::name)
      .def_ro("type", &ModelStructure::Operation::type)
      .def_ro("inputs", &ModelStructure::Operation::inputs, "(parameter, values) of each; inline constants unnamed.")
      .def_ro("outputs", &ModelStructure::Operation::outputs, "(value, type) of each.")
      .def_ro("blocks", &ModelStructure::Operation::blocks);
  nb::class_<ModelStructure::Function>(structure, "Function")
      .def_ro("name", &ModelStructure::Function::name)
      .def_ro("opset", &ModelStructure::Function::opset)
      .def_ro("body", &ModelStructure::Function::body);
  nb::class_<ModelStructure::Layer>(structure, "Layer")
      .def_ro("name", &ModelStructure::Layer::name)
      .def_ro("type", &ModelStructure::Layer::type)
      .def_ro("inputs", &ModelStructure::Layer::inputs)
      .def_ro("outputs", &ModelStructure::Layer::outputs)
      .def_ro("depth", &ModelStructure::Layer::depth,
              "In branches and loops, whose layers follow the one that holds them.");
  structure.def_ro("type", &ModelStructure::type)
      .def_ro("functions", &ModelStructure::functions)
      .def_ro("layers", &ModelStructure::layers)
      .def_prop_ro(
          "models",
          [](const ModelStructure& s) {
            std::vector<std::pair<std::string, ModelStructure>> all;
            for (const ModelStructure::Part& part : s.models) all.emplace_back(part.name, part.structure);
            return all;
          },
          "(name, structure) of a pipeline's models.");
}

}  // namespace moka::python
