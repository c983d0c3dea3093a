# SPDX-License-Identifier: Apache-2.0
"""The licenses of what the wheel contains."""
import importlib.metadata
import json
import re

import pytest

import moka

DISTRIBUTION = importlib.metadata.distribution("moka-coreml")


def bundled():
    return {str(f): re.match(r"(.+)-[0-9a-f]{8}\.so", f.name)[1] for f in DISTRIBUTION.files if f.parts[0].endswith(".libs")}


def test_each_library_in_the_wheel_has_a_text():
    listed = json.loads(DISTRIBUTION.read_text("licenses/libraries.json"))
    files = {row["file"]: row for row in listed if "file" in row}
    assert len(bundled()) >= 15
    assert {f: row["name"] for f, row in files.items()} == bundled()
    for row in listed:
        texts = "".join(DISTRIBUTION.read_text("licenses/" + name) for name in row["texts"])
        assert re.search("copyright", texts, re.I) and len(texts) > 500, row
        assert row["version"] and row["license"] and row["package"] and row["source"].startswith("https://"), row


@pytest.mark.parametrize("name", ["nanobind", "Anti-Grain Geometry", "xxHash", "preact"])
def test_compiled_libraries_are_listed(name):
    assert [entry.text for entry in moka.licenses() if entry.name == name and len(entry.text) > 500]


def test_the_lesser_general_public_license_comes_whole():
    by_name = {entry.name: entry for entry in moka.licenses()}
    for name in ("libsndfile", "libsoxr", "libmpg123", "libmp3lame"):
        assert by_name[name].license.startswith("LGPL-2.") and "snapshot.debian.org" in by_name[name].source
        assert re.search(r"GNU (LESSER|LIBRARY) GENERAL PUBLIC LICENSE\s+Version 2", by_name[name].text), name


def test_metadata_names_all_licenses():
    expression = DISTRIBUTION.metadata["License-Expression"].split(" AND ")
    assert expression[0] == "Apache-2.0"
    assert set(expression) == {part for entry in moka.licenses() for part in entry.license.split(" AND ")}
    named = set(DISTRIBUTION.metadata.get_all("License-File"))
    present = {str(f).split("dist-info/licenses/")[1] for f in DISTRIBUTION.files if "dist-info/licenses/" in str(f)}
    assert present == named | {"libraries.json"}


def test_moka_is_first():
    first = moka.licenses()[0]
    assert (first.name, first.version, first.license) == ("Moka", moka.__version__, "Apache-2.0")
    assert "Apache License" in first.text
