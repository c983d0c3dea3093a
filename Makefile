# SPDX-License-Identifier: Apache-2.0
# Entry points for users: `make demo`, `make test`. Each target sets up its own dependencies.
# CMakePresets.json: `dev` is in BUILD, for tests and tools; `release` in RELEASE is what wheel, install and benchmarks take. RELEASE=build takes
# the wheel from the development build, as CI does, which builds once.
BUILD ?= build
RELEASE ?= $(BUILD)-release
JOBS ?= $(shell nproc)
CMAKE_FLAGS ?=

.PHONY: all setup demo test test-all test-models test-asan test-tsan test-release test-random fuzz-smoke check release-check wheel test-python test-onnx-export test-training test-clients test-swift test-view pictures soak install golden docs abi check-ops \
        conformance conformance-full conformance-ci conformance-docs bench bench-camera bench-choices bench-compile bench-compress bench-exported bench-functions bench-layers bench-loads bench-tables bench-tracing bench-training bench-update bench-compare bench-docs bench-accuracy bench-vulkan bench-gpu \
        bench-kernels clean

all: $(BUILD)/build.ninja
	cmake --build $(BUILD) -j $(JOBS)

setup:
	@tools/setup

$(BUILD)/build.ninja: CMakePresets.json | setup
	cmake --preset dev -B $(BUILD) $(CMAKE_FLAGS)
	@touch $@

ifneq ($(RELEASE),$(BUILD))
$(RELEASE)/build.ninja: CMakePresets.json | setup
	cmake --preset release -B $(RELEASE) $(CMAKE_FLAGS)
	@touch $@
endif

## Listens to a melody with Spotify's Basic Pitch model and writes down its notes.
demo: $(BUILD)/build.ninja
	cmake --build $(BUILD) -j $(JOBS) --target demo
	@tools/demo $(BUILD)

CTEST = ctest --output-on-failure --no-tests=error

## Unit, conformance and hostile-input tests.
test: all
	$(CTEST) --test-dir $(BUILD) -j $(JOBS)

## The tests that open the published models of MOKA_TEST_MODELS.
test-models: all
	$(CTEST) --test-dir $(BUILD) -j $(JOBS) -L models

## The same without shares: make test runs half of the Vulkan tests in each mode of the driver, by name.
test-all: all
	MOKA_TEST_ALL=1 $(CTEST) --test-dir $(BUILD) -j $(JOBS)

## The same under AddressSanitizer and UndefinedBehaviorSanitizer. TESTS: a regular expression of ctest that names some of them;
## PROGRAMS: the programs that these need, instead of building all.
TESTS ?=
PROGRAMS ?=
SOME_TESTS = $(if $(TESTS),-R '$(TESTS)')
SOME_PROGRAMS = $(if $(PROGRAMS),--target $(PROGRAMS))
test-asan: | setup
	cmake --preset asan -B $(BUILD)-asan $(CMAKE_FLAGS)
	cmake --build $(BUILD)-asan -j $(JOBS) $(SOME_PROGRAMS)
	UBSAN_OPTIONS=print_stacktrace=1 LSAN_OPTIONS=suppressions=$(CURDIR)/tests/leaks.supp:print_suppressions=0 \
	  $(CTEST) --test-dir $(BUILD)-asan -j $(JOBS) $(SOME_TESTS)

## The same under ThreadSanitizer. Libraries that are not built with it are not looked into.
test-tsan: | setup
	cmake --preset tsan -B $(BUILD)-tsan $(CMAKE_FLAGS)
	cmake --build $(BUILD)-tsan -j $(JOBS) $(SOME_PROGRAMS)
	TSAN_OPTIONS=ignore_noninstrumented_modules=1:die_after_fork=0 $(CTEST) --test-dir $(BUILD)-tsan $(SOME_TESTS)

## PROGRAMS random programs of every operation and as many random networks; SEED selects which. make test runs fewer.
PROGRAMS_EACH = $(or $(PROGRAMS),500)
SEED ?= 1
test-random: $(BUILD)/build.ninja
	cmake --build $(BUILD) -j $(JOBS) --target test_conformance
	MOKA_RANDOM_PROGRAMS=$(PROGRAMS_EACH) MOKA_RANDOM_SEED=$(SEED) $(BUILD)/tests/test_conformance --gtest_brief=1 \
	  --gtest_filter='*Grid*:Networks*'

## Every libFuzzer target for a minute, with clang. FUZZ_SECONDS sets the time, FUZZ_TARGETS the targets, such as fuzz_age or
## fuzz_age=1000, which ends after 1000 runs.
FUZZ_SECONDS ?= 60
## With FUZZ_DEVICE=simulator or FUZZ_DEVICE=vulkan, fuzz_predict also runs each model in random cuts between that device and the CPU.
FUZZ_DEVICE ?=
FUZZ_TARGETS ?= $(if $(FUZZ_DEVICE),fuzz_predict)
fuzz-smoke:
	@tools/setup --fuzz
	cmake --preset fuzz -B $(BUILD)-fuzz
	cmake --build $(BUILD)-fuzz -j $(JOBS) --target fuzzers
	@MOKA_FUZZ_DEVICE=$(FUZZ_DEVICE) tools/fuzz-smoke --jobs $(JOBS) $(BUILD)-fuzz $(FUZZ_SECONDS) $(FUZZ_TARGETS)

## All tests on the release build, as users get it.
test-release: $(RELEASE)/build.ninja
	cmake --build $(RELEASE) -j $(JOBS)
	$(CTEST) --test-dir $(RELEASE) -j $(JOBS)

## The Python package, dist/moka_coreml-*.whl; PYTHONS: the interpreters to build it with.
PYTHONS ?= python3
wheel: $(RELEASE)/build.ninja
	@tools/setup --wheel
	cmake --build $(RELEASE) -j $(JOBS) --target moka_cli moka_drawing moka_report moka_recording
	@tools/wheel $(RELEASE) $(PYTHONS)

## Installs the wheel into an environment of its own and tests it there, with coremltools and without.
test-python: wheel
	@tests/python/run

## Every model of the corpora and PROGRAMS random networks as ONNX, checked by onnx and run by onnxruntime: minutes.
test-onnx-export: wheel $(BUILD)/build.ninja
	@tests/python/run -k to_onnx
	cmake --build $(BUILD) -j $(JOBS) --target test_conformance
	MOKA_PRINT_NETWORKS=1 MOKA_RANDOM_PROGRAMS=$(PROGRAMS_EACH) MOKA_RANDOM_SEED=$(SEED) $(BUILD)/tests/test_conformance \
	  --gtest_filter=Networks.ColumnsAgree > $(BUILD)/networks.mil
	$(BUILD)/python-full/bin/python tests/python/onnx_judge.py --list --networks $(BUILD)/networks.mil

## The tests of the package onnx on Moka: all node tests and those with data.
test-onnx: test-python
	$(BUILD)/python-full/bin/python tests/python/onnx_backend.py --least 1953 --json $(BUILD)/onnx.json

## Whole nets trained for 100 steps, their weights compared with PyTorch's in float64: minutes. TRAINING_FLAGS are options of
## tests/training/nets.py, for example "--only resnet18_head".
TRAINING_FLAGS ?=
test-training: $(BUILD)/build.ninja
	cmake --build $(BUILD) -j $(JOBS) --target moka_bench_training
	@bench/setup --no-wheel --peers ""
	$(BENCH_VENV)/bin/python tests/training/nets.py --program $(BUILD)/bench-training/moka_bench_training --folder $(BUILD)/training-nets $(TRAINING_FLAGS)

## Generated Swift and programs of moka record, compiled and run in Debian 13's system, which the first run puts into SWIFT_SYSTEM: minutes, 3 GB, root.
SWIFT_SYSTEM ?= $(HOME)/.cache/moka/debian-13
test-swift: $(BUILD)/build.ninja
	cmake --build $(BUILD) -j $(JOBS) --target moka_program
	@tests/generate/swift_system $(SWIFT_SYSTEM)
	@MOKA_PROGRAM=$(BUILD)/bin/moka MOKA_LIBRARY=$(BUILD)/src/libmoka.so python3 tests/generate/swift_test.py $(SWIFT_SYSTEM)

## Programs of others, unchanged, on the wheel; CLIENT_TORCH=1 also converts a PyTorch model and exports detectors with
## ultralytics, for which pip fetches torch.
test-clients: wheel
	@tools/test-clients

## The viewer in Chromium with every model of MOKA_TEST_MODELS; screenshots in $(BUILD)/view-test/screenshots.
test-view: $(BUILD)/build.ninja
	@tools/setup --view
	cmake --build $(BUILD) -j $(JOBS) --target moka_program
	@tests/view/run $(BUILD)

## The pictures of the README in docs/pictures, from the model of the demo.
pictures: demo
	@tools/setup --view
	cmake --build $(BUILD) -j $(JOBS) --target moka_program
	@tests/view/run $(BUILD) pictures

## Long runs of the wheel with the memory of the process; minutes.
soak: test-python
	$(BUILD)/python-full/bin/python tests/soak/soak.py

## Format, include arrows, registries, language, commit messages.
check:
	@tools/setup --format
	@tools/check

## The suites that CI leaves out, most of a day: the tests under both sanitizers, random programs, ONNX, other projects'
## programs, Swift, long runs, all of coremltools' tests, and an hour of each fuzz target: docs/release-check.md.
## RELEASE_FLAGS are options of tools/release-check, for example "--only fuzz --seconds 60".
RELEASE_FLAGS ?=
release-check:
	@tools/release-check $(RELEASE_FLAGS)

## The tables of operations and of what runs where, in docs/.
docs: $(BUILD)/build.ninja
	cmake --build $(BUILD) -j $(JOBS) --target moka_opdocs
	$(BUILD)/tools/opdocs/moka_opdocs docs

## The definitions of operations against those of coremltools, recorded anew; PYTHON is one that has it.
PYTHON ?= python3
check-ops: $(BUILD)/build.ninja
	cmake --build $(BUILD) -j $(JOBS) --target moka_opdocs
	$(BUILD)/tools/opdocs/moka_opdocs --json $(BUILD)/ops.json
	$(PYTHON) tests/conformance/registry.py
	$(PYTHON) tools/check_ops.py $(BUILD)/ops.json tests/conformance/registry.json

## tests/c_api/abi.txt, the list of the C interface that a test compares with the headers and the library.
abi: $(BUILD)/build.ninja
	cmake --build $(BUILD) -j $(JOBS) --target abi

## coremltools' own tests with the wheel (tests/coremltools/README.md): of the large suites samples, under an
## hour on two cores. All targets go on where they were stopped; CONFORMANCE_FLAGS are options of run.py.
export CONFORMANCE_VENV ?= $(BUILD)/conformance-venv
CONFORMANCE_FLAGS ?=
## CONFORMANCE_DEVICE=vulkan: models run on that device, and on the CPU what it refuses; results in a folder of their own.
CONFORMANCE_DEVICE ?=
CONFORMANCE_RUN = $(CONFORMANCE_VENV)/bin/python tests/coremltools/run.py --jobs $(JOBS) $(if $(CONFORMANCE_DEVICE),--device $(CONFORMANCE_DEVICE))
CONFORMANCE_OUT = $(BUILD)/conformance$(1)$(if $(CONFORMANCE_DEVICE),-$(CONFORMANCE_DEVICE))
conformance: wheel
	@tests/coremltools/setup
	$(CONFORMANCE_RUN) --out $(call CONFORMANCE_OUT) $(CONFORMANCE_FLAGS)

## The same with all tests, about two hours on two cores; SHARD=2/4 runs the second of four parts.
conformance-full: wheel
	@tests/coremltools/setup
	$(CONFORMANCE_RUN) --full --out $(call CONFORMANCE_OUT,-full) $(if $(SHARD),--shard $(SHARD)) $(CONFORMANCE_FLAGS)

## A fixed choice of the tests that pass and need no torch; one that fails is an error. Under ten minutes on two cores.
conformance-ci: wheel
	@tests/coremltools/setup --ci
	$(CONFORMANCE_RUN) --ci --out $(call CONFORMANCE_OUT,-ci) $(CONFORMANCE_FLAGS)

## docs/conformance.md from the results of conformance-full; RESULTS names other folders, of several machines for example.
RESULTS ?= $(BUILD)/conformance-full
conformance-docs:
	$(CONFORMANCE_VENV)/bin/python tests/coremltools/report.py summary $(RESULTS)
	tests/coremltools/report.py docs

## Times the nets of bench/nets on Moka and its peers (bench/README.md), hours for all; BENCH_FLAGS are options of run.py, for
## example "--nets mobilenet_v2,resnet50 --engines moka,onnxruntime --threads 1 --precision fp32 --seconds 2".
export BENCH_VENV ?= $(BUILD)/bench/venv
BENCH_FLAGS ?=
BENCH_RESULTS ?= $(BUILD)/bench/results.json
bench: wheel
	@bench/setup
	$(BENCH_VENV)/bin/python bench/run.py --out $(BENCH_RESULTS) --models $(BUILD)/bench/models $(BENCH_FLAGS)
	$(if $(BENCH_FLAGS),,$(MAKE) bench-tables bench-compile bench-loads)

## Compiling models and loading the result, with the program that was built: docs/performance/compile.md. BENCH_COMPILE_FLAGS are
## options of bench/compile/run.py, for example "--models linear --rounds 3".
bench-compile: $(RELEASE)/build.ninja
	cmake --build $(RELEASE) -j $(JOBS) --target moka_program
	python3 bench/compile/run.py --program $(RELEASE)/bin/moka $(if $(BENCH_COMPILE_FLAGS),$(BENCH_COMPILE_FLAGS),--page docs/performance/compile.md)

## Compressing nets with moka and coremltools, and what the search finds: docs/performance/compress.md. BENCH_COMPRESS_FLAGS are
## options of bench/compress/run.py, for example "--nets mobilenet_v2 --alone".
bench-compress: wheel
	cmake --build $(RELEASE) -j $(JOBS) --target moka_program
	@bench/setup --peers ""
	$(BUILD)/bench/venv/bin/python bench/compress/run.py --program $(RELEASE)/bin/moka $(if $(BENCH_COMPRESS_FLAGS),$(BENCH_COMPRESS_FLAGS),--page docs/performance/compress.md)

## Exports the nets with torch.onnx, converts them with moka and compares Moka's answers with onnxruntime's: docs/onnx-nets.md.
## BENCH_EXPORTED_FLAGS are options of bench/exported.py, for example "--nets mobilenet_v2".
bench-exported: wheel
	@bench/setup --peers onnxruntime
	$(BENCH_VENV)/bin/python bench/exported.py --out $(BUILD)/bench/exported.json --models $(BUILD)/bench/models \
	    $(if $(BENCH_EXPORTED_FLAGS),$(BENCH_EXPORTED_FLAGS),--page docs/onnx-nets.md)

## Classic models for one row and for tables, beside the libraries that trained them: docs/performance/tables.md. BENCH_TABLES_FLAGS
## are options of bench/tables/run.py, for example "--models svr --rows 1".
bench-tables: wheel
	@bench/tables/setup
	$(BUILD)/bench/tables-venv/bin/python bench/tables/run.py --out $(BUILD)/bench/tables.json \
	    $(if $(BENCH_TABLES_FLAGS),$(BENCH_TABLES_FLAGS),--page docs/performance/tables.md)

## What the functions of one file cost in memory and in time to load: docs/weights.md. BENCH_FUNCTIONS_FLAGS are options of
## bench/functions/run.py.
BENCH_FUNCTIONS_FLAGS ?=
bench-functions: test-python
	$(BUILD)/python-full/bin/python bench/functions/run.py $(BENCH_FUNCTIONS_FLAGS)

## What registered layers cost in C and in Python, beside the built-in layer and NumPy alone. BENCH_LAYERS_FLAGS are options of
## bench/layers/run.py.
BENCH_LAYERS_FLAGS ?=
bench-layers: test-python
	$(BUILD)/python-full/bin/python bench/layers/run.py $(BENCH_LAYERS_FLAGS)

## What writing a trace costs, on MobileNetV2 and on small operations: docs/performance/tracing.md. BENCH_TRACING_FLAGS are options of
## bench/tracing/run.py.
bench-tracing: test-python
	$(BUILD)/python-full/bin/python bench/tracing/run.py $(if $(BENCH_TRACING_FLAGS),$(BENCH_TRACING_FLAGS),--page docs/performance/tracing.md)

## Steps of training beside PyTorch, eager and compiled: times and memory. BENCH_TRAINING_FLAGS are options of
## bench/training/run.py, for example "--only cnn --quick" or "--only cnn --kernels".
bench-camera: wheel
	@[ -x $(BUILD)/bench/camera-venv/bin/python ] || python3 -m venv $(BUILD)/bench/camera-venv
	@$(BUILD)/bench/camera-venv/bin/pip install -q -r bench/camera/requirements.txt
	@$(BUILD)/bench/camera-venv/bin/pip install -q --force-reinstall --no-deps "$$(tools/newest-wheel)"
	$(BUILD)/bench/camera-venv/bin/python bench/camera/run.py $(if $(BENCH_CAMERA_FLAGS),$(BENCH_CAMERA_FLAGS),--page docs/performance/camera.md)

bench-training: $(RELEASE)/build.ninja
	cmake --build $(RELEASE) -j $(JOBS) --target moka_bench_training
	@bench/setup --no-wheel --peers ""
	$(BENCH_VENV)/bin/python bench/training/run.py --program $(RELEASE)/bench-training/moka_bench_training $(BENCH_TRAINING_FLAGS)

## Times moka.UpdateTask beside PyTorch and scikit-learn. BENCH_UPDATE_FLAGS are options of bench/training/update.py.
BENCH_UPDATE_FLAGS ?=
bench-update: wheel
	@bench/setup --peers ""
	$(BENCH_VENV)/bin/python bench/training/update.py $(BENCH_UPDATE_FLAGS)

## What the nets do on the device vulkan, beside ncnn's Vulkan backend: docs/performance/vulkan.md. BENCH_VULKAN_FLAGS are options
## of vulkan.py, for example "--nets mobilenet_v2 --count".
BENCH_VULKAN_FLAGS ?=
bench-vulkan: wheel
	cmake --build $(RELEASE) -j $(JOBS) --target moka_count_layer
	@bench/setup --peers ncnn
	$(BENCH_VENV)/bin/python bench/vulkan.py --layer $(RELEASE)/bench/vulkan --out $(BUILD)/bench/vulkan.json \
	  --models $(BUILD)/bench/models --page docs/performance/vulkan.md $(BENCH_VULKAN_FLAGS)

## Times of the nets on a GPU beside PyTorch on CUDA and ncnn: docs/performance/gpu.md. BENCH_GPU_FLAGS are options of gpu.py, for example
## "--nets mobilenet_v2".
BENCH_GPU_FLAGS ?= --page docs/performance/gpu.md
bench-gpu: wheel
	@bench/setup --peers ncnn
	$(BENCH_VENV)/bin/python bench/gpu.py --program $(RELEASE)/bin/moka --out $(BUILD)/bench/gpu.json \
	  --models $(BUILD)/bench/models $(BENCH_GPU_FLAGS)

## Fails when NEW is slower, larger or less right than OLD beyond noise; both are results of the same machine.
bench-compare:
	@bench/compare.py $(COMPARE_FLAGS) $(OLD) $(NEW)

## Loads and first predictions, cold and warm, beside the peers: docs/performance/loads.md. BENCH_LOADS_FLAGS are options of
## bench/loads.py, for example "--nets bert_base --rounds 5".
bench-loads: wheel
	@bench/setup
	$(BENCH_VENV)/bin/python bench/loads.py --out $(BUILD)/bench/loads.json --models $(BUILD)/bench/models \
	    $(if $(BENCH_LOADS_FLAGS),$(BENCH_LOADS_FLAGS),--page docs/performance/loads.md)

## Whether `moka tune` beside busy loops chooses kernels as fast as the best. BENCH_CHOICES_FLAGS are options of bench/choices.py, for
## example "--nets resnet50 --threads 2".
bench-choices: $(RELEASE)/build.ninja
	cmake --build $(RELEASE) -j $(JOBS) --target moka_program
	@bench/setup --no-wheel --peers ""
	$(BENCH_VENV)/bin/python bench/choices.py --program $(RELEASE)/bin/moka --models $(BUILD)/bench/models $(BENCH_CHOICES_FLAGS)

## How far answers on all nets, float32 and float16, are from PyTorch's, about an hour at first: docs/accuracy.md. ACCURACY_FLAGS are
## options of accuracy.py, for example "--nets mobilenet_v2 --json".
bench-accuracy: wheel
	@bench/setup --peers ""
	$(BENCH_VENV)/bin/python bench/accuracy.py --out $(BUILD)/bench/accuracy.json --models $(BUILD)/bench/models \
	    --page docs/accuracy.md $(ACCURACY_FLAGS)

## docs/performance.md, its plot and the tables in docs/performance/ from the results of the last run.
bench-docs:
	$(BENCH_VENV)/bin/python bench/report.py $(BENCH_RESULTS)

## Kernels beside oneDNN's, on one thread: GFLOP/s and the fractions of what multiply-adds in registers and copies in memory reach,
## about four minutes; then convolutions beside onnxruntime's. BENCH_KERNELS_FLAGS are options of Google Benchmark, for example
## --benchmark_filter=resnet50; BENCH_CONVOLUTIONS_FLAGS are options of bench/convolutions/run.py, for example "--isa avx2".
BENCH_KERNELS_FLAGS ?= --benchmark_min_time=0.02 --benchmark_counters_tabular=true
BENCH_CONVOLUTIONS_FLAGS ?=
bench-kernels: wheel
	@tools/setup --bench-kernels
	cmake --preset bench -B $(BUILD)-bench $(CMAKE_FLAGS)
	cmake --build $(BUILD)-bench -j $(JOBS) --target moka_bench_kernels
	$(BUILD)-bench/bench/kernels/moka_bench_kernels $(BENCH_KERNELS_FLAGS)
	@bench/setup --peers onnxruntime
	$(BENCH_VENV)/bin/python bench/convolutions/run.py --roofs $(BUILD)-bench/bench/kernels/moka_bench_kernels $(BENCH_CONVOLUTIONS_FLAGS)

## Library, headers, programs, man page and completion; PREFIX=... for another place than /usr/local, DESTDIR=... for packages.
install: $(RELEASE)/build.ninja
	cmake --build $(RELEASE) -j $(JOBS) --target moka_program moka_completion
	cmake --install $(RELEASE) $(if $(PREFIX),--prefix "$(PREFIX)")

clean:
	rm -rf $(BUILD) $(RELEASE) $(BUILD)-asan $(BUILD)-tsan $(BUILD)-fuzz $(BUILD)-bench
