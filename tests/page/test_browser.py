"""The page in a real browser: Debian's chromium, driven by playwright. Skipped where one of them is missing.

``--update-golden`` also writes the pictures in docs/screenshots.
"""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from exporter.endpoints import Published, endpoints
from exporter.web.routes import Routes
from exporter.web.server import WebServer
from tests.page.nodes import Node, many_instances, serving

playwright: Any = pytest.importorskip("playwright.sync_api", reason="playwright is not installed (PyPI playwright)")
CHROMIUM = shutil.which("chromium")
pytestmark = [
    pytest.mark.system,
    pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed (Debian package chromium)"),
]

SCREENSHOTS = Path(__file__).parents[2] / "docs" / "screenshots"
FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
WIDE, NARROW = {"width": 1280, "height": 800}, {"width": 400, "height": 800}
SECOND = 1000.0  # milliseconds


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with playwright.sync_playwright() as driver:
        running = driver.chromium.launch(executable_path=CHROMIUM, args=[*FLAGS])
        yield running
        running.close()


@pytest.fixture(scope="module")
def nodes() -> dict[str, Published]:
    return {
        "one GPU": Node(["tiny-kernels"], 1, 90).published,
        "eight GPUs": Node([], 8, 90).published,
        "56 instances": many_instances(8, 7),
        "source down": Node([], 2, 90, fails_after=60).published,
    }


ROWS = {"one GPU": 1, "eight GPUs": 8, "56 instances": 8 + 56, "source down": 2}


@contextlib.contextmanager
def opened(browser: Any, url: str, **options: Any) -> Iterator[Any]:
    """The page, with its rows; fails when the browser complains of anything."""
    with browser.new_context(viewport=WIDE, **options) as context:
        page = context.new_page()
        complaints: list[str] = []
        page.on("console", lambda message: complaints.append(f"{message.type}: {message.text}"))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("requestfailed", lambda request: complaints.append(f"{request.url}: {request.failure}"))
        page.goto(url)
        page.locator("tbody tr").first.wait_for()
        yield page
        assert complaints == []


def says(page: Any, selector: str, text: str, *, never: bool = False) -> None:
    """Wait until the first such element has (or has no more) this text. By locators: the page forbids eval."""
    expected = playwright.expect(page.locator(selector).first)
    (expected.not_to_contain_text if never else expected.to_contain_text)(text, timeout=20 * SECOND)


def overflow(page: Any) -> int:
    """Pixels by which the page is wider than the window."""
    return int(page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth"))


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", list(ROWS))
def test_it_shows_every_gpu_without_complaint_and_fits(
    browser: Any, nodes: dict[str, Published], name: str, scheme: str
) -> None:
    with serving(nodes[name]) as (url, _), opened(browser, url, color_scheme=scheme) as page:
        for size in (WIDE, {"width": 900, "height": 800}, NARROW):
            page.set_viewport_size(size)
            assert overflow(page) <= 0, size
            assert page.get_by_role("rowheader").count() == ROWS[name], "cards on a narrow screen are still a table"
            assert page.get_by_role("columnheader").count() == 8
        page.get_by_role("rowheader").first.get_by_role("button").click()
        assert page.locator("tr.details:not([hidden])").count() == 1
        assert overflow(page) <= 0, "with details open"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_can_be_read_in_both_schemes(browser: Any, nodes: dict[str, Published], scheme: str) -> None:
    contrast = """([text, paper]) => {
        const style = getComputedStyle(document.documentElement);
        const luminance = (name) => {
            const hex = style.getPropertyValue(name).trim().slice(1, 7);
            const [r, g, b] = [0, 2, 4].map((i) => parseInt(hex.slice(i, i + 2), 16) / 255)
                .map((c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4));
            return 0.2126 * r + 0.7152 * g + 0.0722 * b;
        };
        const [a, b] = [luminance(text), luminance(paper)].sort((x, y) => y - x);
        return (a + 0.05) / (b + 0.05);
    }"""
    with serving(nodes["one GPU"]) as (url, _), opened(browser, url, color_scheme=scheme) as page:
        for text in ("--text", "--quiet", "--link"):
            assert page.evaluate(contrast, [text, "--paper"]) >= 4.5, f"WCAG 1.4.3: {text}"
        assert page.evaluate(contrast, ["--text", "--bad-paper"]) >= 4.5
        for paint in ("--working", "--stalled", "--hollow-dot", "--unexplained", "--claimed", "--quiet"):
            least = 3.0 if paint in ("--claimed", "--quiet", "--hollow-dot", "--working") else 1.5
            assert page.evaluate(contrast, [paint, "--paper"]) >= least, paint


def test_it_moves_without_a_reload_and_keeps_the_focus(browser: Any) -> None:
    node = Node(["flapping"], 2, 60)
    with serving(node.published) as (url, _), opened(browser, url) as page:
        page.evaluate("window.stays = true; document.querySelector('tbody tr').stays = true")
        page.locator("tbody button").nth(1).focus()
        page.keyboard.press("Enter")
        before = page.locator("#node").inner_text()
        bars = "[...document.querySelectorAll('tbody tr .parts rect')].map((r) => r.getAttribute('width')).join()"
        drawn = page.evaluate(bars)
        chart = page.locator(".chart path").first.get_attribute("d")
        for _ in range(20):
            node.second()
        says(page, "#node", before, never=True)
        assert page.evaluate(bars) != drawn
        assert page.locator(".chart path").first.get_attribute("d") != chart
        assert page.evaluate("window.stays && document.querySelector('tbody tr').stays")
        assert page.evaluate("document.activeElement.textContent") == "GPU 1"
        assert page.locator("tr.details").nth(1).is_visible()


def test_every_row_is_reached_by_keyboard(browser: Any, nodes: dict[str, Published]) -> None:
    with serving(nodes["eight GPUs"]) as (url, _), opened(browser, url) as page:
        reached = []
        for _ in range(ROWS["eight GPUs"]):
            page.keyboard.press("Tab")
            reached.append(page.evaluate("document.activeElement.textContent"))
        assert reached == [f"GPU {n}" for n in range(8)]
        button = page.get_by_role("button", name="GPU 7", exact=True)
        assert button.get_attribute("aria-expanded") == "false"
        page.keyboard.press("Space")
        assert button.get_attribute("aria-expanded") == "true"
        details = page.locator(f"#{button.get_attribute('aria-controls')}")
        assert "memory total" in details.inner_text()
        page.keyboard.press("Space")
        assert not details.is_visible()


def test_a_screen_reader_gets_texts_and_few_announcements(browser: Any) -> None:
    node = Node([], 2, 60)
    with serving(node.published) as (url, _), opened(browser, url) as page:
        page.evaluate(
            """() => {
                window.announced = 0;
                const count = (changes) => { window.announced += changes.length; };
                const live = document.querySelectorAll("[aria-live], [role=status], [role=alert]");
                for (const each of live) new MutationObserver(count).observe(each, {subtree: true, childList: true,
                    characterData: true, attributes: true});
                window.politeness = [...live].map((each) => each.getAttribute("aria-live")).join();
            }"""
        )
        assert page.evaluate("window.politeness") == "polite"
        number = page.locator("#node").inner_text()
        node.second()
        says(page, "#node", number, never=True)
        assert page.evaluate("window.announced") == 0, "numbers are not read out each second"
        chart = page.get_by_role("img").first.get_attribute("aria-label")
        assert chart.startswith("Means over 1.0 of the last 10 minutes: driver claims ")
        assert "SM active" in chart
        row = page.get_by_role("row").nth(1).inner_text()
        for part in ("working", "stalled", "hollow", "idle"):
            assert f"{part} " in row, "the bar in words"
        assert page.locator("svg:not([role=img]):not([aria-hidden=true])").count() == 0


def test_a_source_that_is_down_shows_no_number(browser: Any, nodes: dict[str, Published]) -> None:
    with serving(nodes["source down"]) as (url, _), opened(browser, url) as page:
        assert "Source simulated is down: the hostengine does not answer." in page.get_by_role("status").inner_text()
        assert "systemctl restart nvidia-dcgm" in page.locator("#problems").inner_text()
        assert set(page.locator(".number").all_inner_texts()) == {"–"}
        assert "no data" in page.locator("tbody tr").first.inner_text()
        assert all(float(rect.get_attribute("width").rstrip("%")) == 0 for rect in page.locator(".parts rect").all())


def test_an_exporter_that_went_away_and_came_back(browser: Any) -> None:
    content = Node([], 1, 60).published
    server = WebServer(["127.0.0.1:0"], Routes(endpoints(content, "/metrics")))
    server.start()
    host, port = server.addresses[0]
    with browser.new_context(viewport=WIDE) as context:  # refused connections are complaints of the browser, rightly
        page = context.new_page()
        page.goto(f"http://{host}:{port}/")
        says(page, ".number", "%")
        server.stop()
        says(page, "#health", "does not answer")
        says(page, "#health", "No data since")
        assert set(page.locator(".number").all_inner_texts()) == {"–"}
        assert "no answer" in page.locator("tbody tr").first.inner_text()
        again = WebServer([f"{host}:{port}"], Routes(endpoints(content, "/metrics")))
        again.start()
        try:
            says(page, ".number", "%")
            assert "does not answer" not in page.locator("#health").inner_text()
        finally:
            again.stop()


def test_numbers_that_stand_still_are_called_old(browser: Any) -> None:
    now = 0.0
    content = Published(lambda _: {}, lambda: now)
    snapshot = Node([], 1, 60).snapshot
    content.publish(snapshot)
    with serving(content) as (url, _), opened(browser, url) as page:
        assert "No new numbers" not in page.locator("#health").inner_text()
        now = 60.0
        says(page, "#health", "No new numbers")
        assert page.locator("table.old").count() == 1


def test_before_the_first_window_it_waits_and_says_so(browser: Any) -> None:
    content = Published(lambda _: {})
    with serving(content) as (url, _), browser.new_context() as context:  # a 503 is a complaint of the browser
        page = context.new_page()
        page.goto(url)
        says(page, "#health", "has not closed yet")
        content.publish(Node([], 1, 60).snapshot)
        page.locator("tbody tr").first.wait_for()
        assert "has not closed" not in page.locator("#health").inner_text()


def test_a_name_cannot_become_markup(browser: Any) -> None:
    name = '<img src=x onerror="window.owned = 1"><script>window.owned = 1</script>'
    content, snapshot = Published(lambda _: {}), Node([], 1, 60).snapshot
    view = snapshot.entities[0]
    named = replace(view, device=replace(view.device, model=name, index=name))
    content.publish(replace(snapshot, entities=(named,)))
    with serving(content) as (url, _), opened(browser, url) as page:
        assert name in page.locator("tbody th small").first.inner_text()
        assert page.evaluate("window.owned") is None
        assert overflow(page) <= 0


def test_pictures(browser: Any, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    folder = SCREENSHOTS if request.config.getoption("--update-golden") else tmp_path
    healthy, down = Node([], 4, 640), Node(["training-healthy", "tiny-kernels"], 2, 640, fails_after=600)
    pictures = ((healthy, "light", WIDE, "node-light"), (healthy, "dark", WIDE, "node-dark"))
    for node, scheme, size, name in (*pictures, (down, "dark", NARROW, "source-down-narrow")):
        with node.running(), serving(node.published) as (url, _), opened(browser, url, color_scheme=scheme) as page:
            page.set_viewport_size(size)
            page.wait_for_timeout(1.5 * SECOND)
            assert "No new numbers" not in page.locator("#health").inner_text()
            path = folder / f"{name}.png"
            page.screenshot(path=path)
            assert path.stat().st_size > 10_000
