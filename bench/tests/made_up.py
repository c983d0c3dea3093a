# SPDX-License-Identifier: Apache-2.0
"""Results files for the tests, without a run."""

from harness import samples, stats


def sample(net, engine, ms=10.0, threads=1, precision="fp32", error=1e-6, **more):
    rounds = [[ms / 1000 * (1 + 0.001 * ((7 * r + 3 * i) % 5 - 2)) for i in range(5)] for r in range(10)]
    made = {"net": net, "engine": engine, "threads": threads, "precision": precision, "status": "measured", "error": error,
            "import": [0.1] * 3, "load": [0.020, 0.021, 0.019], "first": [0.011, 0.010, 0.012], "steady": stats.summary(rounds),
            "cpu": 1.0, "peak": 100_000_000, "size": 5_000_000}
    return {**made, **more}


def failed(net, engine, reason, **more):
    return {"net": net, "engine": engine, "threads": 1, "precision": "fp32", "status": "failed", "reason": reason, "size": 0, **more}


def results(*every, nets=None, engines=("moka", "left", "right"), **settings):
    facts = {name: {"title": name.capitalize(), "family": "classification", "goals": {"fp32": 0.8}, "relative_to": None, "input": {}}
             for name in dict.fromkeys(s["net"] for s in every)}
    for name, more in (nets or {}).items():
        facts[name] = {**facts[name], **more}
    return {
        "format": samples.FORMAT, "command": "bench/run.py", "date": "2030-01-01 00:00 UTC",
        "machine": {"cpu": "A processor", "cpu_family": "6", "cpu_model": "1", "isa": ["avx2"], "virtual": False, "cores": 2,
                    "architecture": "x86_64", "memory": 2**34, "kernel": "6.1", "python": "3.11", "load_average": 0.0},
        "settings": {"threads": [1], "precision": ["fp32"], "check": False, **settings},
        "engines": {e: {"title": e.capitalize(), "versions": {e: "1.0"}, "reason": None} for e in engines},
        "nets": facts, "samples": list(every),
    }
