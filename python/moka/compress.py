# SPDX-License-Identifier: Apache-2.0
"""Makes the weights of ML programs and neural networks smaller.

    from moka import compress

    made = compress.weights("net.mlpackage", compress.palette(4), layers={"type:gather": compress.linear(8)})
    made.model.save("small.mlpackage")

    int8 = compress.activations("net.mlpackage", [{"x": array} for array in arrays])
    int8.model.save("int8.mlpackage")

    found = compress.search("net.mlpackage", share=0.4, inputs=[{"x": array} for array in arrays])
    print(found.size_after, found.signal_to_noise)
    found.model.save("small.mlpackage")

A `Form` says how a weight is compressed; `linear`, `palette`, `half`, `unchanged` and `pruned` make one. Each function takes a
`moka.build.Source`, a message or a path, which stays as it was.
"""

from dataclasses import dataclass
from typing import Any, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from . import _moka
from .build import Source, _source_of
from .edit import Editable

CompressedActivation = _moka.compress.CompressedActivation
CompressedWeight = _moka.compress.CompressedWeight
Form = _moka.compress.Form
Point = _moka.compress.Point
Sensitivity = _moka.compress.Sensitivity
Trial = _moka.compress.Trial


class CompressedModel(NamedTuple):
    """A compressed model, and what became of each weight."""

    model: Source
    weights: List[CompressedWeight]


class QuantizedModel(NamedTuple):
    """A model that computes with integers."""

    model: Source
    weights: List[CompressedWeight]
    activations: List[CompressedActivation]
    #: Signal to noise of the worst output of the predictions that gave the ranges, in dB. Infinite: all outputs are equal.
    signal_to_noise: float


@dataclass(frozen=True)
class SearchedModel:
    """A model whose forms were chosen by what they do to its outputs."""

    model: Source
    weights: List[CompressedWeight]
    #: What each form of each weight alone does.
    sensitivity: List[Sensitivity]
    #: From the largest model to the smallest.
    curve: List[Point]
    #: The bytes of the specification and the weight files together.
    size_before: int
    size_after: int
    #: Signal to noise of the worst checked prediction, in dB. Infinite: all outputs are equal.
    signal_to_noise: float
    #: What other inputs of the kind can expect, in dB.
    bound: float
    #: How many inputs measured the weights, and how many checked the result.
    measured_inputs: int
    checked_inputs: int
    #: Whether these are different inputs.
    separate: bool
    #: The time of the fastest of several predictions.
    seconds_before: float
    seconds_after: float


def _one_of(kind: Any, what: str, name: str) -> Any:
    names = [member.name for member in kind]
    if name not in names:
        raise _moka.InvalidArgumentError(f"{what}: expected one of {', '.join(names)}, got {name!r}")
    return getattr(kind, name)


def _form(kind: str, per: str = "channel") -> Form:
    form = Form()
    form.kind = _one_of(_moka.compress.Kind, "kind", kind)
    form.per = _one_of(_moka.compress.Granularity, "per", per)
    return form


def linear(bits: int = 8, per: str = "channel", *, block_size: int = 32, symmetric: bool = True, signed: bool = True) -> Form:
    """Integers with scales.

    bits: 8 or 4, in neural networks 1 to 8. per: what shares a scale: "tensor", "channel", or "block" for `block_size` input channels.
    symmetric: without a zero point. signed: False for numbers from 0 on."""
    form = _form("linear", per)
    form.bits, form.block_size, form.symmetric, form.signed = bits, block_size, symmetric, signed
    return form


def palette(
    bits: int, per: str = "tensor", *, group_size: int = 32, mode: str = "kmeans", vector_size: int = 1, per_channel_scale: bool = False
) -> Form:
    """Indices into a table of values.

    bits: 1, 2, 3, 4, 6 or 8, in neural networks 1 to 8. per: what shares a table: "tensor", or "group" for `group_size` output channels.
    mode: "kmeans", "uniform" (equal distances) or "unique" (the values themselves). vector_size: output channels that one index covers.
    per_channel_scale: normalizes by the largest value across the output channels first."""
    form = _form("palette", per)
    form.bits, form.group_size, form.mode = bits, group_size, _one_of(_moka.compress.PaletteMode, "mode", mode)
    form.vector_size, form.per_channel_scale = vector_size, per_channel_scale
    return form


def half() -> Form:
    """float16, in neural networks."""
    return _form("half")


def unchanged() -> Form:
    """The weight as it is."""
    return _form("unchanged")


def pruned(
    form: Optional[Form] = None,
    *,
    sparsity: float = 0.0,
    threshold: Optional[float] = None,
    least_sparsity: float = 0.5,
    n_of_m: Optional[Tuple[int, int]] = None,
    block: int = 0,
) -> Form:
    """Zeros in a weight, which otherwise has this form or stays as it is.

    sparsity: this fraction of the smallest values; with `block`, of blocks of so many output channels. threshold: values up to this size;
    a weight of which less than `least_sparsity` are zeros then stays as it is.
    n_of_m: the n smallest of m neighbors along the input channels."""
    out = Form(form or unchanged())
    out.sparsity, out.threshold, out.sparse_block = sparsity, -1.0 if threshold is None else threshold, block
    out.least_sparsity = least_sparsity
    out.n, out.m = n_of_m or (0, 0)
    return out


def weights(
    model: Editable,
    form: Optional[Form] = None,
    *,
    layers: Optional[Mapping[str, Form]] = None,
    least_elements: int = 2048,
    decompress: bool = False,
) -> CompressedModel:
    """Compresses all weights: to integers of 8 bits, or to `form`.

    layers: other forms for some weights, by a name in which "*" matches any text, or "type:linear" for the weights that operations of a
    type read; the last one that matches counts. least_elements: weights of up to so many elements stay as they are.
    decompress: first makes floats of weights that are compressed already; else they stay as they are.

    Each weight is decoded again and compared with its source. One that the form cannot express stays as it is, and its `skipped` says why.
    Raises InvalidArgumentError for a form that contradicts itself, UnsupportedError for a model that is neither an ML program nor a neural
    network."""
    source, made = _moka.compress.compress_weights(
        _source_of(model)._source, linear() if form is None else form, list((layers or {}).items()), least_elements, decompress
    )
    return CompressedModel(Source._of(source), made)


def decompress(model: Editable) -> CompressedModel:
    """Makes floats of the weights that constexpr operations or a neural network's quantization expand."""
    return weights(model, unchanged(), decompress=True)


def activations(
    model: Editable,
    inputs: Sequence[Mapping[str, Any]],
    form: Optional[Form] = None,
    *,
    symmetric: bool = True,
    signed: bool = True,
    unchanged_operations: Sequence[str] = (),
    layers: Optional[Mapping[str, Form]] = None,
    least_elements: int = 2048,
) -> QuantizedModel:
    """Rounds what conv, linear, pooling and additions of two values read and give to integers of 8 bits, where coremltools does.

    inputs: dicts of values, as for Model.predict; the ranges of values are those of these predictions together. form, layers,
    least_elements: of the weights, as for `weights`; without them, weights become integers of 8 bits, and with `unchanged()` they stay.
    symmetric: without zero points. signed: False for integers from 0 on. unchanged_operations: names in which "*" matches any text, or
    "type:add".

    Raises InvalidArgumentError without inputs, UnsupportedError for anything but an ML program of one function for iOS 17 or later."""
    source, weights, activations, signal_to_noise = _moka.compress.quantize_activations(
        _source_of(model)._source,
        linear() if form is None else form,
        list((layers or {}).items()),
        least_elements,
        [dict(item) for item in inputs],
        symmetric,
        signed,
        list(unchanged_operations),
    )
    return QuantizedModel(Source._of(source), weights, activations, signal_to_noise)


def _size_of(model: Source) -> int:
    return len(model.specification.serialize()) + sum(len(data) for data in model.weights.values())


def search(
    model: Editable,
    *,
    share: Optional[float] = None,
    size: Optional[int] = None,
    signal_to_noise: Optional[float] = None,
    forms: Sequence[Form] = (),
    layers: Optional[Mapping[str, Form]] = None,
    inputs: Sequence[Mapping[str, Any]] = (),
    seed: int = 1,
    least_elements: int = 2048,
    decompress: bool = False,
) -> SearchedModel:
    """Chooses a form for each weight by what it does to the outputs.

    share, size, signal_to_noise: the goal, one of the three: the size of the model as a share of what it has, 0.4, or in bytes, or the
    signal to noise in dB that all outputs have. forms: to choose from; without them, integers and palettes of all bits that the model can
    have. layers: fixed forms of some weights, as for `weights`. inputs: dicts of values, as for Model.predict, nine or more to be sure;
    without them, random ones of `seed`. decompress: as for `weights`.

    Raises InvalidArgumentError without exactly one goal, UnsupportedError for a goal that no choice reaches, for models with several
    functions or without an output of numbers."""
    source = _source_of(model)
    if share is not None:
        if size is not None or not 0 < share:
            raise _moka.InvalidArgumentError(f"share: expected a number above 0 and no size, got {share} and {size}")
        size = int(share * _size_of(source))
    found = _moka.compress.search_compression(
        source._source,
        size,
        signal_to_noise,
        list(forms),
        list((layers or {}).items()),
        least_elements,
        [dict(item) for item in inputs],
        seed,
        decompress,
    )
    facts = {name: getattr(found, name) for name in SearchedModel.__dataclass_fields__ if name != "model"}
    return SearchedModel(Source._of(found.model), **facts)
