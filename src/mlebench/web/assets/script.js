// Sorting, filtering and fresh content. Pages are complete without it.
"use strict";

const all = (selector, root = document) => [...root.querySelectorAll(selector)];

// Sorting: every heading with data-sort becomes a button.
const valueOf = (row, column) => {
  const cell = row.cells[column];
  return cell === undefined ? "" : cell.dataset.value ?? cell.textContent.trim();
};

function sortBy(table, column, descending) {
  const heading = table.tHead.rows[0].cells[column];
  const numeric = heading.dataset.sort === "number";
  const rows = [...table.tBodies[0].rows];
  rows.sort((a, b) => {
    const [x, y] = [valueOf(a, column), valueOf(b, column)];
    const order = numeric ? Number(x) - Number(y) : x.localeCompare(y, undefined, { numeric: true });
    return descending ? -order : order;
  });
  table.tBodies[0].append(...rows);
  for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
  heading.setAttribute("aria-sort", descending ? "descending" : "ascending");
  number(table);
}

function makeSortable(table) {
  [...table.tHead.rows[0].cells].forEach((heading, column) => {
    if (!heading.dataset.sort) return;
    const button = document.createElement("button");
    button.type = "button";
    button.append(...heading.childNodes);
    heading.append(button);
    button.addEventListener("click", () => {
      const now = heading.getAttribute("aria-sort");
      const first = heading.dataset.sort === "number";
      sortBy(table, column, now === null ? first : now === "ascending");
    });
  });
}

// Ranks count the rows that are shown, if all of them are about the same competitions.
function number(table) {
  const ranked = [...table.tBodies[0].rows].filter((row) => !row.hidden && row.querySelector("td.rank"));
  const alike = new Set(ranked.map((row) => row.dataset.competitions)).size < 2;
  ranked.forEach((row, index) => { row.querySelector("td.rank").textContent = alike ? String(index + 1) : ""; });
  const note = ranked.length ? document.querySelector("[data-unranked]") : null;
  if (note) note.hidden = alike;
}

// Filters: a control with data-filter="x" is compared with data-x of each row. What is chosen stands in the address.
// On paper only the choice of what a table is about counts (data-always).
let onPaper = false;

function matches(row, control) {
  const name = control.dataset.filter;
  if (onPaper && !("always" in control.dataset)) return true;
  if (control.type === "checkbox") return !control.checked || row.dataset[name] === "yes";
  const wanted = control.value.trim();
  if (wanted === "") return true;
  if (control.type !== "search") return row.dataset[name] === wanted;
  return wanted.toLowerCase().split(/\s+/).every((word) => (row.dataset[name] ?? "").includes(word));
}

function applyFilters(form) {
  const controls = all("[data-filter]", form);
  for (const table of all(`[data-filtered="${form.dataset.filters}"]`)) {
    const rows = table.tBodies ? [...table.tBodies[0].rows] : [...table.children];
    let shown = 0;
    for (const row of rows) {
      if (row.classList.contains("nothing")) continue;
      row.hidden = !controls.every((control) => matches(row, control));
      shown += row.hidden ? 0 : 1;
    }
    for (const control of controls) {
      const text = document.querySelector(`[data-said="${control.dataset.says}"]`);
      if (text) text.textContent = control.selectedOptions[0].textContent;
    }
    const count = document.querySelector(`[data-count="${form.dataset.filters}"]`);
    if (count) count.textContent = String(shown);
    if (table.tBodies) {
      table.tBodies[0].querySelector(".nothing")?.remove();
      if (shown === 0) {
        const row = table.tBodies[0].insertRow();
        row.className = "nothing";
        const cell = row.insertCell();
        cell.colSpan = table.tHead.rows[0].cells.length;
        cell.textContent = "Nothing matches these filters.";
      }
      number(table);
    }
  }
}

const isOn = (control) => (control.type === "checkbox" ? control.checked : control.value !== control.dataset.first);

function makeFilters(form) {
  const controls = all("[data-filter]", form);
  const asked = new URLSearchParams(location.hash.slice(1));
  for (const control of controls) {
    control.dataset.first = control.value;
    const value = asked.get(control.dataset.filter);
    if (value === null) continue;
    if (control.type === "checkbox") control.checked = value === "yes";
    else if (control.tagName !== "SELECT" || [...control.options].some((one) => one.value === value)) control.value = value;
  }
  const changed = () => {
    const chosen = new URLSearchParams();
    for (const control of controls) if (isOn(control)) chosen.set(control.dataset.filter, control.type === "checkbox" ? "yes" : control.value);
    history.replaceState(null, "", chosen.size ? `#${chosen}` : location.pathname + location.search);
    applyFilters(form);
  };
  form.addEventListener("input", changed);
  form.addEventListener("submit", (event) => event.preventDefault());
  applyFilters(form);
}

// Fresh content: parts with data-swap are replaced when the server has newer ones. What the reader chose is kept.
function swap(fresh) {
  for (const part of all("[data-swap]")) {
    const other = fresh.getElementById(part.id);
    if (!other || other.innerHTML === part.dataset.last) continue;
    part.dataset.last = other.innerHTML;
    const open = all("details[open][id]", part).map((one) => one.id);
    const focused = part.contains(document.activeElement) ? document.activeElement : null;
    const atEnd = part.scrollHeight - part.scrollTop - part.clientHeight < 40;
    part.replaceChildren(...document.importNode(other, true).childNodes);
    for (const id of open) document.getElementById(id)?.setAttribute("open", "");
    const again = focused && all("a, button, summary, [tabindex]", part).find((one) => one.textContent === focused.textContent);
    again?.focus({ preventScroll: true });
    if (part.dataset.swap === "tail" && atEnd) part.scrollTop = part.scrollHeight;
    const table = part.closest("table[data-sortable]");
    const sorted = table?.querySelector("th[aria-sort]");
    if (sorted) sortBy(table, sorted.cellIndex, sorted.getAttribute("aria-sort") === "descending");
  }
  for (const form of all("[data-filters]")) applyFilters(form);
}

async function follow(every) {
  const text = document.querySelector("[data-live-text]");
  let tag = "";
  for (const part of all("[data-swap]")) part.dataset.last = part.innerHTML;
  for (;;) {
    await new Promise((wake) => setTimeout(wake, document.hidden ? every * 5 : every));
    try {
      const answer = await fetch(location.pathname, { headers: tag ? { "If-None-Match": tag } : {}, cache: "no-store" });
      if (answer.status === 200) {
        tag = answer.headers.get("ETag") ?? "";
        const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
        swap(fresh);
        if (!fresh.body.dataset.live) {
          if (text) text.textContent = "ended";
          document.querySelector(".pulse")?.remove();
          return;
        }
      }
      if (text) text.textContent = answer.ok || answer.status === 304 ? "live" : "no answer";
    } catch {
      if (text) text.textContent = "no answer";
    }
  }
}

// Paper: all rows, and collapsed parts open.
function forPaper(prints) {
  onPaper = prints;
  for (const form of all("[data-filters]")) applyFilters(form);
  for (const part of all("details")) {
    if (prints && !part.open) part.dataset.collapsed = "";
    if ("collapsed" in part.dataset) part.open = prints;
    if (!prints) delete part.dataset.collapsed;
  }
}

// Forms that lead to another page: data-go="a/{x}/{y}.html" with the values of their controls.
function makeLeading(form) {
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const values = Object.fromEntries(new FormData(form));
    location.href = form.dataset.go.replace(/\{(\w+)\}/g, (_, name) => encodeURIComponent(values[name] ?? ""));
  });
}

for (const table of all("table[data-sortable]")) makeSortable(table);
for (const form of all("[data-filters]")) makeFilters(form);
for (const form of all("[data-go]")) makeLeading(form);
for (const part of all('[data-swap="tail"]')) part.scrollTop = part.scrollHeight;
addEventListener("beforeprint", () => forPaper(true));
addEventListener("afterprint", () => forPaper(false));
matchMedia("print").addEventListener("change", (event) => forPaper(event.matches)); // browsers that do not say it otherwise
if (document.body.dataset.live) follow(Number(document.body.dataset.live));
