# SPDX-License-Identifier: Apache-2.0
"""Results of tests, and the lists of test ids that are kept in the project.

A result is a dictionary, one JSON line of a file `<suite>.jsonl` (README.md says what it holds). Ids in lists are on one line
each (`one_line`), sorted, in gzip files that are the same bytes for the same ids.
"""

import gzip
import hashlib
import importlib.util
import json
import pathlib

HERE = pathlib.Path(__file__).resolve().parent
EXCEPTED = HERE / "excepted.tsv"
ENGINE_REQUIRED = HERE / "engine_required"
PASSING = HERE / "passing"
BAD = ("failed", "error", "crashed", "timeout")


def load(path):
    """Test id -> its last result. Skips lines that a killed run left unfinished. No file means no results."""
    path = pathlib.Path(path)
    if not path.exists():
        return {}
    records = {}
    with gzip.open(path, "rt") if path.suffix == ".gz" else open(path) as f:
        for line in f:
            try:
                record = json.loads(line)
                records[record["id"]] = record
            except (ValueError, KeyError, TypeError):
                continue
    return records


def load_suite(name, folders):
    """The results of one suite from several folders; of two results of a test the later folder's."""
    records = {}
    for folder in folders:
        records.update(load(pathlib.Path(folder) / f"{name}.jsonl"))
    return records


def tests_of(records):
    """Without the notes on files that could not be collected."""
    return {i: r for i, r in records.items() if not r["outcome"].startswith("collect_")}


def one_line(nodeid):
    """Some parameters are arrays, printed over several lines."""
    return nodeid.replace("\\", "\\\\").replace("\n", "\\n")


def read_ids(path):
    path = pathlib.Path(path)
    if not path.exists():
        return set()
    with gzip.open(path, "rt", encoding="utf-8") as f:
        return {line.rstrip("\n") for line in f if line.strip()}


def write_ids(path, ids):
    path = pathlib.Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress("".join(i + "\n" for i in sorted(ids)).encode(), 9, mtime=0))


def yardstick(suite):
    """Test id -> whether it needs an engine, according to the lists in engine_required/."""
    known = dict.fromkeys(read_ids(ENGINE_REQUIRED / f"{suite}.other.txt.gz"), False)
    known.update(dict.fromkeys(read_ids(ENGINE_REQUIRED / f"{suite}.txt.gz"), True))
    known.update(dict.fromkeys(excepted(suite), False))
    return known


def excepted(suite):
    """Test id -> reason, of tests that no engine can pass here (excepted.tsv, written by hand)."""
    rows = (line.split("\t") for line in EXCEPTED.read_text(encoding="utf-8").splitlines()[1:])
    return {test: reason for name, test, reason in rows if name == suite}


def asks_engine(record):
    """Whether this test queried the engine or ended when the engine loaded a model, and whether it should pass."""
    if record["outcome"] in ("skipped", "xfailed", "xpassed"):
        return False
    if record.get("needs_engine"):
        return True
    calls = record.get("calls", {})
    return "load" in calls and record["outcome"] in ("crashed", "timeout") or "load_error" in calls and record["outcome"] in BAD


def required(suite, records, engine="moka"):
    """The ids of the tests that count. The null engine determines them and is not measured itself."""
    known = yardstick(suite) if engine != "null" else {}
    return {i for i, r in tests_of(records).items() if known.get(one_line(i), asks_engine(r))}


def passed(suite, records):
    """One-line ids of the tests that count and pass."""
    return {one_line(i) for i in required(suite, records) if records[i]["outcome"] == "passed"}


def lacks_torch(record):
    """Whether the test ended because torch is not installed, as in the CI."""
    kind = "skipped" if record["outcome"] == "skipped" else record.get("error")
    start = {"skipped": "torch is not installed", "NameError": "name 'torch' is not", "ModuleNotFoundError": "No module named 'torch"}.get(kind)
    return start is not None and record["outcome"] != "passed" and record.get("message", "").startswith(start)


def lost(accepted, records):
    """One-line id -> result, for tests that are accepted as passing but do not pass now.

    A skipped test does not pass, unless it was skipped for lack of torch, which says nothing about the engine.
    """
    return {one_line(i): r for i, r in sorted(tests_of(records).items())
            if one_line(i) in accepted and r["outcome"] != "passed" and not lacks_torch(r)}


def accept(accepted, now_passing, records, collected, shrink=False):
    """The next list of passing tests. Without `shrink` it only grows.

    With it, tests go that ran and do not pass, and those that `collected`, all one-line ids of the suite, has no more.
    """
    result = set(accepted) | set(now_passing)
    if shrink:
        result -= set(lost(accepted, records))
        if collected:
            result &= set(collected)
    return result


def read_collected(folder, suite):
    path = pathlib.Path(folder) / f"{suite}.collected.txt"
    return set(path.read_text().splitlines()) if path.exists() else set()


def engine_identity(module):
    """A digest of the files of the engine's package, to tell the results of two builds apart."""
    if module == "null":
        return "null"
    spec = importlib.util.find_spec(module.split(".")[0])
    if spec is None:
        return "missing"
    digest = hashlib.sha256()
    for root in map(pathlib.Path, spec.submodule_search_locations or [spec.origin]):
        for path in sorted(root.rglob("*")) if root.is_dir() else [root]:
            if path.is_file() and "__pycache__" not in path.parts:
                digest.update(f"{path.name}\0{path.stat().st_size}\0".encode())
                digest.update(path.read_bytes())
    return digest.hexdigest()[:16]
