# SPDX-License-Identifier: Apache-2.0
"""How long the functions of formatted C++ are."""
import re

MOST = 80
_TYPE = re.compile(r"(template <.*> )?(export )?(typedef )?(namespace|class|struct|enum|union|extern \"C\"|using|MOKA_EXPORT)\b")
_DECLARATION = re.compile(r"( *)([A-Za-z_~:\[].*)$")
_CONTROL = re.compile(r"(if|for|while|switch|else|do|return|case|default|public|private|protected)\b")


def long_functions(text):
    """(line, lines) for the functions that are longer than MOST lines, from the first line of the declaration to the
    brace that ends it. A lambda belongs to the function around it."""
    lines = text.split("\n")
    at = 0
    while at < len(lines):
        begin, match = at, _DECLARATION.match(lines[at])
        at += 1
        if not match or _CONTROL.match(match.group(2)) or (begin > 0 and lines[begin - 1].endswith("\\")):
            continue
        indent, header = match.groups()
        while at < len(lines) and not re.search(r"[;{}]$", header) and len(header) < 2000:
            header += " " + lines[at].split(" //")[0].strip()
            at += 1
        if not header.endswith("{") or "(" not in header or _TYPE.match(header) or re.search(r"= \{$|R\"\(", header):
            continue
        end = at
        while end < len(lines) and not lines[end].startswith(indent + "}"):
            end += 1
        if end - begin + 1 > MOST:
            yield begin + 1, end - begin + 1
        at = end + 1
