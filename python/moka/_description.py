# SPDX-License-Identifier: Apache-2.0
"""The description of a model, as text and as HTML for notebooks."""

from html import escape
from typing import Any, List, Sequence, Tuple

from . import _moka
from ._moka import FeatureDescription, FunctionDescription


class ModelDescription:
    """Core ML's MLModelDescription of a loaded model.

    type: 'mlProgram', 'neuralNetwork', ...; inputs, outputs, states: lists of FeatureDescription of the loaded
    function; functions: all of them; class_labels, short_description, author, license, version, user_defined and
    specification_version as in the file; training_inputs and update: what an updatable model learns from, and how.
    """

    def __init__(self, description: "_moka.ModelDescription", function: FunctionDescription) -> None:
        self._description = description
        self.function = function

    @property
    def inputs(self) -> List[FeatureDescription]:
        return self.function.inputs

    @property
    def outputs(self) -> List[FeatureDescription]:
        return self.function.outputs

    @property
    def states(self) -> List[FeatureDescription]:
        return self.function.states

    @property
    def predicted_feature_name(self) -> str:
        return self.function.predicted_feature_name

    @property
    def predicted_probabilities_name(self) -> str:
        return self.function.predicted_probabilities_name

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._description, name)

    def __dir__(self) -> List[str]:
        return sorted(set(super().__dir__()) | {n for n in dir(self._description) if not n.startswith("_")})

    def _facts(self) -> List[Tuple[str, str]]:
        d = self._description
        facts = [("type", d.type + (", updatable" if d.updatable else "")), ("specification", str(d.specification_version)), ("function", self.function.name)]
        facts += [(k, v) for k, v in (("author", d.author), ("license", d.license), ("version", d.version)) if v]
        if d.class_labels:
            shown = ", ".join(str(c) for c in d.class_labels[:5])
            facts.append(("classes", f"{len(d.class_labels)}: {shown}" + (", ..." if len(d.class_labels) > 5 else "")))
        return facts

    def _features(self) -> List[Tuple[str, FeatureDescription]]:
        groups = (("input", self.inputs), ("output", self.outputs), ("state", self.states), ("training", self._description.training_inputs))
        return [(kind, f) for kind, features in groups for f in features]

    def __repr__(self) -> str:
        lines = [self._description.short_description] if self._description.short_description else []
        lines += [f"{name:14} {value}" for name, value in self._facts()]
        features = self._features()
        width = max([len(f.name) for _, f in features], default=0)
        for kind, f in features:
            note = " (optional)" if f.optional else ""
            lines.append(f"{kind:14} {f.name:{width}}  {f.formatted_type}{note}")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        return self._html([])

    def _html(self, more: Sequence[Tuple[str, str]]) -> str:
        """The table, with more facts."""
        known = [*self._facts(), *more]
        facts = "".join(f"<tr><th>{escape(k)}</th><td colspan=3>{escape(v)}</td></tr>" for k, v in known)
        rows = "".join(
            f"<tr><th>{kind}</th><td><code>{escape(f.name)}</code></td><td>{escape(f.formatted_type)}"
            f"{' (optional)' if f.optional else ''}</td><td>{escape(f.description)}</td></tr>"
            for kind, f in self._features()
        )
        caption = f"<caption>{escape(self._description.short_description)}</caption>"
        return f"<table>{caption}{facts}{rows}</table>"
