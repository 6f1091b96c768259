// A part of the page is loaded again while it is seen; files are dropped on it.
"use strict";
(() => {
  const part = () => document.querySelector("[data-follow]");
  const isBusy = (it) => document.hidden || it.querySelector("details[open]")
    || it.contains(document.activeElement) || String(getSelection()) !== "";
  async function follow() {
    const shown = part();
    if (!shown) return;
    if (!isBusy(shown)) {
      try {
        const answer = await fetch(location.href);
        const page = new DOMParser().parseFromString(await answer.text(), "text/html");
        const next = page.getElementById(shown.id);
        if (answer.ok && !answer.redirected && next && !isBusy(shown)) shown.replaceWith(document.adoptNode(next));
      } catch {
        // The next round may come through.
      }
    }
    setTimeout(follow, Number(shown.dataset.follow));
  }
  if (part()) setTimeout(follow, Number(part().dataset.follow));

  const form = document.getElementById("drop");
  if (!form) return;
  const files = document.getElementById("files");
  addEventListener("dragover", (event) => { event.preventDefault(); form.classList.add("over"); });
  addEventListener("dragleave", () => form.classList.remove("over"));
  addEventListener("drop", (event) => {
    event.preventDefault();
    form.classList.remove("over");
    if (event.dataTransfer.files.length === 0) return;
    files.files = event.dataTransfer.files;
    form.requestSubmit();
  });
  files.addEventListener("change", () => form.requestSubmit());
})();
