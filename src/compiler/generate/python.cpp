// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "base/error.h"
#include "compiler/generate/generate.h"
#include "compiler/generate/reserved.h"
#include "compiler/generate/source.h"

namespace moka::compiler {
namespace {

using import::FeatureKind;

constexpr PixelFormats pillow_modes{"RGBA", "L", "F"};

std::string python_type(const Field& f) {
  switch (f.feature.kind) {
    case FeatureKind::int64: return "int";
    case FeatureKind::float64: return "float";
    case FeatureKind::string: return "str";
    case FeatureKind::image: return "Any";
    case FeatureKind::dictionary: return f.feature.string_keys ? "Dict[str, float]" : "Dict[int, float]";
    case FeatureKind::sequence: return f.feature.string_keys ? "List[str]" : "List[int]";
    case FeatureKind::multi_array:
    case FeatureKind::state: break;
  }
  return "np.ndarray";
}

std::string python_declared(const Field& f) {
  return f.feature.optional ? cat(f.identifier, ": Optional[", python_type(f), "] = None")
                            : cat(f.identifier, ": ", python_type(f));
}

constexpr std::string_view kModule = R"(# Generated from the model; edits are lost.
from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Dict, List, Mapping, Optional, Sequence, Union

import numpy as np

import moka


@dataclass
class $class$Input:
    """The model's inputs."""

$fields$
    def features(self) -> Dict[str, Any]:
        values: Dict[str, Any] = {
$values$        }
        return {name: value for name, value in values.items() if value is not None}


@dataclass
class $class$Output:
    """The model's outputs."""

$outputs$
    @classmethod
    def of(cls, values: Mapping[str, Any]) -> $class$Output:
        return cls($results$)


$summary$
class $class$:
    """Loads the model and predicts.

    model: a path or a loaded model; None: the compiled model beside this file. options: those of moka.Model."""

    def __init__(self, model: Union[str, "os.PathLike[str]", moka.Model, None] = None, **options: Any) -> None:
        if model is None:
            model = Path(__file__).parent / $file$
        self.model: moka.Model = model if isinstance(model, moka.Model) else moka.Model(model, **options)

    def prediction(self, input: $class$Input, *, state: Optional[moka.State] = None) -> $class$Output:
        return $class$Output.of(self.model.predict(input.features(), state=state))

    def predict(self$keywords$) -> $class$Output:
        """Predicts from the values of the inputs."""
        return self.prediction($class$Input($passed$))

    async def prediction_async(self, input: $class$Input, *, state: Optional[moka.State] = None) -> $class$Output:
        return $class$Output.of(await self.model.predict_async(input.features(), state=state))

    def predictions(self, inputs: Sequence[$class$Input]) -> List[$class$Output]:
        """Predicts for each of the inputs, several at the same time where there are threads."""
        return [$class$Output.of(values) for values in self.model.predict([i.features() for i in inputs])]
$states$)";

}  // namespace

Sources write_python(const import::ModelDescription& description, const std::string& model_name) {
  Interface model = describe_interface(description, model_name, {false, python_reserved});
  // Fields with a default come last.
  std::stable_partition(model.inputs.begin(), model.inputs.end(), [](const Field& f) { return !f.feature.optional; });
  Words w{{"class", model.class_name}, {"file", literal(model.resource + ".mlmodelc")}};
  w["summary"] = model.summary.empty() ? "" : cat("# ", model.summary, " (", model.resource, ")");
  w["fields"] = each(model.inputs, "", [](const Field& f) {
    return cat("    #: ", documentation(f, pillow_modes), "\n    ", python_declared(f), "\n");
  });
  w["values"] = each(model.inputs, "", [](const Field& f) {
    return cat("            ", literal(f.feature.name), ": self.", f.identifier, ",\n");
  });
  w["outputs"] = each(model.outputs, "", [](const Field& f) {
    return cat("    #: ", documentation(f, pillow_modes), "\n    ", f.identifier, ": ", python_type(f), "\n");
  });
  w["results"] = each(model.outputs, ", ", [](const Field& f) { return cat("values[", literal(f.feature.name), "]"); });
  w["keywords"] = model.inputs.empty() ? "" : ", *, " + each(model.inputs, ", ", python_declared);
  w["passed"] = each(model.inputs, ", ", [](const Field& f) { return cat(f.identifier, "=", f.identifier); });
  w["states"] = model.states.empty() ? ""
                                     : fill(R"(
    def new_state(self) -> moka.State:
        """New buffers, filled with zeros, for the predictions of one sequence."""
        return self.model.new_state()
)",
                                            {});
  return {{model.class_name + ".py", fill(kModule, w)}};
}

}  // namespace moka::compiler
