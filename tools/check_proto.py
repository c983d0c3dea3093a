#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks our specification messages against coremltools' descriptors, and the payload table against ours.

Needs protoc on the path and a Python with coremltools (any platform; its native parts are not loaded).
Usage: check_proto.py [--source SRC_DIR]. Exit code 0: all agree, 1: they differ (each difference is printed).
"""

import argparse
import importlib
import importlib.util
import pathlib
import re
import subprocess
import sys
import tempfile
import types

from google.protobuf import descriptor_pb2

THEIRS, OURS = "CoreML.Specification", "moka.proto"
# Our own fields, which the file reader writes.
OWN_FIELDS = {(".WeightParams", "payload_index"), (".MILSpec.TensorValue", "payload_index"),
              (".NearestNeighborsIndex", "payload_index")}
OWN_NUMBER = 100001
# A descriptor that no model refers to and that current protobuf versions cannot load.
NOT_PART = {"NamedParameters"}
PAYLOAD_MESSAGES = {".WeightParams", ".MILSpec.TensorValue", ".NearestNeighborsIndex"}


def coremltools_files():
    spec = importlib.util.find_spec("coremltools")
    if spec is None:
        sys.exit("check_proto.py: this Python has no coremltools")
    package = types.ModuleType("coremltools")
    package.__path__ = list(spec.submodule_search_locations)
    sys.modules["coremltools"] = package
    for path in sorted((pathlib.Path(package.__path__[0]) / "proto").glob("*_pb2.py")):
        if path.stem.removesuffix("_pb2") in NOT_PART:
            continue
        proto = descriptor_pb2.FileDescriptorProto()
        importlib.import_module(f"coremltools.proto.{path.stem}").DESCRIPTOR.CopyToProto(proto)
        yield proto


def our_files(source):
    with tempfile.NamedTemporaryFile() as out:
        protos = sorted(str(p.relative_to(source)) for p in (source / "format/proto").glob("*.proto"))
        subprocess.run(["protoc", "-I.", f"--descriptor_set_out={out.name}", *protos], cwd=source, check=True)
        return descriptor_pb2.FileDescriptorSet.FromString(pathlib.Path(out.name).read_bytes()).file


def collect(files, package):
    """Flattens files to {message: {field: facts}} and {enum: {value: number}}; names start at the package, with '.'."""
    messages, enums = {}, {}

    def short(name):
        return name.removeprefix("." + package)

    def add_enum(prefix, enum):
        enums[short(f"{prefix}.{enum.name}")] = {v.name: v.number for v in enum.value}

    def add_message(prefix, message):
        name = f"{prefix}.{message.name}"
        fields = messages[short(name)] = {}
        for field in message.field:
            optional = field.proto3_optional
            oneof = message.oneof_decl[field.oneof_index].name if field.HasField("oneof_index") and not optional else None
            packed = field.options.packed if field.options.HasField("packed") else None
            fields[field.name] = dict(number=field.number, type=field.type, type_name=short(field.type_name),
                                      label=field.label, oneof=oneof, packed=packed, optional=optional)
        fields_of_map = message.options.map_entry
        if fields_of_map:
            messages[short(name)][""] = "map entry"
        for nested in message.nested_type:
            add_message(name, nested)
        for enum in message.enum_type:
            add_enum(name, enum)

    for file in files:
        for message in file.message_type:
            add_message("." + file.package, message)
        for enum in file.enum_type:
            add_enum("." + file.package, enum)
    return messages, enums


def differences(kind, theirs, ours, own=frozenset()):
    for name in sorted(theirs.keys() | ours.keys()):
        if name not in ours or name not in theirs:
            yield f"{kind} {name} is only in {'coremltools' if name in theirs else 'ours'}"
            continue
        for part in sorted(theirs[name].keys() | ours[name].keys()):
            if (name, part) in own:
                if part in theirs[name] or ours[name][part]["number"] != OWN_NUMBER:
                    yield f"{kind} {name}: our own field {part} collides"
                continue
            left, right = theirs[name].get(part), ours[name].get(part)
            if left != right:
                yield f"{kind} {name}.{part}: coremltools {left}, ours {right}"


def expected_edges(messages):
    """(from, number, to) for each field on a path from Model to a payload."""
    children = {name: [(f["number"], f["type_name"]) for f in fields.values() if isinstance(f, dict) and f["type"] == 11]
                for name, fields in messages.items()}
    leads = set(PAYLOAD_MESSAGES)
    grew = True
    while grew:
        more = {n for n, c in children.items() if n not in leads and any(t in leads for _, t in c)}
        leads |= more
        grew = bool(more)
    edges, seen, queue = set(), set(), [".Model"]
    while queue:
        name = queue.pop()
        if name in seen or name in PAYLOAD_MESSAGES:
            continue
        seen.add(name)
        for number, child in children[name]:
            if child in leads:
                edges.add((node(name), number, node(child)))
                queue.append(child)
    return edges


def node(name):
    return name.removeprefix(".").removeprefix("MILSpec.").replace(".", "_")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--source", type=pathlib.Path, default=pathlib.Path(__file__).resolve().parent.parent / "src")
    source = parser.parse_args().source
    their_messages, their_enums = collect(coremltools_files(), THEIRS)
    our_messages, our_enums = collect(our_files(source), OURS)
    found = list(differences("message", their_messages, our_messages, OWN_FIELDS))
    found += differences("enum", their_enums, our_enums)

    table = (source / "format/mlmodel/payload_edges.cpp").read_text()
    edges = {(a, int(n), b) for a, n, b in re.findall(r"\{PayloadNode::(\w+), (\d+), PayloadNode::(\w+)\}", table)}
    expected = expected_edges(our_messages)
    found += [f"payload table lacks {e}" for e in sorted(expected - edges)]
    found += [f"payload table has {e}, which no message declares" for e in sorted(edges - expected)]
    for line in found:
        print(line)
    fields = sum(len(f) for f in their_messages.values())
    print(f"{len(their_messages)} messages, {fields} fields, {len(their_enums)} enums, {len(expected)} payload edges: "
          f"{len(found)} differences")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
