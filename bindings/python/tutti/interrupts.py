# SPDX-License-Identifier: BSD-3-Clause
"""Ctrl-C, and handlers of other signals, while a call waits.

Python runs signal handlers between two of its own instructions, and a call is one instruction. So
while the main thread waits in a call, the library gives Python a turn every 0.05 s. If a handler
raises an exception, as that of Ctrl-C does, the call ends: its communicator is lost, the other
ranks hear of it, and the exception goes on from there.
"""
import ctypes
import functools
import threading
import time
from typing import Generator, List, Optional

from . import _c

# The exception of a handler, until the call that it ended has returned.
_raised: List[BaseException] = []
_ended = False


def _answers() -> Generator[int, None, None]:
    """Let handlers run where a generator goes on, which is inside of `try` here. At the first line
    of a function they would run before it."""
    answer = 0
    while True:
        try:
            while True:
                yield answer
                answer = 0
        except GeneratorExit:
            return
        except BaseException as error:  # pylint: disable=broad-except
            # Without this frame, which code that clears tracebacks would end.
            trace = error.__traceback__
            _raised.append(error.with_traceback(trace.tb_next if trace else None))
            answer = 1


_generator = _answers()
next(_generator)
# No Python function is between, and the argument is not needed.
_next = ctypes.CFUNCTYPE(ctypes.c_int)(functools.partial(next, _generator, 0))
_function = ctypes.cast(_next, _c.tutti_interrupt_fn)


def install() -> None:
    """Let calls of the main thread be interrupted from now on."""
    if threading.current_thread() is threading.main_thread():
        _c.tutti_set_interrupt(_function, None)


def taken() -> Optional[BaseException]:
    """Take the exception of a handler that ended the call which has just returned."""
    if not _raised or threading.current_thread() is not threading.main_thread():
        return None
    error = _raised.pop()
    _raised.clear()
    return error


def end() -> None:
    """Called when the program ends: daemon threads whose calls that ends do not return from them."""
    global _ended
    _ended = True


def reraise() -> None:
    """Raise the exception that has ended the call which has just returned."""
    # When the interpreter ends, a daemon thread is stopped wherever it is. If it is just writing
    # that its call has failed, the lock of the file stays taken, and the interpreter aborts.
    while _ended and threading.current_thread() is not threading.main_thread():
        time.sleep(3600)
    error = taken()
    if error is not None:
        raise error


def after_wait(status: int) -> None:
    """Called after a wait that did not fail. With TUTTI_AGAIN an exception has ended it; an
    exception may also have come at the same time as what was waited for."""
    reraise()
    if status:
        raise KeyboardInterrupt
