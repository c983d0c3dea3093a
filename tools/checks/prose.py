# SPDX-License-Identifier: Apache-2.0
"""Finds the prose of a repository: comments, documents, and strings for users.

passages(path, text) yields (line, kind, text) for each paragraph ("text"), comment ("comment") and string ("string").
Code, names and data are left out.
"""
import ast
import io
import re
import tokenize

from . import spdx

# Generated from prose that is checked at its source.
GENERATED = re.compile(r"docs/(operations|operations/.*|device-support|accuracy|conformance|performance|release-check)(\.md)?$"
                       r"|^LICENSE$|^docs/performance/")
STRING_WORDS = 3  # shorter strings are names or parts of messages


def passages(path, text):
    if GENERATED.search(path):
        return
    text = spdx.without(text)
    if path.endswith(".md"):
        found = (("text",) + p for p in markdown(text))
    elif path.endswith((".h", ".hpp", ".cpp", ".c", ".inc", ".comp", ".glsl", ".proto")):
        found = c_like(text)
    elif path.endswith((".py", ".pyi")) or text.startswith("#!/usr/bin/env python3"):
        found = python(text)
    elif path.endswith((".cmake", ".txt", ".toml", ".yml", ".yaml")) or text.startswith("#!") or path == "Makefile":
        found = (("comment",) + p for p in hash_comments(text))
    else:
        return
    for kind, line, passage in found:
        yield line, kind, passage


def markdown(text):
    """Paragraphs, list items and table cells; code is left out."""
    fence, block, start = False, [], 0
    for n, line in enumerate(text.split("\n") + [""], 1):
        stripped = line.strip()
        if stripped.startswith("```"):
            fence = not fence
            stripped = ""
        elif fence or (line.startswith("    ") and not block):
            continue
        item = re.match(r"([-*]|\d+\.|#+)\s+", stripped)
        if not stripped or item or stripped.startswith("|"):
            if block:
                yield start, " ".join(block)
            block = []
        if stripped.startswith("|"):
            for cell in re.split(r"(?<!\\)\|", stripped):
                yield n, plain(cell)
        elif stripped:
            if not block:
                start = n
            block.append(plain(stripped[item.end():] if item else stripped))


def plain(text):
    """Markdown without non-prose: code spans and addresses each become one word."""
    text = re.sub(r"`[^`]*`", "CODE", text)
    text = re.sub(r"<!--.*?-->", "", text)
    return re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", text).replace("**", "")


TOKEN = re.compile(r'//[^\n]*|/\*.*?\*/|R"(\w*)\((?:.|\n)*?\)\1"|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.S)


def c_like(text):
    """Comments (successive lines joined) and strings (adjacent literals joined)."""
    end, start, kind, parts = 0, 0, "", []
    for m in list(TOKEN.finditer(text)) + [None]:
        token = m.group(0) if m else ""
        now = "comment" if token.startswith(("//", "/*")) else "string" if token.startswith('"') else ""
        between = text[end:m.start()] if m else "x"
        own_line = m is not None and text[text.rfind("\n", 0, m.start()) + 1:m.start()].strip() == ""
        joined = now and now == kind and between.strip() == "" and (
            now == "string" or (own_line and between.count("\n") == 1 and parts[-1] != "" and kind_of(token) == mark))
        if not joined and parts:
            yield from ((kind,) + p for p in emit(kind, start, parts))
            parts = []
        if m is None:
            return
        if now:
            if not parts:
                start, mark = text.count("\n", 0, m.start()) + 1, kind_of(token)
            parts.append(body(token, now))
        kind, end = now, m.end()


def kind_of(token):
    return re.match(r"///<|///|//|/\*|", token).group(0)


def body(token, kind):
    if kind == "string":
        return re.sub(r"\\[nt]", " ", token[1:-1]).replace('\\"', '"')
    return re.sub(r"^\s*\*", "", re.sub(r"^(///?<?|/\*+<?)\s?|\*/$", "", token), flags=re.M)


def emit(kind, line, parts):
    if kind == "string":
        text = "".join(parts)
        if len(re.findall(r"[A-Za-z]{2,} ", text)) >= STRING_WORDS:
            yield line, text
        return
    # A line of code in a comment, an empty line or a list item begins a new passage.
    block = []
    for n, part in enumerate("\n".join(parts).split("\n")):
        columns = re.search(r"\S {3,}\S", part)  # a table, a command with its explanation
        if not part.strip() or columns or re.match(r"\s*(-|\d+\.)\s|\s{2,}", part):
            if block:
                yield first, plain(" ".join(block))
            block = []
            if columns or re.match(r"\s{2,}", part):
                continue
        if part.strip():
            if not block:
                first = line + n
            block.append(re.sub(r"^\s*-\s", "", part).strip())
    if block:
        yield first, plain(" ".join(block))


def python(text):
    """Comments and strings of several words."""
    try:
        tokens = list(tokenize.generate_tokens(io.StringIO(text).readline))
    except (tokenize.TokenError, SyntaxError, IndentationError):
        return
    block, start, last, alone = [], 0, -2, False
    for token in tokens:
        if token.type == tokenize.COMMENT and not token.string.startswith("#!"):
            own = token.line.strip().startswith("#")
            if block and own and alone and token.start[0] == last + 1:
                block.append(token.string[1:].strip())
            else:
                if block:
                    yield "comment", start, plain(" ".join(block))
                block, start = [token.string[1:].strip()], token.start[0]
            last, alone = token.start[0], own
        elif token.type == tokenize.STRING:
            try:
                value = ast.literal_eval(token.string)
            except (ValueError, SyntaxError):
                value = token.string[2:-1]
            if isinstance(value, str) and len(re.findall(r"[A-Za-z]{2,} ", value)) >= STRING_WORDS:
                if "\n" in value:
                    kind = "comment" if token.line.lstrip().startswith(('"', "'")) else "string"
                    yield from ((kind,) + p for p in emit("comment", token.start[0], [value]))
                else:
                    yield "string", token.start[0], value
    if block:
        yield "comment", start, plain(" ".join(block))


def hash_comments(text):
    block, start = [], 0
    for n, line in enumerate(text.split("\n") + [""], 1):
        m = re.match(r"\s*#+(?!!)\s?(.*)", line)
        if m and m.group(1).strip():
            if not block:
                start = n
            block.append(m.group(1).strip())
        elif block:
            yield start, plain(" ".join(block))
            block = []
