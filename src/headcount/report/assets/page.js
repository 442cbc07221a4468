"use strict";
(() => {
  const root = document.documentElement;
  const themes = ["auto", "light", "dark"];
  const theme = document.getElementById("theme");
  theme.hidden = false;
  theme.addEventListener("click", () => {
    const now = themes[(themes.indexOf(root.dataset.theme || "auto") + 1) % themes.length];
    if (now === "auto") delete root.dataset.theme;
    else root.dataset.theme = now;
    theme.textContent = `theme: ${now}`;
  });

  for (const button of document.querySelectorAll(".legend button")) {
    button.addEventListener("click", () => {
      button.setAttribute("aria-pressed", String(button.getAttribute("aria-pressed") !== "true"));
      const figure = button.closest("figure");
      const off = [...figure.querySelectorAll('.legend button[aria-pressed="false"]')];
      for (const series of figure.querySelectorAll(".series")) {
        const hidden = off.some((b) => (b.dataset.kind ? b.dataset.kind === series.dataset.kind
          : b.dataset.place === series.dataset.place));
        series.toggleAttribute("hidden", hidden);
      }
    });
  }

  const tip = document.getElementById("tip");
  for (const drawing of document.querySelectorAll("figure > svg")) {
    // The page's own box replaces the browser's slower one; without scripts the titles stay.
    for (const title of drawing.querySelectorAll("title")) title.remove();
    drawing.addEventListener("pointermove", (event) => {
      const mark = event.target.closest("[data-tip]");
      tip.hidden = !mark;
      if (!mark) return;
      tip.textContent = mark.dataset.tip;
      const { offsetWidth: wide, offsetHeight: tall } = tip;
      const left = Math.min(Math.max(8, event.clientX - wide / 2), innerWidth - wide - 8);
      const above = event.clientY - tall - 14;
      tip.style.left = `${left}px`;
      tip.style.top = `${above > 8 ? above : event.clientY + 18}px`;
    });
    drawing.addEventListener("pointerleave", () => { tip.hidden = true; });
  }

  addEventListener("beforeprint", () => {
    for (const details of document.querySelectorAll("details")) details.open = true;
  });
})();
