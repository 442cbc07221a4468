"use strict";
// Follows the server: parts of the page are replaced as they change; what the reader opened or hid stays so.
(() => {
  const show = (id, html) => {
    const place = document.getElementById(id);
    if (place) place.innerHTML = html;
  };

  const opened = () => [...document.querySelectorAll("#report details")];
  const hidden = () => [...document.querySelectorAll("#report .legend button")];

  async function refresh(version) {
    const place = document.getElementById("report");
    if (!place || !version || place.dataset.version === version) return;
    const answer = await fetch(location.href);
    if (!answer.ok) return;
    const now = new DOMParser().parseFromString(await answer.text(), "text/html").getElementById("report");
    const open = opened().map((details) => details.open);
    const off = hidden().map((button) => button.getAttribute("aria-pressed") === "false");
    place.dataset.version = now.dataset.version;
    place.replaceChildren(...now.childNodes);
    opened().forEach((details, i) => { details.open = open[i] ?? details.open; });
    document.dispatchEvent(new Event("sections-changed"));
    hidden().forEach((button, i) => { if (off[i]) button.click(); });
  }

  let source = null;
  function follow() {
    if (source || document.hidden || !document.body.dataset.events) return;
    source = new EventSource(document.body.dataset.events);
    const lost = document.getElementById("lost");
    source.onopen = () => { lost.hidden = true; };
    source.onerror = () => { lost.hidden = false; };
    source.addEventListener("report", (event) => { refresh(JSON.parse(event.data)).catch(() => {}); });
    for (const id of ["now", "list"]) source.addEventListener(id, (event) => show(id, JSON.parse(event.data)));
  }

  // A browser keeps six connections to a server, for all its tabs together: one that is not looked at gives its own up.
  function leave() {
    if (source) source.close();
    source = null;
  }
  document.addEventListener("visibilitychange", () => (document.hidden ? leave() : follow()));
  addEventListener("pagehide", leave);
  addEventListener("pageshow", follow);
  follow();
  for (const select of document.querySelectorAll("select[data-go]")) {
    select.addEventListener("change", () => select.form.requestSubmit());
  }
})();
