# SPDX-License-Identifier: Apache-2.0
"""Memory that processes share: moka.SharedBuffer."""

import os
import socket
import subprocess
import sys

import numpy
import pytest

import moka

CHILD = """
import socket, sys, numpy, moka
connection = socket.socket(fileno=int(sys.argv[1]))
message, [descriptor], _, _ = socket.recv_fds(connection, 16, 1)
frames = moka.SharedBuffer.open(descriptor)
frames.array((4, 8), numpy.float32)[:] = numpy.arange(32).reshape(4, 8) - 16
connection.send(b"done")
"""


def model():
    program = moka.build.Program()
    program.output(program.relu(x=program.input("x", moka.build.array((4, 8)))), "y")
    return program.load()


def test_an_array_keeps_the_memory():
    array = moka.SharedBuffer(4096).array((2, 3), numpy.float32)
    array[:] = 7
    assert array.sum() == 42
    assert not moka.SharedBuffer(64).array((16,), "float32", 0).any()


def test_another_process_writes_the_input():
    ours, theirs = socket.socketpair()
    frames, results = moka.SharedBuffer(4096), moka.SharedBuffer(4096)
    with ours, theirs:
        child = subprocess.Popen([sys.executable, "-c", CHILD, str(theirs.fileno())], pass_fds=[theirs.fileno()])
        socket.send_fds(ours, [b"frame"], [frames.fileno()])
        ours.settimeout(60)
        assert ours.recv(16) == b"done"
        assert child.wait(60) == 0
    y = results.array((4, 8), numpy.float32)
    model().predict({"x": frames.array((4, 8), numpy.float32)}, outputs={"y": y})
    expected = numpy.maximum(numpy.arange(32, dtype=numpy.float32).reshape(4, 8) - 16, 0)
    assert (y == expected).all()
    assert (results.array((4, 8), numpy.float32) == expected).all()


def test_errors_name_what_is_wrong():
    with pytest.raises(moka.InvalidArgumentError, match="0 bytes"):
        moka.SharedBuffer(0)
    with pytest.raises(moka.InvalidArgumentError, match="not of memfd_create"):
        moka.SharedBuffer.open(os.open(os.devnull, os.O_RDWR))
    with pytest.raises(ValueError):
        moka.SharedBuffer(16).array((5,), numpy.float32)
