"""The live page in a real browser with real runs: progress, then the answer; a killed run; a vanished folder."""

import contextlib
import re
import shutil
import signal
import subprocess
import time

import httpx
import pytest

from ..helpers.commands import start

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
ADDRESS = re.compile(r"http://127\.0\.0\.1:\d+/\w+/")
PATIENCE = 120_000
RUN = ("measure", "max-plus-min", "--heads", "1:4", "--lengths", "4", "--effort", "quick", "--train-examples", 500)

pytestmark = pytest.mark.slow


@pytest.fixture
def browser():
    playwright = pytest.importorskip("playwright.sync_api")
    if CHROMIUM is None:
        pytest.skip("no Chromium or Chrome is installed")
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture
def page(browser):
    """A page that fails the test where the browser reports an error or is asked to leave this machine."""
    page, problems = browser.new_page(), []
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.on("console", lambda message: problems.append(message.text) if message.type == "error" else None)
    page.on("request", lambda request: problems.append(request.url) if "//127.0.0.1:" not in request.url else None)
    yield page
    assert [problem for problem in problems if not problem.startswith("data:")] == []


@contextlib.contextmanager
def started(*arguments):
    """A process and the first address it prints."""
    process = start(*arguments, stderr=subprocess.STDOUT)
    try:
        for line in process.stdout:
            if found := ADDRESS.search(line):
                yield process, found[0]
                break
        else:
            pytest.fail("no address was printed")
    finally:
        process.kill()
        process.communicate()


def test_a_run_from_its_first_step_to_its_answer(tmp_path, page):
    folder = tmp_path / "results"
    with started(*RUN, "--steps", 2000, "--out", folder, "--live") as (process, address):
        page.goto(address)
        page.wait_for_url("**/folder/")
        page.wait_for_selector("#now .chip.running", timeout=PATIENCE)
        page.wait_for_selector("#now polyline", timeout=PATIENCE)
        assert "model-steps" in page.inner_text("#now .progress")
        page.wait_for_selector("#sections .result", timeout=PATIENCE)
        # What a reader opens and hides stays as it is while the run goes on.
        page.click("#sections details summary")
        page.evaluate("scrollTo(0, 300)")
        page.wait_for_selector("#now .chip.finished", timeout=PATIENCE)
        page.wait_for_function("document.querySelector('#sections .answer').textContent.includes('heads')")
        assert page.get_attribute("#sections details", "open") is not None
        assert page.evaluate("scrollY") > 0
        assert any("stays at" in line for line in process.stdout), "the page stays after the run"
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 0


def test_a_killed_run_and_a_folder_that_vanishes(tmp_path, page):
    folder = tmp_path / "parent" / "results"
    (tmp_path / "parent").mkdir()
    with started("serve", tmp_path / "parent") as (_, address):
        page.goto(address)
        assert "No results yet" in page.inner_text("main")
        run = start(*RUN, "--steps", 200_000, "--out", folder)
        try:
            page.wait_for_selector("#list .chip.running", timeout=PATIENCE)
            page.click("#list a")
            page.wait_for_selector("#now polyline", timeout=PATIENCE)
        finally:
            run.kill()
            run.communicate()
        page.wait_for_selector("#now .chip.killed", timeout=PATIENCE)
        assert "to continue, run: headcount measure max-plus-min" in page.inner_text("#now").replace("\n", " ")
        folder.rename(tmp_path / "away")
        page.wait_for_selector("#now .chip.gone", timeout=PATIENCE)
        (tmp_path / "away").rename(folder)
        page.wait_for_selector("#now .chip.killed", timeout=PATIENCE)


def test_a_page_with_another_name_for_this_machine_sees_nothing(tmp_path, browser):
    """DNS rebinding: a name of someone else that leads to 127.0.0.1."""
    with started("serve", tmp_path) as (_, address):
        rebound = browser.browser_type.launch(
            executable_path=CHROMIUM, args=["--no-sandbox", "--host-resolver-rules=MAP evil.example 127.0.0.1"]
        )
        page = rebound.new_page()
        answer = page.goto(address.replace("127.0.0.1", "evil.example"))
        assert answer is not None
        assert answer.status == 400
        rebound.close()


def test_the_server_of_a_run_ends_with_it(tmp_path):
    """Even where the run is killed, no server is left behind."""
    with started(*RUN, "--steps", 200_000, "--out", tmp_path / "results", "--live") as (process, address):
        process.kill()
        process.wait()
        deadline = time.monotonic() + 60
        with contextlib.suppress(httpx.ConnectError):
            while time.monotonic() < deadline:
                httpx.get(address)
            pytest.fail("the server still answers")
