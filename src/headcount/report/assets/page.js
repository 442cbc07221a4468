"use strict";
(() => {
  const root = document.documentElement;
  const tip = document.getElementById("tip");
  const said = document.getElementById("said");
  const themes = ["auto", "light", "dark"];
  const theme = document.getElementById("theme");
  if (theme) {
    theme.hidden = false;
    theme.addEventListener("click", () => {
      const now = themes[(themes.indexOf(root.dataset.theme || "auto") + 1) % themes.length];
      if (now === "auto") delete root.dataset.theme;
      else root.dataset.theme = now;
      theme.textContent = `theme: ${now}`;
    });
  }

  // Listeners are on the document, so that sections that come later have them too.
  const toggle = (button) => {
    button.setAttribute("aria-pressed", String(button.getAttribute("aria-pressed") !== "true"));
    const figure = button.closest("figure");
    const off = [...figure.querySelectorAll('.legend button[aria-pressed="false"]')];
    for (const series of figure.querySelectorAll(".series")) {
      const hidden = off.some((b) => (b.dataset.kind ? b.dataset.kind === series.dataset.kind
        : b.dataset.place === series.dataset.place));
      series.toggleAttribute("hidden", hidden);
    }
  };
  const copy = async (button) => {
    const code = button.parentElement.querySelector("code");
    let done = true;
    try {
      await navigator.clipboard.writeText(code.textContent);
    } catch {
      getSelection().selectAllChildren(code);
      done = document.execCommand("copy");
    }
    button.textContent = done ? "copied" : "selected";
    said.textContent = `${button.textContent}: ${code.textContent}`;
    setTimeout(() => { button.textContent = "copy"; }, 2000);
  };
  document.addEventListener("click", (event) => {
    const button = event.target.closest("button");
    if (button?.closest(".legend")) toggle(button);
    else if (button?.classList.contains("copy")) copy(button);
  });

  const words = (mark) => {
    if (mark.dataset.tip) return mark.dataset.tip;
    const strip = mark.closest(".strip"), cell = strip.closest("td");
    const place = [...strip.children].indexOf(mark);
    const header = cell.closest("table").tHead.rows[0].cells[cell.cellIndex];
    const token = JSON.parse(header.dataset.tokens)[place];
    const weight = Number(mark.style.getPropertyValue("--w") || 0);
    const share = weight ? `${Math.round(100 * weight)} %` : "less than 0.5 %";
    return token ? `${share} of token ${place + 1}: ${token}` : `token ${place + 1} is absent`;
  };
  const show = (mark, x, y) => {
    tip.hidden = !mark;
    if (!mark) return;
    tip.textContent = words(mark);
    const { offsetWidth: wide, offsetHeight: tall } = tip;
    const left = Math.min(Math.max(8, x - wide / 2), innerWidth - wide - 8);
    const above = y - tall - 14;
    tip.style.left = `${left}px`;
    tip.style.top = `${above > 8 ? above : y + 18}px`;
  };
  document.addEventListener("pointermove", (event) => {
    const mark = event.target.closest?.("[data-tip], .strip i");
    // The page's own box replaces the browser's slower one; without scripts the titles stay.
    mark?.querySelector(":scope > title")?.remove();
    show(mark, event.clientX, event.clientY);
  });
  document.addEventListener("pointerleave", () => show(null));

  // A chart that has the focus is read mark by mark with the arrow keys; its table says the same.
  const unlight = (drawing) => drawing.querySelector(".lit")?.classList.remove("lit");
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape") show(null);
    const drawing = event.target.closest?.("figure > svg");
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    if (!drawing || !step) return;
    const marks = [...drawing.querySelectorAll("[data-tip]")].filter((mark) => !mark.closest("[hidden]"));
    if (!marks.length) return;
    event.preventDefault();
    const lit = marks.findIndex((mark) => mark.classList.contains("lit"));
    unlight(drawing);
    const mark = marks[lit < 0 ? (step > 0 ? 0 : marks.length - 1) : (lit + step + marks.length) % marks.length];
    mark.classList.add("lit");
    const box = mark.getBoundingClientRect();
    show(mark, box.x + box.width / 2, box.y);
    said.textContent = words(mark);
  });
  document.addEventListener("focusout", (event) => {
    const drawing = event.target.closest?.("figure > svg");
    if (!drawing) return;
    unlight(drawing);
    show(null);
  });

  // Only what scrolls is a stop for the Tab key; buttons that need a script appear with it.
  const settle = () => {
    for (const box of document.querySelectorAll(".scroll")) {
      if (box.scrollWidth > box.clientWidth) box.tabIndex = 0;
      else box.removeAttribute("tabindex");
    }
    for (const button of document.querySelectorAll(".copy[hidden]")) button.hidden = false;
  };
  settle();
  addEventListener("resize", settle);
  document.addEventListener("sections-changed", settle);
  addEventListener("beforeprint", () => {
    for (const details of document.querySelectorAll("details")) details.open = true;
  });
})();
