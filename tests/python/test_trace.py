# SPDX-License-Identifier: Apache-2.0
"""Traces, read back with Perfetto's own messages."""

import collections
import os
import pathlib
import subprocess
import sys
import threading

import numpy as np
import pytest
from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as perfetto

import moka
from conftest import ROOT, program, relu

sys.path.insert(0, str(ROOT / "tests" / "cli"))
from model_files import FLOAT16, array_feature, write_program  # noqa: E402

Slice = collections.namedtuple("Slice", "track start end depth name kind arguments")
NET = """{t} a = conv(x = x, weight = w, pad_type = string("same"))[name = string("first")];
 {t} b = relu(x = a)[name = string("second")];
 {t} c = softmax(x = b, axis = int32(1))[name = string("third")];"""


def net():
    t = "tensor<fp32, [1, 8, 32, 32]>"
    return moka.Model.from_mil(program(f"{t} x, tensor<fp32, [8, 8, 3, 3]> w", NET.format(t=t), "c"))


def inputs():
    rng = np.random.default_rng(0)
    return {"x": rng.random((1, 8, 32, 32), np.float32), "w": rng.random((8, 8, 3, 3), np.float32)}


def read(path):
    """Tracks by number, and slices; all that Perfetto's trace processor relies on is asserted."""
    trace = perfetto.Trace()
    trace.ParseFromString(pathlib.Path(path).read_bytes())
    tracks, slices, counters = {}, [], collections.defaultdict(list)
    names = {}
    opened = collections.defaultdict(list)
    for packet in trace.packet:
        sequence = packet.trusted_packet_sequence_id
        assert sequence != 0
        if packet.sequence_flags & 1:
            names[sequence] = tuple({} for _ in range(4))
        tables = names[sequence]
        for table, entries in zip(tables, (packet.interned_data.event_names, packet.interned_data.event_categories,
                                           packet.interned_data.debug_annotation_names)):
            for entry in entries:
                assert entry.iid not in table
                table[entry.iid] = entry.name
        for entry in packet.interned_data.debug_annotation_string_values:
            tables[3][entry.iid] = entry.str.decode()
        if packet.HasField("track_descriptor"):
            tracks[packet.track_descriptor.uuid] = packet.track_descriptor
            assert packet.track_descriptor.parent_uuid in (0, *tracks)
        if packet.HasField("track_event"):
            event = packet.track_event
            assert event.track_uuid in tracks
            if event.type == perfetto.TrackEvent.TYPE_COUNTER:
                counters[tracks[event.track_uuid].name].append(event.counter_value)
            elif event.type == perfetto.TrackEvent.TYPE_SLICE_BEGIN:
                assert packet.sequence_flags & 2
                arguments = {}
                for a in event.debug_annotations:
                    arguments[tables[2][a.name_iid]] = (
                        tables[3][a.string_value_iid] if a.HasField("string_value_iid") else a.int_value)
                stack = opened[event.track_uuid]
                slices.append(Slice(event.track_uuid, packet.timestamp, None, len(stack), tables[0][event.name_iid],
                                    tables[1][event.category_iids[0]], arguments))
                stack.append(len(slices) - 1)
            else:
                at = opened[event.track_uuid].pop()
                slices[at] = slices[at]._replace(end=packet.timestamp)
                assert slices[at].start <= packet.timestamp
    assert not any(opened.values())
    # A slice lies inside of those around it.
    for track in tracks:
        around = []
        for s in (s for s in slices if s.track == track):
            del around[s.depth:]
            assert all(o.start <= s.start and s.end <= o.end for o in around)
            around.append(s)
    return tracks, slices, counters


def lane(tracks, slices, name, model=None):
    return [s for s in slices if tracks[s.track].name == name
            and (model is None or tracks[tracks[s.track].parent_uuid].name == model)]


def test_lanes_match_explain(tmp_path):
    path = tmp_path / "t.pftrace"
    with moka.trace(path):
        model = net()
        for _ in range(5):
            model.predict(inputs())
    tracks, slices, counters = read(path)
    activity = [s.name for s in lane(tracks, slices, "Activity")]
    assert activity.count("load") == 1 and activity.count("predict") == 5
    assert {"import", "passes", "plan"} <= set(activity)
    plan = model.explain(inputs())
    expected = collections.Counter(
        (o.name, o.type, o.kernel) for o in plan.operations if o.kernel and not o.note.startswith("no copy"))
    seen = collections.Counter((s.name, s.kind, s.arguments["kernel"]) for s in lane(tracks, slices, "Compute")
                               if "kernel" in s.arguments)
    assert seen == {k: 5 * n for k, n in expected.items()}
    for s in lane(tracks, slices, "Compute"):
        assert (s.kind == "stretch") == (s.depth == 0)
        if s.kind != "stretch" and "kernel" in s.arguments:
            assert s.arguments["shape"] in [", ".join(o.outputs) for o in plan.operations if o.name == s.name]
    assert max(counters["Predictions running"]) == 1 and counters["Predictions running"][-1] == 0
    assert min(counters["Memory of the process"]) > 1e6


def test_zero_copy_has_an_empty_data_lane(tmp_path):
    t = "tensor<fp16, [1, 4096]>"
    features = [[array_feature(name, [1, 4096], FLOAT16)] for name in "xy"]
    path = write_program(tmp_path / "net.mlmodelc", program(f"{t} x", f'{t} y = relu(x = x)[name = string("y")];', "y"),
                         *features)
    model = moka.Model(path, precision="exact")
    x, y = np.linspace(-1, 1, 4096, dtype=np.float16)[None], np.empty((1, 4096), np.float16)
    trace = moka.trace(tmp_path / "t.pftrace")
    model.predict({"x": x}, outputs={"y": y})
    summary = trace.summary()
    assert np.array_equal(y, np.maximum(x, 0))
    assert [g.name for g in summary.groups if g.lane == "Data"] == []
    assert [g.count for g in summary.groups if g.kind == "predict"] == [1]


def test_data_lane_says_what_is_copied_and_why(tmp_path):
    model = relu(shape="1, 1000")
    trace = moka.trace(tmp_path / "t.pftrace")
    model.predict({"x": np.zeros((1, 1000), np.float64)})
    model.predict({"x": np.zeros((1, 1000), np.float64)})
    groups = [g for g in trace.summary().groups if g.lane == "Data"]
    assert [(g.name, g.kind, g.reason, g.count, g.bytes) for g in groups] == [
        ("x", "convert", "fp64 to fp32", 2, 8000)]


def test_strided_arrays_are_converted(tmp_path):
    model = relu(shape="4, 6")
    trace = moka.trace(tmp_path / "t.pftrace")
    model.predict({"x": np.zeros((6, 4), np.float32).T})
    groups = [g for g in trace.summary().groups if g.lane == "Data"]
    assert [(g.kind, g.reason, g.bytes) for g in groups] == [
        ("convert", "its strides are not row-major", 96)]


def test_models_and_threads_stay_apart(tmp_path):
    path = tmp_path / "t.pftrace"
    with moka.trace(path):
        models = [net(), net()]
        threads = [threading.Thread(target=lambda m=m: [m.predict(inputs()) for _ in range(20)])
                   for m in models for _ in range(3)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
    tracks, slices, _ = read(path)
    names = {tracks[tracks[s.track].parent_uuid].name for s in lane(tracks, slices, "Compute")}
    assert len(names) == 2
    for name in names:
        predictions = [s for s in lane(tracks, slices, "Activity", name) if s.name == "predict"]
        assert len(predictions) == 60
        assert len({s.track for s in predictions}) == 3


def test_starts_and_stops_while_the_program_runs(tmp_path):
    model = net()
    stop = threading.Event()
    thread = threading.Thread(target=lambda: [model.predict(inputs()) for _ in iter(stop.is_set, True)])
    thread.start()
    try:
        for i in range(5):
            trace = moka.trace(tmp_path / f"{i}.pftrace")
            for _ in range(3):
                model.predict(inputs())
            trace.stop()
            _, slices, _ = read(trace.path)
            assert sum(s.name == "predict" for s in slices) >= 3
    finally:
        stop.set()
        thread.join()


def test_errors(tmp_path):
    with pytest.raises(moka.IOError, match="cannot be written"):
        moka.trace(tmp_path / "none" / "t.pftrace")
    with moka.trace(tmp_path / "t.pftrace"):
        with pytest.raises(moka.InvalidArgumentError, match="already traces to"):
            moka.trace(tmp_path / "u.pftrace")
    (tmp_path / "text").write_text("no trace")
    with pytest.raises(moka.MalformedModelError, match="Perfetto"):
        moka.summarize_trace(str(tmp_path / "text"))
    with pytest.raises(moka.NotFoundError):
        moka.summarize_trace(str(tmp_path / "absent"))


CHILD = """
import os, sys, numpy as np, moka
model = moka.Model.from_mil(sys.argv[1])
model.predict({"x": np.zeros((1, 3), np.float32)})
pid = os.fork()
if pid == 0:
    model.predict({"x": np.zeros((1, 3), np.float32)})
    sys.exit(0)
assert os.waitpid(pid, 0)[1] == 0
"""


def test_the_environment_traces_a_program_and_its_children(tmp_path):
    t = "tensor<fp32, [1, 3]>"
    text = program(f"{t} x", f'{t} y = relu(x = x)[name = string("y_op")];', "y")
    subprocess.run([sys.executable, "-c", CHILD, text], check=True, cwd=tmp_path,
                   env={**os.environ, "MOKA_TRACE": "%p.pftrace"})
    counts = sorted(sum(g.count for g in moka.summarize_trace(str(f)).groups if g.kind == "predict")
                    for f in tmp_path.glob("*.pftrace"))
    assert counts == [1, 1]


def test_what_was_written_before_a_kill_can_be_read(tmp_path):
    t = "tensor<fp32, [1, 3]>"
    text = program(f"{t} x", f'{t} y = relu(x = x)[name = string("y_op")];', "y")
    code = ("import os, sys, time, numpy as np, moka\n"
            "m = moka.Model.from_mil(sys.argv[1])\n"
            "m.predict({'x': np.zeros((1, 3), np.float32)})\n"
            "time.sleep(1)\nos.kill(os.getpid(), 9)\n")
    done = subprocess.run([sys.executable, "-c", code, text], cwd=tmp_path, env={**os.environ, "MOKA_TRACE": "k.pftrace"})
    assert done.returncode == -9
    path = tmp_path / "k.pftrace"
    whole = path.read_bytes()
    assert [g.count for g in moka.summarize_trace(str(path)).groups if g.kind == "predict"] == [1]
    path.write_bytes(whole[:-3])
    assert moka.summarize_trace(str(path)).seconds > 0


def test_conclusions_name_what_each_call_repeats(tmp_path):
    model = relu(shape="1, 100000")
    with moka.trace(tmp_path / "t.pftrace") as trace:
        for _ in range(10):
            model.predict({"x": np.zeros((1, 100000), np.float64)})
    found = moka.trace_conclusions(trace.path, only=["converted-type"])
    # Models of other tests may still be loaded.
    assert found.predictions == 10 and found.models >= 1 and found.left_out == 0
    (one,) = found.conclusions
    assert one.text == "converts float64 to float32 once a call: pass float32 arrays (input 'x')"
    assert one.count == 10 and one.seconds > 0
    assert {(e.lane, e.name, e.details["reason"]) for e in one.events} == {("Data", "x", "fp64 to fp32")}
    assert one.text in moka.conclusions_page(trace.path) and one.text in found.to_json()
    assert moka.trace_conclusions(trace.path, ignore=["converted-type"], only=["converted-type"]).conclusions == []
    with pytest.raises(moka.InvalidArgumentError, match="converted-type"):
        moka.trace_conclusions(trace.path, only=["none"])


def test_a_ring_keeps_the_newest_events(tmp_path):
    model = net()
    with moka.trace(tmp_path / "t.pftrace", ring=8000) as trace:
        for _ in range(200):
            model.predict(inputs())
    _, slices, counters = read(trace.path)
    assert 0 < len(slices) <= 200
    assert counters["Events left out"][-1] > 0
    assert trace.conclusions().left_out == counters["Events left out"][-1]


def test_another_process_records_this_one(tmp_path):
    path = moka.allow_tracing(tmp_path / "live.sock")
    assert moka.allow_tracing() == path
    model = net()
    recorder = subprocess.Popen([sys.executable, "-m", "moka", "trace", "--socket", path, "--seconds", "0.5", "-o", tmp_path / "t.pftrace", "--json"],
                                stdout=subprocess.PIPE, stdin=subprocess.DEVNULL)
    while recorder.poll() is None:
        model.predict(inputs())
    assert recorder.returncode == 0
    _, slices, _ = read(tmp_path / "t.pftrace")
    assert {"loaded before", "predict"} <= {s.name for s in slices}
