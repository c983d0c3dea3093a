# SPDX-License-Identifier: Apache-2.0
"""Generated Swift, compiled by Debian 13's compiler in a folder that holds its system, and run there over Moka.

swift_test.py SYSTEM: the folder that `make test-swift` fills."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

from case import HERE, LIBRARY, PROGRAM, ROOT, run
from generate_test import prepare_package
from record_system import record
from sources import write_accumulator, write_alike, write_everything, write_sum

# Packages that the system has in its own version.
SYSTEMS_OWN = ("ld-linux", "libc.so", "libm.so", "libgcc_s.so", "libstdc++.so", "libpthread", "libdl.so", "librt.so")


def main(system):
    folder = system / "moka-test"
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "lib").mkdir(parents=True)
    (folder / "c").mkdir()
    shutil.copytree(ROOT / "include" / "moka", folder / "c" / "moka")
    shutil.copy(HERE / "swift" / "module.modulemap", folder / "c")
    for line in run("ldd", LIBRARY).splitlines():
        words = line.split()
        if len(words) > 2 and words[2].startswith("/") and not words[0].startswith(SYSTEMS_OWN):
            shutil.copy(words[2], folder / "lib" / words[0])
    shutil.copy(LIBRARY, folder / "lib" / "libmoka.so")
    shutil.copy(LIBRARY, folder / "lib" / LIBRARY.resolve().name.rsplit(".", 1)[0])
    sources = []
    for version in ("5", "6"):
        for model in (write_sum(folder), write_accumulator(folder), write_everything(folder), write_alike(folder)):
            done = run(PROGRAM, "generate", model, folder, "--language", "Swift", "--swift-version", version)
            sources += [Path(line).name for line in done.splitlines()]
            if version == "5":
                shutil.rmtree(model)
        inside = ["chroot", system, "env", "-C", "/moka-test", "LD_LIBRARY_PATH=/moka-test/lib"]
        flags = ["-swift-version", version, "-I", "c", "-I", ".", "-L", "lib", "-L", "."]
        if version == "5":
            for source in HERE.glob("swift/*.swift"):
                shutil.copy(source, folder)
            run(*inside, "swiftc", *flags, "-emit-library", "-emit-module", "-module-name", "CoreML", "-o", "lib/libCoreML.so",
                "-emit-module-path", "CoreML.swiftmodule", "CoreML.swift", "Features.swift", "ComputePlan.swift")
            run(*inside, "swiftc", *flags, "-typecheck", "main.swift", *sources)
            sources = []
    run(*inside, "swiftc", *flags, "-lCoreML", "-o", "main", "main.swift", *sources)
    printed = run(*inside, "./main", "/moka-test")
    if printed != "predicted\n":
        raise SystemExit(f"expected 'predicted', got {printed!r}")
    record(folder, inside)
    prepare_package(folder)
    core_ml = ("-Xswiftc", "-I/moka-test", "-Xswiftc", "-I/moka-test/c", "-Xlinker", "-L/moka-test/lib", "-Xlinker", "-lCoreML")
    printed = run(*inside, "swift", "run", "--package-path", "swiftpm", *core_ml, "plane", "1", "2")
    if printed.split()[-1:] != ["9.0"]:
        raise SystemExit(f"the package printed {printed!r}, expected 9.0")
    print("Swift 5 and 6: generated classes compile and predict, a package with a model runs, recordings come back")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
