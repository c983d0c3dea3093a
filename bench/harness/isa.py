# SPDX-License-Identifier: Apache-2.0
"""Switches that limit engines to older instruction sets, as environment variables. An engine without one is left out of such a run.

A switch may not reach every kernel of its engine. A sample of an engine that spends more than MOST of its time in kernels beyond the switch does
not count.
"""

import re

SWITCHES = {
    "avx2": {
        "moka": {"MOKA_MAX_CPU_ISA": "avx2"},
        "openvino": {"ONEDNN_MAX_CPU_ISA": "AVX2"},
    },
}
# Names of kernels that use wider instructions nevertheless. OpenVINO multiplies matrices by MLAS, which asks the processor itself.
BEYOND = {"avx2": {"openvino": re.compile("mlas|avx512")}}
MOST = 0.05


def variables(isa, engine):
    """The variables that limit a process with this engine to the instruction set; None: the engine has no such variable."""
    return {} if isa is None else SWITCHES[isa].get(engine)


def checked(isa, engine):
    """Whether the switch may not reach every kernel of the engine."""
    return engine in BEYOND.get(isa, {})


def unlimited(isa, engine, profile):
    """Why the switch does not limit the engine on a net, or None. `profile`: the seconds that each kernel takes."""
    beyond = {name: seconds for name, seconds in profile.items() if BEYOND[isa][engine].search(name)}
    share = sum(beyond.values()) / sum(profile.values())
    if share <= MOST:
        return None
    return f"its switch does not limit {max(beyond, key=beyond.get)}: {share:.0%} of its time are not {isa}"
