# SPDX-License-Identifier: Apache-2.0
"""The Python of the documents: it parses, and the functions of moka that it calls exist and take its keyword arguments."""

import ast
import importlib
import inspect
import re

import moka
import pytest
from conftest import ROOT

DOCUMENTS = [*sorted((ROOT / "docs").glob("*.md")), ROOT / "python/README.md"]
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.M | re.S)
BLOCKS = [(path.name, text) for path in DOCUMENTS for text in BLOCK.findall(path.read_text())]


def parsed(text):
    """Blocks may await, as in a coroutine; lines of a session lose their prompts."""
    if re.match(r">>> ", text):
        text = "\n".join(line[4:] for line in text.splitlines() if line.startswith((">>> ", "... ")))
    return ast.parse(text) if "await " not in text else ast.parse("async def shown():\n" + re.sub("^", "  ", text, flags=re.M))


def chain(node):
    """["moka", "edit", "open"] of moka.edit.open; None for what is not a chain of names."""
    if isinstance(node, ast.Name):
        return [node.id]
    if isinstance(node, ast.Attribute):
        before = chain(node.value)
        return before and [*before, node.attr]
    return None


def names_of(tree):
    """What the block imports from moka, and "moka" itself."""
    found = {"moka": moka}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for a in node.names:
                if a.name.split(".")[0] == "moka":
                    module = importlib.import_module(a.name)
                    found[a.asname or a.name.split(".")[0]] = module if a.asname else moka
        elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "moka":
            module = importlib.import_module(node.module)
            for a in node.names:
                assert hasattr(module, a.name), f"{node.module} has no {a.name}"
                found[a.asname or a.name] = getattr(module, a.name)
    # What is made of a class of moka: model = moka.Model(...)
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call) and isinstance(node.targets[0], ast.Name):
            made = resolve(chain(node.value.func), found)
            if inspect.isclass(made):
                found.setdefault(node.targets[0].id, made)
    assigned = {name.id for node in ast.walk(tree) if isinstance(node, ast.Assign) for t in node.targets for name in ast.walk(t)
                if isinstance(name, ast.Name)}
    if "model" not in assigned:
        found["model"] = moka.Model
    return found


def resolve(names, found):
    """The object that the chain of names is; None for what the block does not get from moka."""
    if not names or names[0] not in found:
        return None
    at = found[names[0]]
    for n in names[1:]:
        if inspect.isclass(at) or inspect.ismodule(at):
            if not hasattr(at, n) and (n in getattr(at, "__annotations__", {}) or hasattr(at, "__getattr__")):
                return None
            assert hasattr(at, n), f"{'.'.join(names)}: {at.__name__} has no {n}"
            at = getattr(at, n)
        else:
            return None
    return at


@pytest.mark.parametrize("number", range(len(BLOCKS)))
def test_block_names_what_exists(number):
    name, text = BLOCKS[number]
    tree = parsed(text)
    found = names_of(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            resolve(chain(node), found)
        if not isinstance(node, ast.Call):
            continue
        called = resolve(chain(node.func), found)
        try:
            parameters = inspect.signature(called).parameters if called is not None else None
        except (TypeError, ValueError):
            continue
        if parameters is None or any(p.kind is p.VAR_KEYWORD for p in parameters.values()):
            continue
        for keyword in node.keywords:
            assert keyword.arg is None or keyword.arg in parameters, f"{name}: {'.'.join(chain(node.func))} has no argument {keyword.arg}"


def test_there_are_blocks():
    assert len(BLOCKS) > 20
