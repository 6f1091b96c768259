// The overview: it is loaded again every few seconds, unless it is hidden or somebody is reading closely.
"use strict";
(() => {
  const EVERY = 5000;
  const busy = (main) => document.hidden || main.querySelector("details[open]")
    || (main.contains(document.activeElement) && document.activeElement !== main)
    || String(getSelection()) !== "";
  async function follow() {
    const main = document.getElementById("main");
    if (!busy(main)) {
      try {
        const answer = await fetch(location.href);
        const page = new DOMParser().parseFromString(await answer.text(), "text/html");
        const next = page.getElementById("main");
        if (answer.ok && !answer.redirected && next && !busy(main)) main.replaceWith(document.adoptNode(next));
      } catch {
        // The next round may come through.
      }
    }
    setTimeout(follow, EVERY);
  }
  setTimeout(follow, EVERY);
})();
