from __future__ import annotations

import threading

import pytest

from autoscaler.foresight.daemon_executor import DaemonExecutor, WorkBrokenOffError
from tests.servers.process import wait_until


def test_work_is_done_in_another_thread_and_its_result_is_there() -> None:
    future = DaemonExecutor().submit(lambda number: (number + 1, threading.current_thread().daemon), 1)
    assert future.result(timeout=60) == (2, True)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_work_that_raises_is_broken_off_and_not_waited_for_for_ever() -> None:
    def broken() -> None:
        raise ValueError("a bug")

    with pytest.raises(WorkBrokenOffError, match="broken"):
        DaemonExecutor().submit(broken).result(timeout=60)
    wait_until(lambda: all(each.name != "broken" for each in threading.enumerate()), "the thread has ended", 60)
