"use strict";
// Follows the server: fragments of the page are replaced as they change, and what the reader did to them stays:
// scrolling, focus, opened details, lines that were hidden.
(() => {
  const drawn = new WeakMap(); // a figure to the HTML it came as: the report's script changes figures

  function remember() {
    for (const figure of document.querySelectorAll("figure")) if (!drawn.has(figure)) drawn.set(figure, figure.outerHTML);
  }

  const KEPT = new Set(["open", "aria-pressed", "tabindex"]); // what a reader or the report's script changes

  function morph(old, now) {
    for (const { name } of [...old.attributes]) if (!now.hasAttribute(name) && !KEPT.has(name)) old.removeAttribute(name);
    for (const { name, value } of now.attributes) {
      if (!KEPT.has(name) && old.getAttribute(name) !== value) old.setAttribute(name, value);
    }
    if (old.tagName === "PROGRESS") return;
    const known = new Map([...old.children].filter((child) => child.id).map((child) => [child.id, child]));
    let at = old.firstChild;
    for (const next of [...now.childNodes]) {
      const match = next.id ? known.get(next.id) : firstAlike(at, next);
      if (!match) {
        old.insertBefore(next, at);
        continue;
      }
      if (next.id && match !== at) {
        old.insertBefore(match, at);
      } else {
        while (at !== match) at = removed(at); // parts that are no longer there
        at = at.nextSibling;
      }
      update(match, next);
    }
    while (at) at = removed(at);
  }

  function removed(node) {
    const next = node.nextSibling;
    node.remove();
    return next;
  }

  function firstAlike(at, next) {
    const alike = (node) => node.nodeName === next.nodeName && !node.id
      && node.getAttribute("class") === next.getAttribute("class");
    if (next.nodeType !== Node.ELEMENT_NODE) return at && at.nodeName === next.nodeName ? at : null;
    while (at && !alike(at)) at = at.nextSibling;
    return at;
  }

  function update(old, now) {
    if (old.nodeType !== Node.ELEMENT_NODE) {
      if (old.nodeValue !== now.nodeValue) old.nodeValue = now.nodeValue;
    } else if (old.tagName === "FIGURE") {
      if (drawn.get(old) !== now.outerHTML) replaceFigure(old, now);
    } else {
      morph(old, now);
    }
  }

  const handle = (button) => `${button.dataset.place}|${button.dataset.kind}`;

  function replaceFigure(old, now) {
    const off = [...old.querySelectorAll('.legend button[aria-pressed="false"]')].map(handle);
    const focused = old.contains(document.activeElement) ? handle(document.activeElement) : null;
    drawn.set(now, now.outerHTML);
    old.replaceWith(now);
    later.push(() => {
      for (const button of now.querySelectorAll(".legend button")) {
        if (off.includes(handle(button))) button.click();
        if (handle(button) === focused) button.focus();
      }
    });
  }

  const later = [];
  function show(id, html) {
    const old = document.getElementById(id);
    if (!old) return;
    const now = old.cloneNode(false);
    now.innerHTML = html;
    morph(old, now);
    remember();
    document.dispatchEvent(new Event("sections-changed"));
    while (later.length) later.shift()();
  }

  let wanted = "";
  async function fetchSections(version) {
    const place = document.getElementById("sections");
    if (!place || place.dataset.version === version) return;
    wanted = version;
    const answer = await fetch(document.body.dataset.sections);
    const shown = answer.headers.get("x-version");
    const html = await answer.text();
    if (!answer.ok || wanted !== version) return; // another is on its way
    show("sections", html);
    place.dataset.version = shown;
  }

  let source = null;
  function follow() {
    if (source || document.hidden || !document.body.dataset.events) return;
    source = new EventSource(document.body.dataset.events);
    const lost = document.getElementById("lost");
    source.onopen = () => { lost.hidden = true; };
    source.onerror = () => { lost.hidden = false; };
    source.addEventListener("sections", (event) => { fetchSections(JSON.parse(event.data)).catch(() => {}); });
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

  remember();
  follow();
  for (const select of document.querySelectorAll("select[data-go]")) {
    select.addEventListener("change", () => select.form.requestSubmit());
  }
})();
