"""The page in a real browser: legends hide lines, marks tell their values, themes change, and nothing is asked for."""

import json
import re
import shutil
import subprocess

import pytest

from headcount.report.render.html import page
from headcount.store import Outcome
from headcount.studies.base import Scale
from headcount.studies.registry import STUDIES

from ..helpers.fabricated import finished, lost, study_sweep

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
PROBE = """<script>
const figure = document.querySelector("figure"), said = {};
const drawn = () => [...figure.querySelectorAll("svg[role] .series .line")]
  .filter((line) => getComputedStyle(line.closest(".series")).display !== "none").length;
const press = (which) => { figure.querySelector(`.legend button[${which}]`).click(); return drawn(); };
said.lines = [drawn(), press('data-place="0"'), press('data-kind="published"'), press('data-place="0"')];
const mark = figure.querySelector(".measured .point .reach");
mark.dispatchEvent(new PointerEvent("pointermove", { bubbles: true, clientX: 200, clientY: 200 }));
said.tip = document.getElementById("tip").textContent;
const ground = () => {
  document.getElementById("theme").click();
  return getComputedStyle(document.body).backgroundColor;
};
said.grounds = [ground(), ground()];
said.requests = performance.getEntriesByType("resource").length;
said.overflow = document.documentElement.scrollWidth > innerWidth;
document.body.append(Object.assign(document.createElement("pre"), { id: "said", textContent: JSON.stringify(said) }));
</script></body>"""


@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium or Chrome is installed")
@pytest.mark.parametrize("width", [1280, 500])
def test_the_page_answers_a_reader(tmp_path, width):
    study = STUDIES["table2"]
    made = study_sweep(study)
    records = finished(made)[:-1] + lost(made.cells[-1:], Outcome.DIVERGED, "no luck")
    text = page([study.section(made.experiment, records, Scale.SMOKE)], folder="results")
    (tmp_path / "page.html").write_text(text.replace("</body>", PROBE))
    flags = ["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"]
    places = [f"--user-data-dir={tmp_path / 'profile'}", f"--window-size={width},900"]
    command = [str(CHROMIUM), *flags, *places, "--dump-dom", (tmp_path / "page.html").as_uri()]
    shown = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120).stdout
    found = re.search(r'<pre id="said">(.*?)</pre>', shown)
    assert found is not None
    said = json.loads(found[1])
    assert said["lines"] == [4, 2, 1, 2]
    assert re.match(r"8 tokens, attention heads 1: \d", said["tip"])
    assert said["grounds"] == ["rgb(255, 255, 255)", "rgb(20, 23, 27)"]
    assert said["requests"] == 0
    assert not said["overflow"]
