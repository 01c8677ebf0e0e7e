// Keys for the buttons and links that are on the page anyway; without this script all of them still work.
"use strict";

(() => {
  const SETTING = "neighboragg-review-keys";
  const toggle = document.getElementById("keys-on");
  let leaving = false;

  const stored = () => {
    try { return localStorage.getItem(SETTING) !== "off"; } catch { return true; }
  };
  const remember = (on) => {
    try { localStorage.setItem(SETTING, on ? "on" : "off"); } catch { /* private windows may refuse */ }
  };

  const press = (target) => {
    if (target instanceof HTMLSelectElement) {
      target.focus();
    } else {
      target.click();
    }
  };

  const relabel = (number) => {
    const option = document.querySelector(`#new-label option[data-number="${number}"]`);
    if (!option) return false;
    option.selected = true;
    option.closest("form").requestSubmit();
    return true;
  };

  document.documentElement.classList.add("scripted");
  toggle.checked = stored();
  toggle.addEventListener("change", () => remember(toggle.checked));

  // One decision a page: a key or click that comes while the next page loads would hit a row nobody has seen.
  document.addEventListener("submit", (event) => {
    if (leaving) {
      event.preventDefault();
    } else {
      leaving = true;
    }
  });
  window.addEventListener("pageshow", () => { leaving = false; });

  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape") {
      document.activeElement?.blur();
      return;
    }
    if (!toggle.checked || leaving || event.repeat || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.target.closest("input, select, textarea")) return;
    const key = event.key.toLowerCase();
    const target = document.querySelector(`[data-key~="${CSS.escape(key)}"]`);
    if (target) {
      event.preventDefault();
      press(target);
    } else if (/^[1-9]$/.test(key) && relabel(key)) {
      event.preventDefault();
    }
  });

  // A live region is read out when it changes, not when the page loads.
  const status = document.getElementById("status");
  const text = status.textContent.trim().replace(/\s+/g, " ");
  if (text) {
    status.textContent = "";
    requestAnimationFrame(() => { status.textContent = text; });
  }
})();
