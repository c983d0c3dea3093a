# SPDX-License-Identifier: Apache-2.0
"""Memory that processes and devices share."""

from typing import Any, Sequence, Union

import numpy

from . import _moka


class SharedBuffer:
    """Memory that processes and devices share, as IOSurface does on Apple's systems.

    An array in it is an input or an output backing that no one copies: the CPU uses it where it lies, and so does a GPU
    that computes in the host's memory and whose driver takes memory of the host.

        buffer = moka.SharedBuffer(4 * 3 * 224 * 224)
        image = buffer.array((1, 3, 224, 224), numpy.float32)

    Another process opens the descriptor `fileno()`, which multiprocessing.reduction.send_handle and socket.send_fds
    send, or a child inherits: `moka.SharedBuffer.open(descriptor)`. Both agree on their own about who writes when.
    """

    def __init__(self, nbytes: int) -> None:
        """New memory of `nbytes` bytes of zeros. Raises InvalidArgumentError (0 bytes), OutOfBudgetError, OSError."""
        self._buffer = _moka.SharedBuffer(nbytes)

    @classmethod
    def open(cls, descriptor: int, offset: int = 0, nbytes: int = 0) -> "SharedBuffer":
        """Memory behind a descriptor of memfd_create: `nbytes` bytes from `offset` on; 0: to its end.

        The descriptor remains the caller's. The file is sealed against shrinking. Raises InvalidArgumentError (a descriptor
        of something else, such as a dma_buf; a range outside).
        """
        made = cls.__new__(cls)
        made._buffer = _moka.SharedBuffer.open(descriptor, offset, nbytes)
        return made

    @property
    def nbytes(self) -> int:
        return self._buffer.nbytes

    @property
    def offset(self) -> int:
        """Where the memory begins in its file."""
        return self._buffer.offset

    def fileno(self) -> int:
        """The descriptor for other processes. The buffer closes it at its end."""
        return self._buffer.fileno()

    def array(self, shape: Union[int, Sequence[int]], dtype: Any, offset: int = 0) -> "numpy.ndarray[Any, Any]":
        """A numpy array at `offset` bytes, row-major, which keeps the memory. Multiples of 256 suit all devices."""
        dtype = numpy.dtype(dtype)
        count = int(numpy.prod(shape, dtype=numpy.int64))
        memory: Any = self._buffer
        return numpy.frombuffer(memory, dtype, count, offset).reshape(shape)
