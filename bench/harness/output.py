# SPDX-License-Identifier: Apache-2.0
"""Writes the result of a benchmark to the places that its options name."""

import json
import pathlib


def write(result, page, options):
    """options: `json` prints the result, `out` names a JSON file, `page` a Markdown file with the text of page(result)."""
    if options.json:
        print(json.dumps(result, indent=1))
    if options.out:
        pathlib.Path(options.out).write_text(json.dumps(result, indent=1) + "\n")
    if options.page:
        pathlib.Path(options.page).write_text(page(result))
