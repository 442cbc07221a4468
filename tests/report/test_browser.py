"""The page in a real browser: everything can be reached by pointer and by keyboard, and nothing is asked for."""

import json
import re
import shutil
import subprocess
from dataclasses import replace

import pytest

from headcount.answer.next_steps import NextStep
from headcount.papers.base import Scale
from headcount.papers.registry import STUDIES
from headcount.report.document import Steps
from headcount.report.experiment import experiment_document
from headcount.report.render.html import page
from headcount.store import Outcome

from ..helpers.fabricated import finished, lost, study_sweep, sweep
from .test_page import attached, trained

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
PROBE = """<script>
const said = {};
const figure = document.querySelector("#result-2 figure");
const drawn = () => [...figure.querySelectorAll("svg[role] .series .line")]
  .filter((line) => getComputedStyle(line.closest(".series")).display !== "none").length;
const press = (which) => { figure.querySelector(`.legend button[${which}]`).click(); return drawn(); };
said.lines = [drawn(), press('data-place="0"'), press('data-kind="published"'), press('data-place="0"')];
const point = (mark) => {
  mark.dispatchEvent(new PointerEvent("pointermove", { bubbles: true, clientX: 200, clientY: 200 }));
  return document.getElementById("tip").textContent;
};
said.tip = point(figure.querySelector(".measured .point .reach"));
said.token = point(document.querySelector(".strip i"));
said.absent = point(document.querySelector(".strip .absent"));
const chart = document.querySelector("#result-1 figure > svg");
chart.focus();
const key = (name) => {
  chart.dispatchEvent(new KeyboardEvent("keydown", { key: name, bubbles: true }));
  return document.getElementById("said").textContent;
};
said.keys = [key("ArrowRight"), key("ArrowRight"), key("ArrowLeft")];
said.scrolls = [...document.querySelectorAll(".scroll")].every((box) =>
  (box.scrollWidth > box.clientWidth) === (box.tabIndex === 0));
said.copies = document.querySelectorAll(".copy:not([hidden])").length;
const ground = () => {
  document.getElementById("theme").click();
  return getComputedStyle(document.body).backgroundColor;
};
said.grounds = [ground(), ground()];
said.requests = performance.getEntriesByType("resource").length;
said.overflow = document.documentElement.scrollWidth > innerWidth;
said.outside = [...document.querySelectorAll("figure > svg")].filter((drawing) => {
  const frame = drawing.getBoundingClientRect();
  return [...drawing.querySelectorAll("text")].some((text) => {
    const box = text.getBoundingClientRect();
    return box.left < frame.left - 1 || box.right > frame.right + 1;
  });
}).length;
document.body.append(Object.assign(document.createElement("pre"), { id: "probe", textContent: JSON.stringify(said) }));
</script></body>"""


def a_page() -> str:
    """A user's own experiment with everything, and a study."""
    made = sweep({"heads": (1, 2, 4, 5), "length": (8, 16), "seed": (0, 1)})
    extra = {"heads": attached(length=8, heads=2), "baselines": [
        {"length": 16, "name": name, "label": name, "error": 0.43} for name in ("linear", "neighbours")
    ]}  # fmt: skip
    own = experiment_document(made.experiment, trained(made), extra)
    steps = Steps((NextStep("Why", "headcount measure own"), NextStep("So")))
    own = replace(own, blocks=(*(block for block in own.blocks if not isinstance(block, Steps)), steps))
    study = STUDIES["table2"]
    made = study_sweep(study)
    records = finished(made)[:-1] + lost(made.cells[-1:], Outcome.DIVERGED, "no luck")
    return page([own, study.document(made.experiment, records, Scale.SMOKE)], folder="results")


@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium or Chrome is installed")
def test_the_page_answers_a_reader(tmp_path):
    (tmp_path / "page.html").write_text(a_page().replace("</body>", PROBE))
    flags = ["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"]
    for width in (1280, 500):
        places = [f"--user-data-dir={tmp_path / 'profile'}", f"--window-size={width},900"]
        command = [str(CHROMIUM), *flags, *places, "--dump-dom", (tmp_path / "page.html").as_uri()]
        shown = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120).stdout
        found = re.search(r'<pre id="probe">(.*?)</pre>', shown)
        assert found is not None
        said = json.loads(found[1])
        assert said["lines"] == [4, 2, 1, 2]
        assert re.match(r"8 tokens, attention heads 1: 0\.\d", said["tip"])
        assert said["token"] == "100 % of token 1: 0.1, -2"
        assert said["absent"] == "token 8 is absent"
        assert said["keys"][0] == said["keys"][2] != said["keys"][1] != ""
        assert said["scrolls"]
        assert said["copies"] == 1
        assert said["grounds"] == ["rgb(255, 255, 255)", "rgb(20, 23, 27)"]
        assert said["requests"] == 0
        assert not said["overflow"]
        assert said["outside"] == 0
