# SPDX-License-Identifier: Apache-2.0
"""Circles of includes and imports. A .cpp counts with its header, and a circle may be of any length."""
import os
import re

# Circles that are still there, by their files. Most are a header and the parts of its implementation, which include it. A
# circle that is not listed is a finding, and so is a listed one that is gone or smaller.
LEFT = [
    ("src/base", "bytes lazy_memory"),
    ("src/compiler/onnx", "boundary call export graph"),
    ("src/devices/gpu", "common/common common/conversions gpu_device kernels/family recorder"),
    ("src/devices/vulkan", "commands memory staging"),
    ("src/devices/vulkan", "context pipelines"),
    ("src/format/message", "message node scalar"),
    ("src/format", "model_file model_file_rep"),
    ("src/import", "default_sizes description hints importer mlprogram/program pipeline/thresholds update/parts update/update"),
    ("src/import/onnx", "call classifier import interface node registry scope"),
    ("src/kernel", "parallel thread_pool"),
    ("src/plan", "assignment claim plan plan_cache sequence"),
    ("src/runtime", "model prediction"),
]

SCRIPT = (".ts", ".tsx")


def unit(path):
    return os.path.splitext(path)[0]


def imports(path, text):
    """The files that a TypeScript file imports, without extensions."""
    for m in re.finditer(r"""^(?:import|export)\b[^;]*?\bfrom\s+["'](\.[^"']+)["']""", text, re.M):
        yield os.path.normpath(os.path.join(os.path.dirname(path), m.group(1)))


def graph_of(edges):
    graph = {}
    for a, b in edges:
        if a != b:
            graph.setdefault(a, set()).add(b)
    return graph


def circles(edges):
    """The sets of two and more nodes that reach each other."""
    graph, index, low, stack, out = graph_of(edges), {}, {}, [], []
    for root in sorted(graph):
        if root in index:
            continue
        work = [(root, iter(sorted(graph[root])))]
        index[root] = low[root] = len(index)
        stack.append(root)
        while work:
            node, rest = work[-1]
            for following in rest:
                if following not in index:
                    index[following] = low[following] = len(index)
                    stack.append(following)
                    work.append((following, iter(sorted(graph.get(following, ())))))
                    break
                if following in stack:
                    low[node] = min(low[node], index[following])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == index[node]:
                    at = stack.index(node)
                    circle, stack = stack[at:], stack[:at]
                    if len(circle) > 1:
                        out.append(tuple(sorted(circle)))
    return sorted(out)
