#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The rules of tools/check for prose and commit messages: what they find, and what they leave alone."""
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent.parent / "tools"))
from checks import architecture, circles, commits, functions, language, libraries, prose, spdx  # noqa: E402


def found(path, text):
    return list(language.findings(path, text))


class Passages(unittest.TestCase):
    def test_comments_and_strings_of_code(self):
        code = '// One thought\n// on two lines.\nint x = 0;  // behind code\nfail("what to say " "in two parts");\nint lent = 1;\n'
        self.assertEqual(list(prose.passages("src/api/a.cpp", code)), [
            (1, "comment", "One thought on two lines."), (3, "comment", "behind code"),
            (4, "string", "what to say in two parts")])

    def test_characters_and_raw_strings_are_not_prose(self):
        self.assertEqual(list(prose.passages("src/api/a.cpp", "char c = '\"'; auto s = R\"x(// not said of who)x\";\n")), [])

    def test_paragraphs_items_and_cells_of_documents(self):
        text = "# Title\n\nOne `x` and\n[a link](of_who.md).\n\n- item\n\n```\ncode of who\n```\n| a | b |\n"
        self.assertEqual([(line, said.strip()) for line, _, said in prose.passages("docs/a.md", text) if said.strip()],
                         [(1, "Title"), (3, "One CODE and a link."), (6, "item"), (11, "a"), (11, "b")])

    def test_docstrings_and_comments_of_python(self):
        code = '"""What a file\nis for here."""\nx = "of who"  # first\n# second\n'
        self.assertEqual([p[1:] for p in prose.passages("bench/a.py", code)],
                         [("comment", "What a file is for here."), ("comment", "first"), ("comment", "second")])


class Functions(unittest.TestCase):
    def test_long_ones_are_found(self):
        body = "  f();\n" * functions.MOST
        signature = "Status C::run(int a,\n              int b) const {\n"
        self.assertEqual(list(functions.long_functions("int x;\n" + signature + body + "}\n")), [(2, functions.MOST + 3)])
        self.assertEqual(list(functions.long_functions("class C {\n  void run() {\n  " + body.replace("\n", "\n  ") + "}\n};\n")),
                         [(2, functions.MOST + 2)])

    def test_other_things_may_be_long(self):
        body = "  f();\n" * (functions.MOST - 2)
        for text in ("void f() {\n%s}\n" % body, "namespace a {\n%s%s}\n" % (body, body), "struct A {\n%s%s};\n" % (body, body),
                     'const char text[] = R"(\nvoid f() {\n%s%s)";\n' % (body, body), "int f(int x);\n" + body + body):
            self.assertEqual(list(functions.long_functions(text)), [], text)


class Language(unittest.TestCase):
    def test_riddles_are_found(self):
        for text in ("// Borrowed by its leader.", "// Threads are lent to predictions.", "// of who nobody waits for",
                     "/// Of the first one.", "// A value that is no matrix.", "// Whatever it is, whoever made it.",
                     "// Reads the the file.", "// Mends the index.", "// The nearest neighbour."):
            self.assertEqual(len(found("src/api/a.cpp", text + "\n")), 1, text)
        self.assertEqual(len(found("src/devices/vulkan/shaders/a.comp", "// Of each component.\n")), 1)
        self.assertEqual(len(found("tools/moka/a.cpp", 'add("Predict so often and show them");\n')), 1)

    def test_plain_english_passes(self):
        for text in ("// There is no matrix.", "// It is no longer open.", "// Of course it is.", "// The bytes of the first one.",
                     "// x is no larger than y.", "/// The result that that call gives."):
            self.assertEqual(found("src/api/a.cpp", text + "\n"), [], text)

    def test_sentences_have_a_length(self):
        self.assertEqual(found("docs/a.md", "word " * language.MAX_CLAUSE + ".\n"), [])
        self.assertEqual(len(found("docs/a.md", "word " * (language.MAX_CLAUSE + 1) + ".\n")), 1)
        half = "word " * (language.MAX_WORDS // 2)
        self.assertEqual(found("docs/a.md", f"{half}. {half}; {half}.\n"), [])
        self.assertEqual(len(found("docs/a.md", f"{half}; {half}; {half}.\n")), 1)

    def test_data_and_generated_files_are_left_alone(self):
        self.assertEqual(found("tests/api/a.cpp", 'read("a model of who knows what");\n'), [])
        self.assertEqual(found("docs/operations/add.md", "The leader of the crew.\n"), [])


class Commits(unittest.TestCase):
    def test_good_messages(self):
        self.assertEqual(list(commits.judge("Add a reader of tables", "Why.", ["src/a.cpp"])), [])
        self.assertEqual(list(commits.judge("Correct a figure", "", ["docs/performance.md"])), [])

    def test_bad_messages(self):
        for subject, body in (("Added a reader", "Why."), ("processors: where threads run", "Why."), ("add a reader", "Why."),
                              ("One way to make an array", "Why."), ("Add " + "x" * 80, "Why."), ("Add a reader.", "Why."),
                              ("Add a reader", "")):
            self.assertEqual(len(list(commits.judge(subject, body, ["src/a.cpp"]))), 1, subject)

    def test_only_what_follows_the_base_is_judged(self):
        with tempfile.TemporaryDirectory() as folder:
            def git(*arguments):
                return subprocess.run(["git", "-C", folder, "-c", "user.name=n", "-c", "user.email=e@x", *arguments], check=True,
                                      capture_output=True, text=True).stdout.strip()
            git("init", "-q")
            git("commit", "-q", "--allow-empty", "-m", "threads: old")
            base = git("rev-parse", "HEAD")
            (pathlib.Path(folder) / "a.py").write_text("")
            git("add", "a.py")
            git("commit", "-q", "-m", "New reader")
            self.assertEqual(len(list(commits.findings(folder, base))), 2)
            self.assertEqual(list(commits.findings(folder, git("rev-parse", "HEAD"))), [])
            self.assertEqual(list(commits.findings(folder, "0" * 40)), [])


class Architecture(unittest.TestCase):
    ARROWS = {"src/base": [], "src/ops": ["src/base"], "src/devices/*": ["src/base", "src/devices/gpu"], "tools/*": ["include/moka"]}

    def test_the_last_column_comes_from_the_arrows(self):
        head = architecture.SECTION + "\n| folder | contains | may include |\n|---|---|---|\n"
        page = head + ("| `src/base` | bytes | |\n| `src/ops/<family>/<op>.cpp` | operations | ir |\n| `src/devices/gpu` | GPUs | |\n"
                       "| `web/` | a page | any |\n| `tools/`, `examples/` | programs | |\n")
        new, problems = architecture.updated(page, self.ARROWS)
        self.assertEqual(new, head + (
            "| `src/base` | bytes | only itself |\n| `src/ops/<family>/<op>.cpp` | operations | base |\n| `src/devices/gpu` | GPUs | base |\n"
            "| `web/` | a page | any |\n| `tools/`, `examples/` | programs | `include/moka` |\n"))
        self.assertEqual([line for line, _ in problems], [4, 5, 6, 8])
        self.assertEqual(architecture.updated(new, self.ARROWS), (new, []))

    def test_much_is_said_by_what_is_missing(self):
        rooms = ["src/%s" % c for c in "abcdefghijklmno"]
        arrows = {**{r: [] for r in rooms}, "src/api": rooms[:-3] + ["include/moka"]}
        self.assertEqual(architecture.shown("src/api", "src/api", arrows), "everything in `src` but m, n and o, `include/moka`")

    def test_a_folder_without_a_row_is_found(self):
        self.assertEqual(architecture.updated("", {"src/ir": []})[1], [(1, "the table of folders lacks src/ir")])

    def test_files_that_documents_name_exist(self):
        files = {"src/a/b.cpp", "src/a/c.h"}
        page = "`src/a/b.cpp`, `src/a/`, `src/a/*.h`\n`src/<folder>/c.h` and `src/a/d.cpp`\n`src/b/<x>.cpp` src/none.cpp\n"
        self.assertEqual(list(architecture.missing(page, files)), [(2, "src/a/d.cpp"), (3, "src/b/<x>.cpp")])


class Circles(unittest.TestCase):
    def test_chains_are_no_circles(self):
        self.assertEqual(circles.circles([("a", "b"), ("b", "c"), ("a", "c"), ("a", "a")]), [])

    def test_circles_of_any_length_are_found(self):
        self.assertEqual(circles.circles([("a", "b"), ("b", "a"), ("c", "d"), ("d", "e"), ("e", "c"), ("e", "a"), ("x", "c")]),
                         [("a", "b"), ("c", "d", "e")])

    def test_imports_of_scripts(self):
        text = 'import { a,\n  b } from "./one";\nimport type { C } from "../two";\nimport x from "preact";\n// from "./none"\nexport { d } from "./three";\n'
        self.assertEqual(list(circles.imports("web/src/main.ts", text)), ["web/src/one", "web/two", "web/src/three"])

    def test_a_source_counts_with_its_header(self):
        self.assertEqual(circles.unit("src/a/b.cpp"), circles.unit("src/a/b.h"))


class Libraries(unittest.TestCase):
    def test_numbers_of_lines(self):
        head = "| `a.cpp`, 1 lines |\n" + libraries.SECTION + ", and why\n\n"
        with tempfile.TemporaryDirectory() as root:
            for name, count in (("a.cpp", 118), ("b.h", 7), ("c.md", 900)):
                pathlib.Path(root, name).write_text("// SPDX-License-Identifier: MIT\n" + "x\n" * count)
            new, problems = libraries.updated(root, head + "| tar | `a.cpp`, 90 lines over `b.h` | why |\n", ["a.cpp", "b.h", "c.md"])
            self.assertEqual(new, head + "| tar | `a.cpp`, 120 lines over `b.h`, 7 lines | why |\n")
            self.assertEqual([line for line, _ in problems], [4, 4])
            self.assertEqual(libraries.updated(root, new, ["a.cpp", "b.h"]), (new, []))
            self.assertEqual(libraries.updated(root, head + "| x | `gone.cpp` | why |", ["a.cpp"])[1], [(4, "no file or folder gone.cpp")])


class Spdx(unittest.TestCase):
    def test_the_line_is_inserted_once(self):
        line = spdx.LINE
        for path, text, expected in (
                ("src/a.cpp", "int x;\n", "// %s\nint x;\n"), ("a.c", "int x;\n", "/* %s */\nint x;\n"),
                ("include/moka/moka.h", "#pragma once\n", "/* %s */\n#pragma once\n"), ("a.py", '"""doc"""\n', '# %s\n"""doc"""\n'),
                ("tools/check", "#!/usr/bin/env python3\nx\n", "#!/usr/bin/env python3\n# %s\nx\n"),
                ("a.comp", "#version 450\nvoid\n", "#version 450\n// %s\nvoid\n"),
                ("Package.swift", "// swift-tools-version:5.5\nx\n", "// swift-tools-version:5.5\n// %s\nx\n")):
            self.assertTrue(spdx.lacks(path, text), path)
            self.assertEqual(spdx.added(path, text), expected % line)
            self.assertFalse(spdx.lacks(path, spdx.added(path, text)), path)
        self.assertFalse(spdx.lacks("a.json", "{}") or spdx.lacks("docs/a.md", "# a"))

    def test_it_is_not_prose(self):
        code = "// One thought\n// on two lines.\nint x;\n"
        self.assertEqual([(n + 1, k, t) for n, k, t in prose.passages("src/api/a.cpp", code)],
                         list(prose.passages("src/api/a.cpp", spdx.added("src/api/a.cpp", code))))


class ReleaseCheck(unittest.TestCase):
    def test_results_go_into_the_page(self):
        """Each suite's status and last significant line, from a fake make that only prints its arguments."""
        script = pathlib.Path(__file__).parent.parent.parent / "tools" / "release-check"
        with tempfile.TemporaryDirectory() as folder:
            fake = pathlib.Path(folder) / "make"
            fake.write_text('#!/bin/sh\necho "running $*"\ncase $1 in test-asan) echo "100% tests passed of 7";;'
                            ' fuzz-smoke) for t in ${2#*=}; do echo "${t%=*}               12       4321       87       60  ok"; done;;'
                            ' test-swift) echo "the package runs";; test-random) echo "[  PASSED  ] 3 tests."; echo;;'
                            ' *) echo "2 tests failed"; exit 2;; esac\n')
            fake.chmod(0o755)
            page = pathlib.Path(folder) / "page.md"

            def check(*options):
                return subprocess.run([sys.executable, str(script), "--out", str(page), *options], capture_output=True, text=True,
                                      env={**os.environ, "PATH": f"{folder}:{os.environ['PATH']}"})

            ran = check("--seconds", "3", "--only", "test-asan,test-tsan,fuzz")
            self.assertEqual(ran.returncode, 1)
            self.assertRegex(ran.stdout, r"running fuzz-smoke FUZZ_TARGETS=fuzz_age .* fuzz_weights FUZZ_SECONDS=3\n")
            text = page.read_text()
            check("--only", "conformance-full", "--shard", "1/4")
            check("--only", "test-swift,test-random", "--tests", "test_ops")
            check("--only", "test-asan", "--tests", "test_ops", "--programs", "test_ops")
            up_to_runs = [check("--only", "fuzz", "--targets", "fuzz_weights,fuzz_age", "--runs", "10000").stdout for _ in range(3)]
            later = page.read_text()
        self.assertRegex(text, r"\| `make test-asan` \| passed \| 100% tests passed of 7 \| 0 \| [0-9a-f]{12}")
        self.assertIn("| `make test-tsan` | failed (2) | 2 tests failed |", text)
        self.assertIn("| fuzz_age | ok | 4,321 | 87 | 1 |", text)
        # a later run of one suite keeps the others
        self.assertIn("| `make conformance-full SHARD=1/4` | failed (2) |", later)
        self.assertIn("| `make test-asan` | passed |", later)
        self.assertIn("| `make test-swift` | passed | the package runs |", later)
        self.assertIn("| `make test-random` | passed | [  PASSED  ] 3 tests. |", later)
        self.assertIn("| `make test-asan TESTS=test_ops PROGRAMS=test_ops` | passed |", later)
        # the runs of earlier commits count
        self.assertIn("FUZZ_TARGETS=fuzz_weights=5679 fuzz_age=5679 ", up_to_runs[0])
        self.assertIn("FUZZ_TARGETS=fuzz_weights=1358 fuzz_age=1358 ", up_to_runs[1])
        self.assertNotIn("running", up_to_runs[2])
        self.assertRegex(later, r"\| fuzz_age \| ok \| 4,321 \|.* 12,963 \| 3 \|")


if __name__ == "__main__":
    unittest.main()
