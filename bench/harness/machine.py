# SPDX-License-Identifier: Apache-2.0
"""Describes the machine of a run and selects its processors."""

import os
import pathlib
import platform

ISA = ("sse4_2", "avx", "f16c", "fma", "avx2", "avx_vnni", "avx512f", "avx512_vnni", "avx512_bf16", "avx512_fp16", "amx_int8",
       "amx_bf16", "asimd", "asimdhp", "asimddp", "bf16", "i8mm", "sve", "sve2")


def cpu_info():
    """The fields of the first processor of /proc/cpuinfo."""
    fields = {}
    for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
        name, colon, value = line.partition(":")
        if not colon and fields:
            break
        if colon:
            fields[name.strip()] = value.strip()
    return fields


def memory_bytes():
    for line in pathlib.Path("/proc/meminfo").read_text().splitlines():
        if line.startswith("MemTotal:"):
            return int(line.split()[1]) * 1024
    return 0


def siblings(cpu):
    """The hardware threads that share a core with `cpu`."""
    path = pathlib.Path(f"/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list")
    if not path.is_file():
        return {cpu}
    together = set()
    for part in path.read_text().strip().split(","):
        low, _, high = part.partition("-")
        together.update(range(int(low), int(high or low) + 1))
    return together


def pick_cpus(allowed, siblings_of=siblings):
    """One processor per core among those allowed, the last ones first, because the first one serves most interrupts."""
    picked, taken = [], set()
    for cpu in sorted(allowed, reverse=True):
        if cpu not in taken:
            picked.append(cpu)
            taken |= siblings_of(cpu)
    return picked


def facts():
    info = cpu_info()
    flags = set((info.get("flags") or info.get("Features") or "").split())
    return {
        "cpu": info.get("model name") or info.get("CPU part") or "unknown",
        "cpu_family": info.get("cpu family", ""),
        "cpu_model": info.get("model", ""),
        "isa": [f for f in ISA if f in flags],
        "virtual": "hypervisor" in flags,
        "architecture": platform.machine(),
        "cores": len(pick_cpus(os.sched_getaffinity(0))),
        "memory": memory_bytes(),
        "kernel": platform.release(),
        "python": platform.python_version(),
        "load_average": os.getloadavg()[0],
    }
