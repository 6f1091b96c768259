// Pictures of pages beside a form or a list of lines. Without this script marks are reached by their
// links; with it the mark of what has the focus is shown, enlarged and in the middle. A picture that a
// busy server did not draw is asked for again; one that cannot be drawn says so.
"use strict";
(() => {
  // Beside each other: else what is typed into would be scrolled away.
  const beside = matchMedia("(min-width: 64rem)");
  const whole = document.querySelector("[data-whole]");
  const MAX_SCALE = 2;
  // So much of what is seen is to be the mark's width, if that does not enlarge too much.
  const SHARE = 0.45;
  let shown = null;

  function forget() {
    if (!shown) return;
    shown.classList.remove("shown");
    resize(shown.closest(".sheet"), 1);
    shown = null;
  }

  // A share of the frame's width, remembered for the buttons.
  function resize(sheet, scale) {
    sheet.dataset.scale = scale;
    sheet.style.width = scale === 1 ? "" : scale * 100 + "%";
    turn(sheet, Number(sheet.dataset.turn || 0));
  }

  // A quarter turn lies on its side: the room that it takes is the other way round.
  function turn(sheet, degrees) {
    sheet.dataset.turn = degrees;
    sheet.style.transform = degrees ? "rotate(" + degrees + "deg)" : "";
    const lies = degrees % 180 !== 0;
    const room = (sheet.offsetWidth - sheet.offsetHeight) / 2;
    sheet.style.marginBlock = lies ? room + "px" : "";
    sheet.style.marginInline = lies ? -room + "px" : "";
  }

  function show(mark) {
    if (!mark || mark === shown || !beside.matches) return;
    forget();
    shown = mark;
    mark.classList.add("shown");
    const sheet = mark.closest(".sheet");
    const details = sheet.closest("details");
    if (details) details.open = true;
    const page = mark.ownerSVGElement.viewBox.baseVal;
    const share = mark.width.baseVal.value / page.width;
    const scale = Math.min(MAX_SCALE, Math.max(1, SHARE / Math.max(share, 0.01)));
    resize(sheet, scale);
    const frame = sheet.closest(".sheets");
    const [place, around] = [mark.getBoundingClientRect(), frame.getBoundingClientRect()];
    frame.scrollBy(
      place.x + place.width / 2 - around.x - around.width / 2,
      place.y + place.height / 2 - around.y - around.height / 2);
  }

  // A field's own mark, or that of the cell that the focus is in.
  const markOf = (element) => {
    const holder = element.closest("[data-mark]");
    return holder && document.getElementById(holder.dataset.mark);
  };

  document.addEventListener("focusin", (event) => show(markOf(event.target)));
  addEventListener("hashchange", () => {
    const mark = document.getElementById(location.hash.slice(1));
    if (mark && mark.closest(".sheet")) show(mark);
  });
  // The page that is seen most of the frame's top.
  function seen() {
    const sheets = [...document.querySelectorAll(".sheets .sheet")];
    const top = document.querySelector(".sheets").getBoundingClientRect().top;
    return sheets.find((sheet) => sheet.getBoundingClientRect().bottom > top + 60) || sheets[0];
  }
  const tools = document.querySelector("[data-tools]");
  if (tools) tools.hidden = false;
  if (whole) whole.addEventListener("click", () => {
    forget();
    const sheet = seen();
    if (sheet) { turn(sheet, 0); resize(sheet, 1); }
  });
  for (const button of document.querySelectorAll("[data-zoom]")) {
    button.addEventListener("click", () => {
      const sheet = seen();
      const step = button.dataset.zoom === "in" ? 1.25 : 0.8;
      if (sheet) resize(sheet, Math.min(6, Math.max(1, Number(sheet.dataset.scale || 1) * step)));
    });
  }
  const rotate = document.querySelector("[data-rotate]");
  if (rotate) rotate.addEventListener("click", () => {
    const sheet = seen();
    if (sheet) turn(sheet, (Number(sheet.dataset.turn || 0) + 90) % 360);
  });

  function tellUnseen(sheet) {
    sheet.classList.add("unseen");
    sheet.querySelector("p.unseen").hidden = false;
  }
  const MAX_REQUESTS = 4;
  const RETRY_DELAY_MS = 3000;
  // The status of the answer is not known to the image: it is asked for by itself.
  async function askAgain(sheet, picture) {
    for (let request = 1; request < MAX_REQUESTS; request += 1) {
      const answer = await fetch(picture.src).catch(() => null);
      if (answer && answer.ok && !sheet.dataset.asked) {
        sheet.dataset.asked = true;
        picture.src = picture.src;
        return;
      }
      if (!answer || answer.status !== 503) break;
      await new Promise((go) => setTimeout(go, RETRY_DELAY_MS));
    }
    tellUnseen(sheet);
  }
  for (const sheet of document.querySelectorAll(".sheet")) {
    const picture = sheet.querySelector("img");
    picture.addEventListener("error", () => askAgain(sheet, picture));
    if (picture.complete && picture.naturalWidth === 0 && picture.currentSrc) askAgain(sheet, picture);
  }
  for (const crop of document.querySelectorAll(".crop")) {
    crop.querySelector("image").addEventListener("error", () => crop.remove());
  }

  const first = document.activeElement && markOf(document.activeElement);
  if (first) show(first);
})();
