// One document under review. Without this script everything can be decided; with it the document
// stays the reviewer's, drafts are kept, words of the page fill fields, and lines are summed up.
"use strict";
(() => {
  const form = document.getElementById("review");
  if (!form) return;
  const says = document.getElementById("review-says");
  const typedSays = document.getElementById("typed-says");
  const INPUTS = "input:not([type=hidden]):not([type=checkbox]), select, textarea";
  let sending = false;
  let held = Boolean(form.dataset.renew);

  // Seconds and number of keys of a decision; no keys are kept.
  const effort = form.elements;
  const begun = performance.now() - effort.seconds.value * 1000;
  let keys = Number(effort.keys.value);
  addEventListener("keydown", () => { keys += 1; });

  const body = () => new URLSearchParams({
    form_secret: form.elements.form_secret.value,
    page: form.elements.page.value,
  });
  const whole = () => new URLSearchParams(new FormData(form));

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
      // The lease lasts for three of them.
    }
  }

  // The rules about what is typed, a moment after the last key.
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
        const holder = field.querySelector(".wide") || field.querySelector(INPUTS);
        if (field.matches(".row")) field.append(line); else holder.before(line);
      }
    }
    const names = Object.keys(told.fields).map((name) => labelOf(name));
    const fine = told.changed ? "As typed no rule objects." : "";
    typedSays.textContent = told.problem || told.whole.join(" ") ||
      (names.length ? "Still needs attention: " + names.join(", ") + "." : fine);
    form.classList.toggle("changed", told.changed);
  }

  const labelOf = (name) => {
    const label = form.querySelector("label[for='field-" + name + "']");
    return label ? label.firstChild.textContent.trim() : name;
  };

  async function check() {
    pause = null;
    const number = ++asked;
    try {
      const answer = await fetch(form.dataset.check, { method: "POST", body: whole() }).catch(() => null);
      if (!answer) {
        typedSays.textContent = "The server does not answer: what you type is not kept yet, and tried again.";
        if (number === asked && pause === null) pause = setTimeout(check, 6 * WAIT);
        return;
      }
      // Of an answer that is overtaken nothing is shown.
      if (answer.ok && number === asked) advise(await answer.json());
      if (answer.status === 401) says.textContent = "Your session has ended. Decide or press Later: you sign in, and what you typed is kept.";
    } catch {
      // Advice alone: the decision is checked when it is made.
    }
  }

  if (form.dataset.check) {
    form.addEventListener("input", (event) => {
      if (event.target.id === "reason") return;
      clearTimeout(pause);
      pause = setTimeout(check, WAIT);
      sumUp();
    });
  }
  if (held) {
    // The page claims its document, not a request: that may be of another site.
    renew(true);
    setInterval(renew, Number(form.dataset.every) * 1000);
    addEventListener("pageshow", (event) => { if (event.persisted) { sending = false; renew(true); } });
    addEventListener("pagehide", () => {
      // A decision ends the lease by itself. A beacon takes 64 KiB.
      if (!held || sending) return;
      if (pause === null || !navigator.sendBeacon(form.dataset.release, whole())) {
        navigator.sendBeacon(form.dataset.release, body());
      }
    });
  }
  form.addEventListener("submit", (event) => {
    const button = event.submitter;
    if (button && button.value === "reject" && !form.elements.reason.value && !form.elements.why.value.trim()) {
      event.preventDefault();
      typedSays.textContent = "Choose a reason to reject, or write one, and press Reject again.";
      form.elements.reason.focus();
      return;
    }
    if (button && button.hasAttribute("data-add")) {
      event.preventDefault();
      const table = button.closest("[data-field]").querySelector("table.items");
      cells(emptyRow(table))[0].focus();
      return;
    }
    effort.seconds.value = Math.round((performance.now() - begun) / 1000);
    effort.keys.value = keys;
    // A download leaves the page open.
    if (!(button && button.hasAttribute("data-stays"))) sending = true;
  });

  // Lines.
  const cells = (row) => [...row.querySelectorAll("input:not([type=checkbox])")];
  const rowsOf = (table) => table.tBodies[0].rows;

  function addRow(table) {
    const rows = rowsOf(table);
    const row = rows[rows.length - 1].cloneNode(true);
    const number = rows.length;
    row.cells[0].textContent = number + 1;
    row.querySelectorAll("input[type=checkbox]").forEach((box) => box.remove());
    for (const cell of cells(row)) {
      cell.name = cell.name.replace(/^(item\.[^.]+\.)\d+/, "$1" + number);
      cell.setAttribute("aria-label", cell.getAttribute("aria-label").replace(/\d+/, number + 1));
      cell.removeAttribute("id");
      cell.removeAttribute("aria-describedby");
      cell.value = "";
      cell.parentElement.removeAttribute("data-mark");
    }
    table.tBodies[0].append(row);
    return row;
  }

  // The first row without anything in it; a new one if there is none.
  const emptyRow = (table) =>
    [...rowsOf(table)].find((row) => cells(row).every((cell) => !cell.value.trim())) || addRow(table);

  function removeRow(row) {
    const box = row.querySelector("input[type=checkbox]");
    if (box) box.checked = !box.checked;
    else for (const cell of cells(row)) cell.value = "";
    row.dispatchEvent(new Event("input", { bubbles: true }));
  }

  form.addEventListener("paste", (event) => {
    const at = event.target.closest("table.items tbody tr");
    const text = event.clipboardData.getData("text/plain").replace(/\r/g, "").replace(/\n$/, "");
    if (!at || !/[\t\n]/.test(text)) return;
    event.preventDefault();
    const table = at.closest("table");
    const column = cells(at).indexOf(event.target);
    let row = at;
    for (const line of text.split("\n")) {
      row = row || addRow(table);
      const into = cells(row).slice(column);
      line.split("\t").slice(0, into.length).forEach((value, n) => { into[n].value = value.trim(); });
      row = row.nextElementSibling;
    }
    table.dispatchEvent(new Event("input", { bubbles: true }));
  });

  // A number as it is printed; the server reads it by its own rules.
  function amount(text) {
    let digits = text.replace(/[^\d.,-]/g, "");
    const last = Math.max(digits.lastIndexOf("."), digits.lastIndexOf(","));
    if (last >= 0) digits = digits.slice(0, last).replace(/[.,]/g, "") + "." + digits.slice(last + 1);
    return digits === "" ? NaN : Number(digits);
  }

  function sumUp() {
    for (const sum of form.querySelectorAll("[data-sum-of]")) {
      const table = form.querySelector("table[data-list='" + sum.dataset.sumOf + "']");
      let total = 0;
      for (const row of rowsOf(table)) {
        const box = row.querySelector("input[type=checkbox]");
        const cell = row.querySelector("[data-column='" + sum.dataset.column + "']");
        const value = amount(cell.value);
        if (!(box && box.checked) && !Number.isNaN(value)) total += value;
      }
      sum.textContent = total.toFixed(2);
      let equal = false;
      let known = false;
      for (const name of sum.dataset.totals.split(" ")) {
        const input = document.getElementById("field-" + name);
        const shown = sum.parentElement.querySelector("[data-total='" + name + "']");
        const value = input ? amount(input.value) : NaN;
        if (Number.isNaN(value)) continue;
        known = true;
        const same = Math.abs(value - total) < 0.015;
        equal = equal || same;
        if (shown) {
          shown.textContent = " · " + labelOf(name) + " " + value.toFixed(2) + (same ? " ✓" : "");
          shown.classList.toggle("equal", same);
        }
      }
      sum.parentElement.classList.toggle("off", known && !equal);
    }
  }
  sumUp();

  // A click on a word fills the field with the focus; a drag takes several.
  let target = null;
  const pages = new Map();
  function pickFor(input) {
    if (!input || !input.matches(".fields input, .fields textarea, .grid input:not([type=checkbox])")) return;
    target = input;
    form.classList.add("picking");
    if (input.closest(".field.doubtful")) offer(input);
  }
  document.addEventListener("focusin", (event) => pickFor(event.target));

  async function wordsOf(sheet) {
    const path = sheet.dataset.words;
    if (!pages.has(path)) {
      pages.set(path, fetch(path).then((answer) => (answer.ok ? answer.json() : null)).catch(() => null));
    }
    return pages.get(path);
  }

  // From the window to the unit of the page, turned and enlarged as it may be.
  function pointOf(sheet, event) {
    const svg = sheet.querySelector("svg");
    return new DOMPoint(event.clientX, event.clientY).matrixTransform(svg.getScreenCTM().inverse());
  }

  const touches = (word, area) =>
    word[1] < area.right && word[1] + word[3] > area.left && word[2] < area.bottom && word[2] + word[4] > area.top;

  // Words side by side, in any lines.
  function rowsOn(words) {
    const rows = [];
    for (const word of words.flat().sort((a, b) => a[2] - b[2])) {
      const last = rows[rows.length - 1];
      if (last && word[2] + word[4] / 2 < last[0][2] + last[0][4]) last.push(word); else rows.push([word]);
    }
    return rows.map((row) => row.sort((a, b) => a[1] - b[1]).map((word) => word[0]));
  }

  // Rows of a table: words first, then numbers from the left.
  function fillRows(rows) {
    const table = target.closest("table");
    const sum = form.querySelector("[data-sum-of='" + table.dataset.list + "']");
    let row = target.closest("tr");
    for (const words of rows) {
      row = row || addRow(table);
      const into = cells(row);
      const numeric = into.filter((cell) => cell.closest(".number"));
      const last = numeric.find((cell) => sum && cell.dataset.column === sum.dataset.column) || numeric.pop();
      const numbers = [];
      while (words.length > 1 && /^[\d.,'’€$£%-]+$/.test(words[words.length - 1])) numbers.unshift(words.pop());
      into.find((cell) => !cell.closest(".number")).value = words.join(" ");
      if (numbers.length) last.value = numbers.pop();
      numbers.filter((text) => !text.includes("%")).forEach((text, n) => { if (numeric[n]) numeric[n].value = text; });
      row = row.nextElementSibling;
    }
  }

  function fill(words, adds) {
    if (!target || words.length === 0) return;
    const rows = target.closest("table.items") ? rowsOn(words) : [];
    if (rows.length > 1) {
      fillRows(rows);
      target.dispatchEvent(new Event("input", { bubbles: true }));
      return;
    }
    const lines = words.map((line) => line.map((word) => word[0]).join(" "));
    const text = lines.join(target.matches("textarea") ? "\n" : " ");
    target.value = adds && target.value ? target.value + " " + text : text;
    target.dispatchEvent(new Event("input", { bubbles: true }));
    target.focus();
  }

  let drag = null;
  function areaOf(from, to) {
    return {
      left: Math.min(from.x, to.x), right: Math.max(from.x, to.x) + 0.1,
      top: Math.min(from.y, to.y), bottom: Math.max(from.y, to.y) + 0.1,
    };
  }

  form.addEventListener("pointerdown", (event) => {
    const sheet = event.target.closest(".sheet[data-words]");
    if (!sheet || !target || event.button !== 0 || event.pointerType === "touch") return;
    // The field keeps the focus, and the browser drags no picture.
    event.preventDefault();
    const box = document.createElementNS("http://www.w3.org/2000/svg", "rect");
    box.setAttribute("class", "picked");
    sheet.querySelector("svg").append(box);
    drag = { sheet, from: pointOf(sheet, event), box, into: target };
    wordsOf(sheet);
  });
  form.addEventListener("mousedown", (event) => {
    if (target && event.target.closest(".sheet[data-words]")) event.preventDefault();
  });
  addEventListener("pointermove", (event) => {
    if (!drag) return;
    const area = areaOf(drag.from, pointOf(drag.sheet, event));
    drag.box.setAttribute("x", area.left);
    drag.box.setAttribute("y", area.top);
    drag.box.setAttribute("width", area.right - area.left);
    drag.box.setAttribute("height", area.bottom - area.top);
  });
  addEventListener("pointerup", async (event) => {
    if (!drag) return;
    const { sheet, from, box, into } = drag;
    drag = null;
    box.remove();
    // Page and focus may change while the words load.
    const area = areaOf(from, pointOf(sheet, event));
    const page = await wordsOf(sheet);
    if (!page) return;
    target = into;
    const found = page.lines.map((line) => line.filter((word) => touches(word, area)));
    fill(found.filter((line) => line.length > 0), event.shiftKey);
  });
  form.addEventListener("click", (event) => {
    const offered = event.target.closest(".also button");
    if (!offered) return;
    target = offered.closest("[data-field]").querySelector("input");
    fill([[[offered.textContent]]], false);
  });

  // Other amounts or dates of the pages, below the field.
  const KINDS = {
    number: /^[-+(]?[€$£]?\d[\d.,'’]*[.,]\d\d\)?$/,
    date: /^(\d{1,2}[./-]\d{1,2}[./-]\d{2,4}|\d{4}-\d\d-\d\d)$/,
  };
  const MAX_OFFERED = 6;
  async function offer(input) {
    const field = input.closest(".field");
    const shape = KINDS[input.dataset.type];
    if (!shape || field.querySelector(".also")) return;
    const found = new Set();
    for (const sheet of form.querySelectorAll(".sheet[data-words]")) {
      const page = await wordsOf(sheet);
      const words = page ? page.lines.flat().map((word) => word[0]) : [];
      words.filter((word) => shape.test(word) && word !== input.value).forEach((word) => found.add(word));
      if (found.size > MAX_OFFERED) break;
    }
    if (found.size === 0 || field.querySelector(".also")) return;
    const list = document.createElement("p");
    list.className = "also";
    list.append("Also on the page:");
    // Totals come last on a page.
    for (const word of [...found].slice(-MAX_OFFERED)) {
      const button = document.createElement("button");
      button.type = "button";
      button.tabIndex = -1;
      button.textContent = word;
      list.append(button);
    }
    field.append(list);
  }

  const list = form.querySelector(".keys");
  if (list) list.addEventListener("toggle", () => list.scrollIntoView({ block: "nearest" }));

  // The first doubtful field had the focus before this script ran.
  pickFor(document.activeElement);
  // The first page of the next document is drawn while this one is looked at.
  if (form.dataset.ahead) setTimeout(() => { new Image().src = form.dataset.ahead; }, 1500);

  // A table of lines is one stop; inside it, one moves up and down in its column.
  const stops = () => [...form.querySelectorAll(
    ".field > input, .field > select, .field > textarea, table.items, #why")]
    .filter((stop) => stop.checkVisibility());

  function enter(stop, step) {
    if (stop.matches("table")) {
      const rows = rowsOf(stop);
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
    // The note of the bar comes last.
    all.sort((a, b) => (a.id === "why") - (b.id === "why"));
    const here = all.indexOf(at.closest("table.items") || at);
    const next = here < 0 ? (step > 0 ? 0 : all.length - 1) : here + step;
    if (all[next]) enter(all[next], step);
  }

  function onLine(event) {
    const row = document.activeElement.closest("table.items tbody tr");
    if (event.key === "Delete" && row) removeRow(row);
    else if (event.key.toLowerCase() === "n") {
      const table = row ? row.closest("table") : form.querySelector("table.items");
      if (table) cells(emptyRow(table))[0].focus();
    } else return false;
    return true;
  }

  document.addEventListener("keydown", (event) => {
    if (event.isComposing) return;
    const alone = event.altKey && !event.ctrlKey && !event.shiftKey;
    if (alone && (event.key === "ArrowDown" || event.key === "ArrowUp")) {
      event.preventDefault();
      move(event.key === "ArrowDown" ? 1 : -1);
    } else if (alone && onLine(event)) {
      event.preventDefault();
    } else if (event.ctrlKey && !event.altKey && event.key === "Enter") {
      const accept = form.querySelector("button[value=accept]");
      if (accept) {
        event.preventDefault();
        form.requestSubmit(accept);
      }
    }
  });
})();
