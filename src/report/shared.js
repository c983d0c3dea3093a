// SPDX-License-Identifier: Apache-2.0
const byId = id => document.getElementById(id);
function make(tag, attributes = {}, ...children) {
  const svg = ["svg", "rect", "line", "text", "title", "g"].includes(tag);
  const e = svg ? document.createElementNS("http://www.w3.org/2000/svg", tag) : document.createElement(tag);
  for (const [k, v] of Object.entries(attributes)) if (k === "onclick") e.addEventListener("click", v); else e.setAttribute(k, v);
  for (const c of children) e.append(c);
  return e;
}
const three = v => v >= 99.95 ? v.toFixed(0) : v >= 9.995 ? v.toFixed(1) : v.toFixed(2);
function seconds(s) {
  if (s === undefined || s < 0) return "";
  if (s < 1e-6) return (s * 1e9).toFixed(0) + " ns";
  if (s < 1e-3) return three(s * 1e6) + " µs";
  if (s < 1) return three(s * 1e3) + " ms";
  return three(s) + " s";
}
function bytes(b) {
  let unit = 0;
  for (; b >= 1000 && unit < 4; unit++) b /= 1000;
  return (unit ? three(b) : b.toFixed(0)) + " " + ["B", "kB", "MB", "GB", "TB"][unit];
}
const percent = f => (f * 100).toFixed(1) + " %";
