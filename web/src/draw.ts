// SPDX-License-Identifier: Apache-2.0
// Draws a scene on a canvas: only what is in the window, with less detail the farther away it is.
import type { Graph } from "./document";
import type { Box, Line, Scene } from "./scene";
import { TITLE } from "./scene";
import { hueOf, nameInside, shortType, sizeOf } from "./text";

export interface View {
  x: number; // the scene's point in the window's corner
  y: number;
  scale: number;
}

export interface Look {
  dark: boolean;
  selected: number;
  found: Set<number>;
  /** A fill that replaces the family's color, and a second line of text. */
  tint?: (id: number) => { color: string; text: string } | undefined;
}

const FONT = "system-ui, sans-serif";

function colors(dark: boolean) {
  return dark
    ? { text: "#e8eaee", dim: "#9aa3b2", line: "#586174", card: "#1f242d", edge: "#333b49", group: "rgba(140,160,200,.06)", accent: "#7aa7ff", found: "#e5b93c" }
    : { text: "#1b2230", dim: "#5b6577", line: "#a5aebd", card: "#ffffff", edge: "#d5dae3", group: "rgba(60,90,160,.045)", accent: "#2f6bed", found: "#d99a00" };
}

export function familyColor(type: string, dark: boolean): string {
  const hue = hueOf(type);
  if (hue === undefined) return dark ? "#7b8597" : "#8b95a7";
  return `hsl(${hue} ${dark ? "58% 62%" : "62% 47%"})`;
}

function rounded(c: CanvasRenderingContext2D, b: Box, radius: number) {
  c.beginPath();
  c.roundRect(b.x, b.y, b.width, b.height, Math.min(radius, b.height / 2));
}

function fitted(c: CanvasRenderingContext2D, text: string, width: number): string {
  if (c.measureText(text).width <= width) return text;
  let low = 0;
  let high = text.length;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (c.measureText(text.slice(0, middle) + "…").width <= width) low = middle;
    else high = middle - 1;
  }
  return text.slice(0, low) + "…";
}

/** The same, but the end of the text stays: of names it says more. */
function fittedEnd(c: CanvasRenderingContext2D, text: string, width: number): string {
  const reversed = [...text].reverse().join("");
  const end = fitted(c, reversed, width);
  return end === reversed ? text : "…" + [...end.slice(0, -1)].reverse().join("");
}

/** A curve that leaves and enters vertically, with straight parts between. */
function trace(c: CanvasRenderingContext2D, p: number[]) {
  c.moveTo(p[0], p[1]);
  for (let i = 2; i < p.length; i += 2) {
    const [x0, y0, x1, y1] = [p[i - 2], p[i - 1], p[i], p[i + 1]];
    if (Math.abs(x0 - x1) < 0.5) c.lineTo(x1, y1);
    else {
      const bend = Math.max(12, (y1 - y0) * 0.5);
      c.bezierCurveTo(x0, y0 + bend, x1, y1 - bend, x1, y1);
    }
  }
}

function arrow(c: CanvasRenderingContext2D, line: Line) {
  const x = line.points[line.points.length - 2];
  const y = line.points[line.points.length - 1];
  c.moveTo(x - 4, y - 6);
  c.lineTo(x, y);
  c.lineTo(x + 4, y - 6);
}

export function draw(canvas: HTMLCanvasElement, graph: Graph, scene: Scene, view: View, look: Look) {
  const c = canvas.getContext("2d")!;
  const pixels = window.devicePixelRatio || 1;
  const width = canvas.clientWidth;
  const height = canvas.clientHeight;
  if (canvas.width !== Math.round(width * pixels) || canvas.height !== Math.round(height * pixels)) {
    canvas.width = Math.round(width * pixels);
    canvas.height = Math.round(height * pixels);
  }
  const s = view.scale * pixels;
  c.setTransform(1, 0, 0, 1, 0, 0);
  c.clearRect(0, 0, canvas.width, canvas.height);
  c.setTransform(s, 0, 0, s, -view.x * s, -view.y * s);
  const right = view.x + width / view.scale;
  const bottom = view.y + height / view.scale;
  const isVisible = (b: Box) => b.x < right && b.y < bottom && b.x + b.width > view.x && b.y + b.height > view.y;
  const color = colors(look.dark);
  const far = view.scale < 0.32;

  for (const box of scene.boxes) {
    if (!box.open || !isVisible(box)) continue;
    rounded(c, box, 12);
    c.fillStyle = color.group;
    c.fill();
    c.lineWidth = box.id === look.selected ? 2.5 : 1;
    c.strokeStyle = box.id === look.selected ? color.accent : color.edge;
    c.stroke();
    if (far) continue;
    const node = graph.nodes[box.id];
    c.font = `600 12px ${FONT}`;
    c.textBaseline = "middle";
    c.textAlign = "left";
    c.fillStyle = color.dim;
    c.fillText(fitted(c, "▾ " + (nameInside(node.name, graph.nodes[node.parent].name) || node.type), box.width - 24), box.x + 12, box.y + TITLE / 2);
  }

  const lit: Line[] = [];
  c.strokeStyle = color.line;
  c.lineWidth = far ? 1.2 / Math.max(view.scale, 0.05) * 0.5 : 1.3;
  c.beginPath();
  for (const line of scene.lines) {
    const p = line.points;
    let [least, most] = [p[0], p[0]];
    for (let i = 2; i < p.length; i += 2) {
      if (p[i] < least) least = p[i];
      if (p[i] > most) most = p[i];
    }
    if (least > right || most < view.x || p[1] > bottom || p[p.length - 1] < view.y) continue;
    if (line.from === look.selected || line.to === look.selected) {
      lit.push(line);
      continue;
    }
    trace(c, p);
    if (!far && graph.nodes[line.to].kind !== "port") arrow(c, line);
  }
  c.stroke();
  if (lit.length) {
    c.strokeStyle = color.accent;
    c.lineWidth = Math.max(2, 1 / view.scale);
    c.beginPath();
    for (const line of lit) {
      trace(c, line.points);
      arrow(c, line);
    }
    c.stroke();
  }

  for (const box of scene.boxes) {
    if (box.open || !isVisible(box)) continue;
    const node = graph.nodes[box.id];
    if (node.kind === "port") {
      c.beginPath();
      c.arc(box.x + 5, box.y + 5, 4, 0, 7);
      c.fillStyle = color.line;
      c.fill();
      continue;
    }
    const isEnd = node.kind === "input" || node.kind === "output";
    const isGroup = node.operations !== undefined;
    const tint = look.tint?.(box.id);
    const family = tint?.color ?? familyColor(node.type, look.dark);
    if (far) {
      c.fillStyle = isEnd ? color.dim : family;
      c.globalAlpha = look.tint && !tint && !isEnd ? 0.25 : 1;
      c.fillRect(box.x, box.y, box.width, box.height);
      c.globalAlpha = 1;
    } else {
      if (isGroup && !isEnd) {
        // A stack of cards.
        c.fillStyle = color.card;
        c.strokeStyle = color.edge;
        c.lineWidth = 1;
        rounded(c, { ...box, x: box.x + 4, y: box.y + 4 }, 9);
        c.fill();
        c.stroke();
      }
      rounded(c, box, isEnd ? 15 : 9);
      c.fillStyle = isEnd ? (look.dark ? "#2a3240" : "#e8edf6") : color.card;
      c.fill();
      if (!isEnd) {
        c.save();
        c.clip();
        c.fillStyle = family;
        c.fillRect(box.x, box.y, tint ? box.width : 5, box.height);
        if (tint) {
          c.fillStyle = look.dark ? "rgba(20,24,31,.55)" : "rgba(255,255,255,.68)";
          c.fillRect(box.x + 5, box.y, box.width, box.height);
        }
        c.restore();
      }
      c.textBaseline = "middle";
      if (isEnd) {
        c.font = `500 12px ${FONT}`;
        c.textAlign = "center";
        c.fillStyle = color.text;
        c.fillText(fitted(c, node.name, box.width - 20), box.x + box.width / 2, box.y + box.height / 2);
      } else {
        c.textAlign = "left";
        c.font = `600 13px ${FONT}`;
        c.fillStyle = color.text;
        const title = isGroup && node.kind !== "operation" ? nameInside(node.name, graph.nodes[node.parent].name) || node.type : node.type || node.name;
        c.fillText((node.kind === "scope" ? fittedEnd : fitted)(c, title, box.width - 26), box.x + 14, box.y + 16);
        c.font = `11px ${FONT}`;
        c.fillStyle = color.dim;
        const shape = node.outputs?.[0]?.[1];
        const line = tint?.text ?? (isGroup ? sizeOf(node) : shape ? shortType(shape) : undefined);
        c.fillText(line ? fitted(c, line, box.width - 26) : fittedEnd(c, node.name, box.width - 26), box.x + 14, box.y + 33);
      }
    }
    const isSelected = box.id === look.selected;
    const isFound = look.found.has(box.id);
    if (!far || isSelected || isFound) {
      rounded(c, box, isEnd ? 15 : 9);
      c.lineWidth = isSelected || isFound ? Math.max(2.5, 2 / view.scale) : 1;
      c.strokeStyle = isSelected ? color.accent : isFound ? color.found : color.edge;
      c.stroke();
    }
  }
}

/** The whole scene, small, with the window's frame. */
export function drawMap(canvas: HTMLCanvasElement, graph: Graph, scene: Scene, view: View, window_: { width: number; height: number }, look: Look): View {
  const c = canvas.getContext("2d")!;
  const pixels = window.devicePixelRatio || 1;
  canvas.width = canvas.clientWidth * pixels;
  canvas.height = canvas.clientHeight * pixels;
  const scale = Math.min(canvas.clientWidth / (scene.width + 40), canvas.clientHeight / (scene.height + 40));
  const map = {
    x: scene.width / 2 - canvas.clientWidth / scale / 2,
    y: scene.height / 2 - canvas.clientHeight / scale / 2,
    scale,
  };
  c.setTransform(scale * pixels, 0, 0, scale * pixels, -map.x * scale * pixels, -map.y * scale * pixels);
  const color = colors(look.dark);
  const least = 1.2 / scale;
  for (const box of scene.boxes) {
    if (box.height * scale < 0.2 && box.depth > 0) continue;
    const node = graph.nodes[box.id];
    c.globalAlpha = box.open ? 0.25 : 1;
    c.fillStyle = box.open ? color.line : look.found.has(box.id) ? color.found : (look.tint?.(box.id)?.color ?? familyColor(node.type, look.dark));
    c.fillRect(box.x, box.y, Math.max(box.width, least), Math.max(box.height, least));
  }
  c.globalAlpha = 1;
  c.strokeStyle = color.accent;
  c.lineWidth = 1.5 / scale;
  c.strokeRect(view.x, view.y, window_.width / view.scale, window_.height / view.scale);
  return map;
}
