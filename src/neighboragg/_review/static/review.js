// Keys for the buttons, links and fields that are on the page anyway, and pages that change without flicker.
// Without this script all of them still work.
"use strict";

(() => {
  const SETTING = "neighboragg-review-keys";
  const FIELDS = "input, select, textarea";
  // Keys that came while a page was on its way; they are applied to the next one.
  const waiting = [];
  let busy = false;

  const byId = (id) => document.getElementById(id);
  const say = (text) => { byId("status").textContent = text; };
  const keysAreOn = () => {
    try { return localStorage.getItem(SETTING) !== "off"; } catch { return true; }
  };

  const show = (page) => {
    document.title = page.title;
    for (const id of ["page", "controls"]) byId(id).replaceWith(document.adoptNode(page.getElementById(id)));
    say(page.getElementById("status").textContent.trim().replace(/\s+/g, " "));
    ready();
    window.scrollTo(0, 0);
    byId("main").focus({ preventScroll: true });
  };

  const ready = () => {
    const toggle = byId("keys-on");
    if (toggle) toggle.checked = keysAreOn();
  };

  // Fetch a page and put it in place of this one; the live region stays, so that its changes are read out.
  const go = async (url, body, isNew = true) => {
    busy = true;
    try {
      const answer = await fetch(url, body ? { method: "POST", body } : {});
      show(new DOMParser().parseFromString(await answer.text(), "text/html"));
      // A form that was refused has no address of its own.
      if (isNew && (!body || answer.redirected)) history.pushState(null, "", answer.url);
    } catch {
      waiting.length = 0;
      say("Nothing was saved: the server does not answer. Start it again, and repeat what you did last.");
    }
    busy = false;
    drain();
  };

  const drain = () => {
    while (waiting.length && !busy) {
      // Keys are meant for rows; on any other page, or in a field, they would do what nobody asked for.
      if (!byId("decide") || document.activeElement?.closest(FIELDS)) {
        say(`${byId("status").textContent} Not applied: the keys ${waiting.splice(0).join(" ")}`);
      } else {
        apply(waiting.shift());
      }
    }
  };

  const apply = (key) => {
    const target = document.querySelector(`[data-key~="${CSS.escape(key)}"]`);
    const option = /^[1-9]$/.test(key) && document.querySelector(`#chosen-class option[data-number="${key}"]`);
    if (option) {
      option.selected = true;
      byId("set-class").click();
    } else if (target?.matches(FIELDS)) {
      const panel = target.closest("[popover]");
      if (panel && !panel.matches(":popover-open")) panel.showPopover?.();
      target.focus();
    } else {
      target?.click();
    }
    return Boolean(option || target);
  };

  document.addEventListener("keydown", (event) => {
    const field = event.target.closest?.(FIELDS);
    if (event.key === "Escape") field?.blur();
    if (event.key === "Enter" && field?.id === "chosen-class" && !busy) {
      event.preventDefault();
      byId("set-class").click();
    }
    if (field && field.type !== "checkbox") return;
    if (!keysAreOn() || event.repeat || event.ctrlKey || event.metaKey || event.altKey) return;
    const key = event.key.toLowerCase();
    if (!/^[a-z1-9/?]$/.test(key)) return;
    if (busy) waiting.push(key);
    if (busy || apply(key)) event.preventDefault();
  });

  document.addEventListener("submit", (event) => {
    event.preventDefault();
    if (busy) return;
    const form = event.target;
    const fields = new URLSearchParams(new FormData(form, event.submitter));
    if (form.method === "post") {
      go(form.getAttribute("action"), fields);
    } else {
      go(`${form.getAttribute("action")}?${fields}`);
    }
  });

  document.addEventListener("click", (event) => {
    const link = event.target.closest('a[href^="/"]:not([download])');
    if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    if (!busy) go(link.getAttribute("href"));
  });

  document.addEventListener("change", (event) => {
    if (event.target.id !== "keys-on") return;
    try { localStorage.setItem(SETTING, event.target.checked ? "on" : "off"); } catch { /* private windows may refuse */ }
  });

  window.addEventListener("popstate", () => { if (!location.hash && !busy) go(location.href, null, false); });

  document.documentElement.classList.add("scripted");
  ready();
})();
