// Pictures of pages beside a form or a list of lines. Without this script marks are reached by links;
// with it that of the focus is shown, enlarged and in the middle. Missing pictures say so.
"use strict";
(() => {
  // Beside each other: else the input would be scrolled away.
  const beside = matchMedia("(min-width: 64rem)");
  const whole = document.querySelector("[data-whole]");
  const MAX_SCALE = 2;
  // The mark's share of the width seen, if that does not enlarge too much.
  const SHARE = 0.45;
  let shown = null;

  function forget() {
    if (!shown) return;
    shown.classList.remove("shown");
    resize(shown.closest(".sheet"), 1);
    shown = null;
  }

  // A share of the frame's width.
  function resize(sheet, scale) {
    sheet.dataset.scale = scale;
    sheet.style.width = scale === 1 ? "" : scale * 100 + "%";
    turn(sheet, Number(sheet.dataset.turn || 0));
  }

  // A quarter turn lies on its side.
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

  // Of a field or a cell.
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

  // Small pictures come one after another, behind that of the page that is looked at.
  const strip = document.querySelector(".thumbs");
  if (strip) {
    let loaded = (seen() ? seen().querySelector("img").decode() : Promise.resolve()).catch(() => {});
    const observer = new IntersectionObserver((entries) => {
      for (const { isIntersecting, target } of entries) {
        const small = target.querySelector("img");
        if (!isIntersecting || !small) continue;
        observer.unobserve(target);
        loaded = loaded.then(() => { small.src = small.dataset.src; return small.decode(); }).catch(() => {});
      }
    }, { root: strip });
    for (const link of strip.children) observer.observe(link);
  }

  function tellUnseen(sheet) {
    sheet.classList.add("unseen");
    sheet.querySelector("p.unseen").hidden = false;
    const text = sheet.parentElement.querySelector("details");
    if (text) text.open = true;
  }
  // 503: the server is busy.
  async function ask(sheet, picture, left = 3) {
    const { ok, status } = await fetch(picture.src).catch(() => sheet);
    if (status === 503 && left) setTimeout(ask, 3000, sheet, picture, left - 1);
    else if (ok && left && !sheet.asked) {
      sheet.asked = true;
      picture.src += "";
    } else tellUnseen(sheet);
  }
  for (const sheet of document.querySelectorAll(".sheet")) {
    const picture = sheet.querySelector("img");
    picture.addEventListener("error", () => ask(sheet, picture));
    if (picture.complete && picture.naturalWidth === 0 && picture.currentSrc) ask(sheet, picture);
  }
  for (const crop of document.querySelectorAll(".crop")) {
    crop.querySelector("image").addEventListener("error", () => crop.remove());
  }

  const first = document.activeElement && markOf(document.activeElement);
  if (first) show(first);
})();
