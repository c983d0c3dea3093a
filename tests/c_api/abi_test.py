#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares the C interface with the list in abi.txt: functions, structs with the offsets and sizes of their members, enumerators.

    abi_test.py [--renew] LIBRARY COMPILER INCLUDE

LIBRARY is libmoka.so, COMPILER a C compiler, INCLUDE the folder of moka/moka.h. --renew writes the list. The list is of a system
whose pointers and `long` have 64 bits.
"""
import argparse
import difflib
import os
import re
import subprocess
import sys
import tempfile

LIST = os.path.join(os.path.dirname(os.path.abspath(__file__)), "abi.txt")
HEADERS = ("moka/moka.h", "moka/moka_files.h", "moka/plugin.h")
PARTS = ("moka/c_core.h", "moka/c_pixel_buffer.h", "moka/c_plan.h", "moka/c_shared.h", "moka/c_update.h")  # that moka/moka.h includes
OF_PLUGINS = {"moka_plugin"}  # declared here, defined by plug-ins
TITLE = """# The C interface of libmoka.so: functions, structs (size; offset and size of each member), enumerations and types.
# Renew with `make abi` after a change of include/moka/moka.h, moka_files.h or plugin.h. What has been released may only grow: functions, enumerators,
# and members at the ends of structs that begin with struct_size.
"""


def declarations(compiler, include):
    """The declarations of the headers, each in one line of normal spacing."""
    text = subprocess.run([compiler, "-std=c99", "-E", "-I", include, "-x", "c", "-"], check=True, capture_output=True, text=True,
                          input="".join("#include <%s>\n" % h for h in HEADERS)).stdout
    own, kept = [], False
    for line in text.splitlines():
        if line.startswith("#"):
            name = re.match(r'# \d+ "([^"]*)"', line)
            if name:
                kept = name.group(1).endswith(HEADERS + PARTS)
        elif kept:
            own.append(line)
    text = re.sub(r"__attribute__\s*\(\(.*?\)\)\)*", " ", " ".join(own))
    text = re.sub(r"\s+", " ", text)
    out, depth, start = [], 0, 0
    for i, c in enumerate(text):
        depth += (c == "{") - (c == "}")
        if depth > 0:
            continue
        if c == ";":
            out.append(text[start:i].strip())
            start = i + 1
        elif c == "}" and text[start:i].lstrip().startswith("static inline"):
            start = i + 1
    return [tidy(d) for d in out if d]


def tidy(text):
    text = re.sub(r"\s*\*\s*", "* ", text)
    text = re.sub(r"\*\s+(?=[*)])", "*", text)
    text = re.sub(r"\(\*\s+", "(*", text)
    text = re.sub(r"\(\s+|\s+(?=[,)])", lambda m: m.group().strip(), text)
    return re.sub(r"\s+\(", "(", text) if re.match(r"[\w* ]+\(", text) and "(*" not in text else text


def members(body):
    """[(name, declaration)] of a struct's members."""
    out = []
    for one in filter(None, (m.strip() for m in body.split(";"))):
        pointer = re.search(r"\(\*\s*(\w+)\)", one)
        if pointer:
            out.append((pointer.group(1), one))
            continue
        first, *others = one.split(",")
        base, declarator = re.match(r"(.*?)(\**\s*\w+(?:\[.*\])?)$", first).groups()
        for d in [declarator, *others]:
            name = re.search(r"(\w+)(?:\[.*\])?$", d.strip()).group(1)
            out.append((name, re.sub(r"\s+", " ", base.strip() + (" " if not d.strip().startswith("*") else "") + d.strip())))
    return out


def current(compiler, include):
    """(lines of the list, names of functions)"""
    functions, lines, program = {}, [], []
    say = lambda text, *values: program.append('  printf("%s\\n"%s);' % (text, "".join(", (long)(%s)" % v for v in values)))
    for d in declarations(compiler, include):
        struct = re.match(r"typedef struct (\w+) ?\{(.*)\} ?\w+$", d)
        enum = re.match(r"typedef enum (\w+) ?\{(.*)\} ?\w+$", d)
        if struct:
            name = struct.group(1)
            say("struct %s %%ld" % name, "sizeof(%s)" % name)
            for member, text in members(struct.group(2)):
                say("  %%ld %%ld %s" % text, "offsetof(%s, %s)" % (name, member), "sizeof(((%s*)0)->%s)" % (name, member))
        elif enum:
            say("enum %s %%ld" % enum.group(1), "sizeof(%s)" % enum.group(1))
            for e in filter(None, (e.strip() for e in enum.group(2).split(","))):
                name = re.match(r"\w+", e).group()
                say("  %s %%ld" % name, name)
        elif d.startswith("typedef "):
            lines.append("type " + d[len("typedef "):])
        else:
            functions[re.search(r"(\w+)\(", d).group(1)] = "function " + d
    source = "#include <stddef.h>\n#include <stdio.h>\n%s\nint main(void) {\n%s\n  return 0;\n}\n" % (
        "".join("#include <%s>\n" % h for h in HEADERS), "\n".join(program))
    with tempfile.TemporaryDirectory() as folder:
        binary = os.path.join(folder, "abi")
        subprocess.run([compiler, "-std=c99", "-I", include, "-x", "c", "-", "-o", binary], check=True, input=source, text=True)
        structs = subprocess.run([binary], check=True, capture_output=True, text=True).stdout.splitlines()
    return [functions[name] for name in sorted(functions)] + sorted(lines) + structs, set(functions) - OF_PLUGINS


def exported(library):
    text = subprocess.run(["nm", "-D", "--defined-only", library], check=True, capture_output=True, text=True).stdout
    return {name for name in (line.split()[-1] for line in text.splitlines()) if name.startswith("moka_")}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--renew", action="store_true")
    parser.add_argument("library")
    parser.add_argument("compiler")
    parser.add_argument("include")
    options = parser.parse_args()
    lines, declared = current(options.compiler, options.include)
    symbols = exported(options.library)
    for what, names in (("declared, but not exported", declared - symbols), ("exported, but not declared", symbols - declared)):
        if names:
            sys.exit("%s: %s" % (what, ", ".join(sorted(names))))
    text = TITLE + "\n".join(lines) + "\n"
    if options.renew:
        with open(LIST, "w", encoding="utf-8") as f:
            f.write(text)
        return
    with open(LIST, encoding="utf-8") as f:
        listed = f.read()
    if listed != text:
        sys.stdout.writelines(difflib.unified_diff(listed.splitlines(True), text.splitlines(True), "abi.txt", "headers", n=1))
        sys.exit("the C interface differs from tests/c_api/abi.txt; if it may, renew the list with `make abi`")
    print("%d functions and all structs as in abi.txt" % len(declared))


if __name__ == "__main__":
    main()
