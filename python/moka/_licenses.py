# SPDX-License-Identifier: Apache-2.0
"""The licenses of what the package contains."""

import importlib.metadata
import json
from dataclasses import dataclass
from typing import List


@dataclass(frozen=True)
class License:
    """The license of Moka or of a library that the wheel contains.

    license: an SPDX expression; package: where the library comes from, such as "Debian libsndfile1"; source: the address of its source
    code; text: the notices and the texts of the license.
    """

    name: str
    version: str
    license: str
    package: str
    source: str
    text: str


def licenses() -> List[License]:
    """The licenses of Moka and of each library in its wheel, Moka's first.

    The same texts lie in `licenses` of the wheel's dist-info folder. Without a wheel (`pip install .`), the libraries are those of the
    system, and only Moka's license is returned. Raises importlib.metadata.PackageNotFoundError if the package has no dist-info folder.
    """
    distribution = importlib.metadata.distribution("moka-coreml")

    def text(name: str) -> str:
        found = distribution.read_text("licenses/" + name)
        if found is None:
            raise FileNotFoundError(f"licenses: the package has no text {name}")
        return found

    moka = License("Moka", distribution.version, "Apache-2.0", "PyPI moka-coreml", "", text("LICENSE"))
    listed = json.loads(distribution.read_text("licenses/libraries.json") or "[]")
    return [moka] + [
        License(row["name"], row["version"], row["license"], row["package"], row["source"], "\n\n".join(text(name) for name in row["texts"]))
        for row in listed
    ]
