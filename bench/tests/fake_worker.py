# SPDX-License-Identifier: Apache-2.0
"""Replaces worker.py in the tests. The engine's name determines its behavior."""

import json
import os
import pathlib
import sys
import time

behaviour = sys.argv[1]
for line in sys.stdin:
    request = json.loads(line)
    do = request["do"]
    if behaviour == "dies" and do == "run":
        print("out of luck", file=sys.stderr, flush=True)
        os.kill(os.getpid(), 11)
    if behaviour == "hangs" and do == "run":
        time.sleep(60)
    if behaviour == "refuses" and do == "load":
        answer = {"reason": "ValueError: not this model"}
    else:
        answer = {"load": {"import": 0.1, "load": 0.2, "first": 0.05}, "run": {"times": [0.01, 0.02, 0.03], "cpu": 0.06},
                  "check": {"error": 1e-6, "outputs": {"y": 1e-6}}, "peak": {"peak": 1234}}[do]
    if behaviour == "keeps" and do == "load" and "FAKE_CACHE" in os.environ:
        kept = pathlib.Path(os.environ["FAKE_CACHE"]) / "kept"
        if kept.exists():
            answer = {"import": 0.1, "load": 0.02, "first": 0.01}
        kept.touch()
    print(json.dumps(answer), flush=True)
