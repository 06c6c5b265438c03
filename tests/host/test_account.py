"""Counters per device over processes that come and go."""

from __future__ import annotations

from dataclasses import replace

from exporter.host.account import HostAccount
from exporter.host.reading import HolderReading
from exporter.model import Entity

A, B = Entity("GPU-1"), Entity("GPU-2")
IDLE = HolderReading(
    pid=1,
    started=5.0,
    name="python",
    cpu_seconds=10.0,
    main_thread_cpu_seconds=4.0,
    children_cpu_seconds=0.0,
    children=2,
    loaders=2,
    threads=8,
    threads_read=8,
    runnable_threads=1,
    blocked_threads=0,
    read_bytes=None,
    written_bytes=0.0,
    requested_bytes=None,
    block_seconds=None,
)


def test_differences_are_added_up_and_what_is_not_known_stays_unknown() -> None:
    account = HostAccount()
    account.feed({1: IDLE}, [(A, 1)])
    account.feed({1: replace(IDLE, cpu_seconds=12.0, main_thread_cpu_seconds=5.0, children_cpu_seconds=3.0)}, [(A, 1)])
    use = account.devices[A]
    assert (use.cpu_seconds, use.main_thread_cpu_seconds, use.read_bytes) == (5.0, 1.0, None)
    assert (use.holders, use.loaders, use.runnable_threads) == (1, 2, 1)


def test_counters_outlive_their_process_and_a_reused_pid_is_another_process() -> None:
    account = HostAccount()
    account.feed({1: IDLE}, [(A, 1)])
    account.feed({1: replace(IDLE, cpu_seconds=12.0)}, [(A, 1)])
    account.feed({}, [])
    assert account.devices[A].cpu_seconds == 2.0
    assert account.devices[A].holders == 0
    account.feed({1: replace(IDLE, started=99.0, cpu_seconds=500.0)}, [(A, 1)])
    assert account.devices[A].cpu_seconds == 2.0


def test_a_process_on_two_devices_counts_on_each() -> None:
    account = HostAccount()
    account.feed({1: IDLE}, [(A, 1), (B, 1)])
    account.feed({1: replace(IDLE, cpu_seconds=11.0)}, [(A, 1), (B, 1)])
    assert account.devices[A].cpu_seconds == account.devices[B].cpu_seconds == 1.0
    account.keep(frozenset({A}))
    assert set(account.devices) == {A}
