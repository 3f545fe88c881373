"use strict";
const token = document.querySelector("#token");
if (token && location.hash) {
  token.elements.token.value = location.hash.slice(1);
  history.replaceState(null, "", "/");
  token.submit();
}
async function follow() {
  if (!document.querySelector("[data-live]")) return;
  try {
    const text = await (await fetch(location.href)).text();
    const [old, now] = [document, new DOMParser().parseFromString(text, "text/html")].map((each) => each.querySelector("main"));
    if (now.querySelector("[data-live]")) {
      for (const part of ["[role=status]", "section > div"]) {
        const [one, other] = [old, now].map((each) => each.querySelector(part));
        if (one.innerHTML !== other.innerHTML) one.innerHTML = other.innerHTML;
      }
    } else {
      old.innerHTML = now.innerHTML;
      old.focus();
    }
  } catch {
    /* the page is away: look again */
  }
  setTimeout(follow, 1000);
}
setTimeout(follow, 500);
