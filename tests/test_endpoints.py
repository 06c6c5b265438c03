"""What is served, and when it is rendered."""

from __future__ import annotations

from exporter.core.snapshot import Snapshot
from exporter.endpoints import AHEAD_FOR, Published, endpoints
from exporter.metrics.family import Family, Sample, Type
from exporter.web.routes import Request, Routes

FAMILY = Family("x", Type.GAUGE, "", "A number.", labels=())


class Counted:
    """Collects one sample, and counts how often."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, snapshot: Snapshot) -> dict[Family, list[Sample]]:
        self.calls += 1
        return {FAMILY: [Sample(FAMILY, "", snapshot.number)]}


def test_a_form_that_is_scraped_is_rendered_ahead() -> None:
    now, collect = 0.0, Counted()
    published = Published(collect, lambda: now)
    published.publish(Snapshot(1, 0.0))
    assert collect.calls == 0  # nobody has asked
    assert b"honest_gpu_x 1.0" in (published.scrape((False, False)) or b"")
    assert collect.calls == 1
    now = 1.0
    published.publish(Snapshot(2, 1.0))
    assert collect.calls == 2  # before the scrape
    assert b"honest_gpu_x 2.0" in (published.scrape((False, False)) or b"")
    assert collect.calls == 2
    now = 1.1
    published.publish(Snapshot(3, 1.1))
    assert collect.calls == 2  # not for each of ten windows a second
    assert b"honest_gpu_x 3.0" in (published.scrape((False, False)) or b"")  # yet a scrape gets the newest
    now = 2.0 + AHEAD_FOR
    published.publish(Snapshot(4, now))
    assert collect.calls == 3  # nobody asks any more


def answer(published: Published, target: str, **headers: str) -> tuple[int, str]:
    response = Routes(endpoints(published, "/metrics"))(Request("GET", target, {}, headers, "::1"))
    return response.status, response.body.decode()


def test_before_the_first_window_it_is_healthy_but_not_ready() -> None:
    published = Published(Counted())
    assert answer(published, "/-/healthy")[0] == 200
    assert answer(published, "/-/ready")[0] == 503
    assert answer(published, "/metrics")[0] == 503
    assert answer(published, "/")[0] == 200  # the page itself; its document says that there is nothing yet
    assert answer(published, "/api/v1/snapshot")[0] == 503
    published.publish(Snapshot(1, 0.0))
    assert answer(published, "/-/ready") == (200, "Ready.\n")
    assert answer(published, "/metrics")[0] == 200
    assert answer(published, "/api/v1/snapshot")[0] == 200
    assert answer(published, "/nothing")[0] == 404
