// The page that documents are handed in on: files are dropped anywhere on it, and the list of the
// newest is loaded again while one of them moves. Without this script both are done by hand.
"use strict";
(() => {
  const form = document.getElementById("drop");
  const files = document.getElementById("files");
  const FOLLOW_EVERY = 1500;
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

  async function follow() {
    const list = document.getElementById("moving");
    // A hidden page asks nothing.
    if (!document.hidden && list.hasAttribute("data-moves")) {
      try {
        const answer = await fetch(location.pathname);
        const page = new DOMParser().parseFromString(await answer.text(), "text/html");
        const next = page.getElementById("moving");
        if (answer.ok && next) list.replaceWith(document.adoptNode(next));
      } catch {
        // The next round may come through.
      }
    }
    setTimeout(follow, FOLLOW_EVERY);
  }
  setTimeout(follow, FOLLOW_EVERY);
})();
