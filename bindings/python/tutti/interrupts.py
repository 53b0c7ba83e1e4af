# SPDX-License-Identifier: BSD-3-Clause
"""Ctrl-C, and handlers of other signals, while a call waits.

Python runs handlers of signals between two of its own instructions, and a call is one of them. So
while the main thread waits in a call, the library lets Python have a turn every 0.05 s. If a handler
raises an exception, as that of Ctrl-C does, the call ends: its communicator is lost, the other ranks
hear of it, and the exception goes on from there.
"""
import ctypes
import functools
import threading
import time
from typing import Generator, List, Optional

from . import _c

# What a handler has raised, until the call that it ended is back.
_raised: List[BaseException] = []
_ended = False


def _answers() -> Generator[int, None, None]:
    """Handlers run where a generator goes on, which is inside of `try` here. At the first line of a
    function they would run before it."""
    answer = 0
    while True:
        try:
            while True:
                yield answer
                answer = 0
        except GeneratorExit:
            return
        except BaseException as error:  # pylint: disable=broad-except
            # Without this frame, which whoever clears tracebacks would end.
            trace = error.__traceback__
            _raised.append(error.with_traceback(trace.tb_next if trace else None))
            answer = 1


_generator = _answers()
next(_generator)
# No function of Python is between; of the argument there is no need.
_next = ctypes.CFUNCTYPE(ctypes.c_int)(functools.partial(next, _generator, 0))
_function = ctypes.cast(_next, _c.tutti_interrupt_fn)


def install() -> None:
    """From now on calls of the main thread can be interrupted."""
    if threading.current_thread() is threading.main_thread():
        _c.tutti_set_interrupt(_function, None)


def taken() -> Optional[BaseException]:
    """What a handler has raised that ended the call that is just back, once."""
    if not _raised or threading.current_thread() is not threading.main_thread():
        return None
    error = _raised.pop()
    _raised.clear()
    return error


def end() -> None:
    """The program ends: daemon threads whose calls that ends do not come back from them."""
    global _ended
    _ended = True


def reraise() -> None:
    """Raise what has ended the call that is just back."""
    # A daemon thread is stopped wherever it is when the interpreter ends. If that is where it writes
    # that its call has failed, the lock of the file stays taken, and the interpreter aborts.
    while _ended and threading.current_thread() is not threading.main_thread():
        time.sleep(3600)
    error = taken()
    if error is not None:
        raise error


def after_wait(status: int) -> None:
    """A wait is back that has not failed. TUTTI_AGAIN: an exception has ended it; one may also have come
    at the same time as what was waited for."""
    reraise()
    if status:
        raise KeyboardInterrupt
