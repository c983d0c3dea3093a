#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes golden/<op>.json for every operation from cases/*.py. `generate.py conv pool`: only those files of cases/."""
import importlib
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)

import case  # noqa: E402

wanted = sys.argv[1:] or sorted(f[:-3] for f in os.listdir(os.path.join(HERE, "cases")) if f.endswith(".py"))
for name in wanted:
    importlib.import_module("cases." + name)
case.write_all(os.path.join(HERE, "golden"))
print("%d operations, %d cases" % (len(case.CASES), sum(map(len, case.CASES.values()))))
