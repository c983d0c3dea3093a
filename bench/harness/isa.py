"""Switches that limit engines to older instruction sets, as environment variables. An engine without one is left out of such a run."""

SWITCHES = {
    "avx2": {
        "moka": {"MOKA_MAX_CPU_ISA": "avx2"},
        "openvino": {"ONEDNN_MAX_CPU_ISA": "AVX2"},
    },
}


def variables(isa, engine):
    """The variables that limit a process with this engine to the instruction set; None: the engine has no such variable."""
    return {} if isa is None else SWITCHES[isa].get(engine)
