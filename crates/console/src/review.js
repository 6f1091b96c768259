// The page of one document under review. Without this script everything works but that the document
// stays the reviewer's while the page is open, that it is given back when the page is left, and the
// keys that move from field to field.
"use strict";
(() => {
  const form = document.getElementById("review");
  if (!form) return;
  const says = document.getElementById("review-says");
  let sending = false;
  let held = Boolean(form.dataset.renew);

  const body = () => new URLSearchParams({
    form_secret: form.elements.form_secret.value,
    page: form.elements.page.value,
  });

  async function renew(opens) {
    if (!held) return;
    const sent = body();
    if (opens) sent.append("opens", "yes");
    try {
      const answer = await fetch(form.dataset.renew, { method: "POST", body: sent });
      if (!answer.ok) return;
      const told = await answer.json();
      held = told.held;
      if (!held) says.textContent = told.says + " What you decide here would be refused.";
    } catch {
      // The next one may come through: the lease lasts for three of them.
    }
  }

  if (held) {
    // The page claims its document, not the request that loaded it: that may be another site's link.
    renew(true);
    setInterval(renew, Number(form.dataset.every) * 1000);
    addEventListener("pageshow", (event) => { if (event.persisted) { sending = false; renew(true); } });
    addEventListener("pagehide", () => {
      // A decision ends the lease by itself.
      if (held && !sending) navigator.sendBeacon(form.dataset.release, body());
    });
  }
  form.addEventListener("submit", () => { sending = true; });

  // What the rules say of what is typed, a moment after the last key.
  const WAIT = 500;
  let asked = 0;
  let pause = null;

  function advise(told) {
    for (const field of form.querySelectorAll("[data-field]")) {
      field.querySelectorAll(".typed").forEach((old) => old.remove());
      for (const words of told.fields[field.dataset.field] || []) {
        const line = document.createElement("p");
        line.className = "finding typed";
        line.textContent = "As typed: " + words;
        field.querySelector("input, select, textarea, table").before(line);
      }
    }
    const count = Object.keys(told.fields).length;
    const fine = told.changed ? "As typed no rule objects." : "";
    document.getElementById("typed-says").textContent =
      told.problem || told.whole.join(" ") || (count ? "As typed rules object to " + count + " fields." : fine);
  }

  async function check() {
    const number = ++asked;
    try {
      const answer = await fetch(form.dataset.check, {
        method: "POST", body: new URLSearchParams(new FormData(form)) });
      // Of an answer that is overtaken nothing is shown.
      if (answer.ok && number === asked) advise(await answer.json());
    } catch {
      // Advice alone: the decision is checked when it is made.
    }
  }

  if (form.dataset.check) {
    form.addEventListener("input", () => {
      clearTimeout(pause);
      pause = setTimeout(check, WAIT);
    });
  }

  // A table of lines is one stop; inside it, one moves up and down in its column.
  const stops = () => [...form.querySelectorAll(
    ".field > input, .field > select, .field > textarea, .field table.items, #why")];
  const cells = (row) => [...row.querySelectorAll("input")];

  function enter(stop, step) {
    if (stop.matches("table")) {
      const rows = stop.tBodies[0].rows;
      stop = cells(rows[step > 0 ? 0 : rows.length - 1])[0];
    }
    stop.focus();
    if (stop.select) stop.select();
  }

  function move(step) {
    const at = document.activeElement;
    const row = at.closest("table.items tbody tr");
    if (row) {
      const next = step > 0 ? row.nextElementSibling : row.previousElementSibling;
      if (next) {
        const cell = cells(next)[cells(row).indexOf(at)];
        cell.focus();
        cell.select();
        return;
      }
    }
    const all = stops();
    const here = all.indexOf(at.closest("table.items") || at);
    const next = here < 0 ? (step > 0 ? 0 : all.length - 1) : here + step;
    if (all[next]) enter(all[next], step);
  }

  document.addEventListener("keydown", (event) => {
    if (event.isComposing) return;
    if (event.altKey && !event.ctrlKey && !event.shiftKey &&
        (event.key === "ArrowDown" || event.key === "ArrowUp")) {
      event.preventDefault();
      move(event.key === "ArrowDown" ? 1 : -1);
    } else if (event.ctrlKey && !event.altKey && event.key === "Enter") {
      const accept = form.querySelector("button[value=accept]");
      if (accept) {
        event.preventDefault();
        form.requestSubmit(accept);
      }
    }
  });
})();
