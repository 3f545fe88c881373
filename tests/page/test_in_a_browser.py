"""The page in Debian's chromium: keyboard alone, narrow screens, and axe's rules."""

import shutil
import socket
import threading
from contextlib import contextmanager

import pytest
import uvicorn
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect, sync_playwright

from page.rounds import PASSPHRASE, Visit

CHROMIUM = shutil.which("chromium")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="no chromium here: apt-get install chromium"),
]
RULES = ("wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice")


@contextmanager
def served(desk):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        address = desk.called(listener.getsockname()[1])
        config = uvicorn.Config(desk, ws="none", lifespan="off", log_config=None)
        server = uvicorn.Server(config)
        thread = threading.Thread(target=lambda: server.run(sockets=[listener]))
        thread.start()
        try:
            yield f"{address}/#{desk.token}"
        finally:
            server.should_exit = True
            thread.join()


@contextmanager
def browsing():
    with sync_playwright() as play:
        made = play.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield made.new_context()
        made.close()


def flaws(page):
    """What axe finds, what lies outside a narrow screen, and what a policy had to stop."""
    found = Axe().run(page, options={"runOnly": list(RULES)}).response["violations"]
    told = [f"{each['id']}: {node['html']}" for each in found for node in each["nodes"]]
    for width in (1280, 400, 320):
        page.set_viewport_size({"width": width, "height": 900})
        wide = page.evaluate("document.documentElement.scrollWidth")
        told += [f"{wide} > {width} at {page.url}"] if wide > width else []
    return told


def enter(page):
    with page.expect_navigation():
        page.keyboard.press("Enter")


def tab_to(page, text):
    for _ in range(40):
        page.keyboard.press("Tab")
        here = page.evaluate(
            "(e => (e.labels?.[0] ?? e).innerText || e.getAttribute('aria-label'))"
            "(document.activeElement)"
        )
        if here and here.startswith(text):
            return
    pytest.fail(f"the keyboard does not reach '{text}'")


@pytest.mark.soak  # 6 seconds
def test_a_round_is_run_by_the_keyboard_alone_and_every_page_passes_axe(sent, monkeypatch):
    said, visit = [], Visit(sent, monkeypatch)
    with served(visit.desk) as address, browsing() as context:
        page = context.new_page()
        page.on("console", lambda each: said.append(each.text))
        page.goto(address)
        expect(page.get_by_role("heading", name="Rounds")).to_be_visible()
        assert visit.desk.token not in page.url
        assert context.cookies()[0]["sameSite"] == "Strict"
        assert page.evaluate("document.cookie") == ""
        assert flaws(page) == []
        tab_to(page, "Round icu")
        enter(page)
        assert flaws(page) == []
        for word in ("Receive", "Run", "Key revoke"):
            tab_to(page, word)
            enter(page)
            asked, _, names = page.locator("[for=typed]").inner_text().partition(":")
            tab_to(page, asked)
            page.keyboard.type(names.split()[0])
            tab_to(page, "Passphrase")
            page.keyboard.type(PASSPHRASE)
            assert flaws(page) == []
            enter(page)
            done = page.get_by_role("heading", name=f"cobasis {word.lower()}: done")
            # on a busy machine a job may have ended before the browser shows that it runs
            expect(page.get_by_role("status").or_(done).first).to_be_visible()
            assert flaws(page) == []
            expect(done).to_be_visible(timeout=60_000)
            assert page.evaluate("document.activeElement.tagName") == "MAIN"
            assert flaws(page) == []
            with page.expect_navigation():
                page.get_by_role("navigation").get_by_text("Round").click()
            assert flaws(page) == []
        expect(page.get_by_role("img")).to_be_visible()
        with page.expect_navigation():
            page.get_by_text("Model card").click()
        assert flaws(page) == []
        assert page.context.pages == [page]
    assert said == []
