// What all pages need: the data, elements, numbers in words, the tip beside the pointer, parts of the page, and the search.
const DATA = JSON.parse(document.getElementById("data").textContent);
const SVG = "http://www.w3.org/2000/svg";

// An element with attributes and children. Text is only ever put in as text: names are a stranger's.
function make(space, tag, attributes, children) {
  const node = space ? document.createElementNS(space, tag) : document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {}))
    if (name === "on") for (const [event, act] of Object.entries(value)) node.addEventListener(event, act);
    else if (value !== null && value !== undefined && value !== false) node.setAttribute(name, value === true ? "" : value);
  for (const child of children.flat(Infinity))
    if (child !== null && child !== undefined && child !== false) node.append(child.nodeType ? child : document.createTextNode(child));
  return node;
}
const el = (tag, attributes, ...children) => make(null, tag, attributes, children);
const svg = (tag, attributes, ...children) => make(SVG, tag, attributes, children);

// Characters that are not seen, or that turn the direction of text, as digits (lib/core/base/hidden_chars.h).
const HIDDEN = /[\u0000-\u001f\u007f-\u009f\u00ad\u034f\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\u{e0000}-\u{e007f}]/gu;
const shown = (name) => name.replace(HIDDEN, (c) => "\\u" + c.codePointAt(0).toString(16).padStart(4, "0"));

const commas = (n) => Math.round(n).toLocaleString("en-US");
const counted = (n, noun) => commas(n) + " " + noun + (n === 1 ? "" : "s");
const digits = (x, n) => x.toLocaleString("en-US", { minimumSignificantDigits: n, maximumSignificantDigits: n, useGrouping: false });
function scaled(n, step, units) {
  let u = 0;
  while (Math.abs(n) >= step && u + 1 < units.length) n /= step, u++;
  return (u === 0 ? commas(n) : digits(n, n >= 1000 ? 4 : 3)) + units[u];
}
const bytes = (n) => scaled(n, 1024, [" B", " KiB", " MiB", " GiB", " TiB", " PiB"]);
const amount = (n) => scaled(n, 1000, ["", " K", " M", " B", " T"]);
const percent = (part, whole) => whole > 0 ? (part > 0 && part / whole < 0.001 ? "<0.1 %"
    : digits((100 * part) / whole, part / whole < 0.1 ? 2 : 3) + " %") : "";
function short(x) {
  if (x === null || x === undefined) return "";
  if (typeof x !== "number") return String(x);
  if (x === 0) return "0";
  return Math.abs(x) >= 1e5 || Math.abs(x) < 1e-3 ? x.toExponential(2).replace("e+", "e") : String(Number(x.toPrecision(4)));
}
const rangeText = (ranges, most = 6) => ranges.slice(0, most).map(([a, b]) => (a === b ? a : a + "\u2013" + b)).join(", ")
    + (ranges.length > most ? " \u2026" : "");
const numbersIn = (ranges) => ranges.flatMap(([a, b]) => Array.from({ length: b - a + 1 }, (_, i) => a + i));
const toRanges = (ascending) => ascending.reduce((out, n) => { const last = out[out.length - 1]; if (last && last[1] + 1 === n) last[1] = n;
    else out.push([n, n]); return out; }, []);
const colour = (part) => "--part: var(--" + part + ")";

// The tip: lines beside the pointer, or below what has the focus.
const tip = document.getElementById("tip");
function showTip(at, title, lines) {
  tip.replaceChildren(el("b", {}, shown(title)), ...lines.filter(Boolean).map((line) => el("div", {}, shown(line))));
  tip.hidden = false;
  const size = tip.getBoundingClientRect();
  const left = Math.max(8, Math.min(at.x + 14, innerWidth - size.width - 8));
  const below = at.y + 18 + size.height < innerHeight;
  tip.style.left = left + "px";
  tip.style.top = Math.max(8, below ? at.y + 18 : at.y - size.height - 14) + "px";
}
const hideTip = () => { tip.hidden = true; };
const placeOf = (node) => { const r = node.getBoundingClientRect(); return { x: r.left + 8, y: r.bottom - 12 }; };
addEventListener("scroll", hideTip, { passive: true });
addEventListener("keydown", (event) => {
  if (event.key === "Escape") hideTip();
  const search = document.getElementById("search");
  if (event.key === "/" && document.activeElement !== search) event.preventDefault(), search.focus();
});
// Shows what `text(event)` says, [title, lines], while the pointer is over the node, or a node that Tab reaches has the focus.
function tipOn(node, text) {
  const show = (event, at) => { const said = text(event); said ? showTip(at, said[0], said[1]) : hideTip(); };
  node.addEventListener("pointermove", (event) => show(event, { x: event.clientX, y: event.clientY }));
  node.addEventListener("pointerleave", hideTip);
  // A part of a drawing that listens for the focus is a stop of Tab in Chromium without a tabindex, too.
  if (node.getAttribute("tabindex") !== "0") return;
  node.addEventListener("focus", (event) => show(event, placeOf(node)));
  node.addEventListener("blur", hideTip);
}

// A part of the page, with its entry in the navigation.
function section(id, title, about) {
  const body = el("section", { id, "aria-label": title }, el("h2", {}, title), about ? el("p", { class: "about" }, about) : null);
  document.getElementById("nav").append(el("a", { href: "#" + id }, title));
  document.getElementById("main").append(body);
  return body;
}
function head(title, badges) {
  document.getElementById("main").replaceChildren(
    el("h1", { class: "title" }, shown(title)), el("div", { class: "badges" },
        badges.map(([text, kind]) => el("span", { class: "badge " + kind }, text))));
}
const cards = (list) => el("div", { class: "cards" },
    list.filter(Boolean).map(([value, name]) => el("div", { class: "card" }, el("b", {}, value), el("span", {}, name))));
const legend = (entries) => el("div", { class: "legend" }, entries.map(([style, text]) => el("span", {}, el("i", { style }), text)));

// The search: all words must be in a name; "*" stands for anything. `act` is called with a test of names, or null for none.
const searched = [];
function onSearch(act) { searched.push(act); }
function testOf(text) {
  const words = text.trim().toLowerCase().split(/\s+/).filter(Boolean);
  if (words.length === 0) return null;
  const tests = words.map((word) => new RegExp(word.split("*").map((s) => s.replace(/[.+?^${}()|[\]\\]/g, "\\$&")).join(".*")));
  return (name) => { const low = name.toLowerCase(); return tests.every((t) => t.test(low)); };
}
let searchTimer = 0;
document.getElementById("search").addEventListener("input", (event) => {
  clearTimeout(searchTimer);
  const text = event.target.value;
  searchTimer = setTimeout(() => { const test = testOf(text); for (const act of searched) act(test, text); }, 120);
});

function alarm(kind, title, lines) {
  document.getElementById("main").append(el("div", { class: "alarm " + kind, role: "alert" }, el("b", {}, title), lines.length
      ? el("ul", {}, lines.map((line) => el("li", {}, shown(line)))) : null));
}
function findings(list, all) {
  for (const warning of [false, true]) {
    const some = list.filter((f) => f.warning === warning);
    if (some.length === 0) continue;
    const lines = some.slice(0, 12).map((f) => f.kind + ": " + f.text + (f.help ? " (" + f.help + ")" : ""));
    if (some.length > 12) lines.push("and " + commas(some.length - 12) + " more; mckpt verify lists all");
    alarm(warning ? "warn" : "", warning ? "Odd, but nothing is lost" : counted(some.length, "problem"), lines);
  }
}
function footer(command) {
  document.getElementById("main").append(el("footer", {}, "Made by mckpt " + DATA.mckpt + ". " + command));
}
