// SPDX-License-Identifier: Apache-2.0
// Where the boxes of open and closed groups lie. Ranks and lanes come with the graph; this takes time linear in what
// is shown.
import type { Graph } from "./document";

export interface Box {
  id: number;
  x: number;
  y: number;
  width: number;
  height: number;
  depth: number;
  open: boolean;
}

export interface Line {
  from: number;
  to: number;
  value: string;
  points: number[]; // x, y, ...: the start, the ends of straight parts, the end
}

export interface Scene {
  boxes: Box[]; // groups in front of their members
  byId: Map<number, Box>;
  lines: Line[];
  width: number;
  height: number;
}

const CARD = { width: 176, height: 46 };
const PILL = { width: 150, height: 30 };
const PORT = { width: 10, height: 10 };
const GAP = { x: 22, y: 36 };
const BORDER = 20;
export const TITLE = 30;

/** The members of each group, and the edges between them. */
export class Structure {
  readonly members: number[][];
  readonly edges: number[][]; // by group
  readonly out: number[][]; // edges by node
  readonly in: number[][];

  constructor(readonly graph: Graph) {
    const lists = () => graph.nodes.map(() => [] as number[]);
    [this.members, this.edges, this.out, this.in] = [lists(), lists(), lists(), lists()];
    graph.nodes.forEach((node, id) => node.parent >= 0 && this.members[node.parent].push(id));
    graph.edges.forEach(([from, to], i) => {
      this.edges[graph.nodes[from].parent].push(i);
      this.out[from].push(i);
      this.in[to].push(i);
    });
  }

  isGroup(id: number): boolean {
    return this.members[id].length > 0;
  }

  /** The groups around a node, from the outermost, without the graph itself. */
  around(id: number): number[] {
    const out: number[] = [];
    for (let p = this.graph.nodes[id].parent; p > 0; p = this.graph.nodes[p].parent) out.unshift(p);
    return out;
  }
}

interface Grid {
  width: number;
  height: number;
  cells: Map<number, { x: number; y: number; width: number; height: number; inner?: Grid }>;
  lanes: Map<number, number>; // centers
  rows: { top: number; bottom: number }[];
}

function grid(structure: Structure, group: number, open: Set<number>): Grid {
  const { nodes, edges } = structure.graph;
  const members = structure.members[group];
  const inner = new Map<number, Grid>();
  const size = (id: number) => {
    const node = nodes[id];
    if (open.has(id) && structure.isGroup(id)) {
      if (!inner.has(id)) inner.set(id, grid(structure, id, open));
      const g = inner.get(id)!;
      return { width: Math.max(g.width + 2 * BORDER, CARD.width), height: g.height + BORDER + TITLE };
    }
    return node.kind === "port" ? PORT : node.kind === "input" || node.kind === "output" ? PILL : CARD;
  };
  const laneWidths = new Map<number, number>();
  const rowHeights: number[] = [];
  for (const id of members) {
    const { rank, lane } = nodes[id];
    const { width, height } = size(id);
    laneWidths.set(lane, Math.max(laneWidths.get(lane) ?? 0, width));
    rowHeights[rank] = Math.max(rowHeights[rank] ?? 0, height);
  }
  for (const e of structure.edges[group]) {
    const lane = edges[e][3];
    if (lane !== undefined && !laneWidths.has(lane)) laneWidths.set(lane, 8);
  }
  const lanes = new Map<number, number>();
  let x = 0;
  for (const lane of [...laneWidths.keys()].sort((a, b) => a - b)) {
    const width = laneWidths.get(lane)!;
    lanes.set(lane, x + width / 2);
    x += width + GAP.x;
  }
  const rows: Grid["rows"] = [];
  let y = 0;
  for (let r = 0; r < rowHeights.length; r++) {
    rows.push({ top: y, bottom: y + (rowHeights[r] ?? 0) });
    y += (rowHeights[r] ?? 0) + GAP.y;
  }
  const cells: Grid["cells"] = new Map();
  for (const id of members) {
    const { width, height } = size(id);
    const { rank, lane } = nodes[id];
    cells.set(id, { x: lanes.get(lane)! - width / 2, y: rows[rank].top, width, height, inner: inner.get(id) });
  }
  return { width: Math.max(0, x - GAP.x), height: Math.max(0, y - GAP.y), cells, lanes, rows };
}

export function arrange(structure: Structure, open: Set<number>): Scene {
  const { nodes, edges } = structure.graph;
  const scene: Scene = { boxes: [], byId: new Map(), lines: [], width: 0, height: 0 };
  const place = (group: number, g: Grid, x: number, y: number, depth: number) => {
    for (const [id, cell] of g.cells) {
      const box = { id, x: x + cell.x, y: y + cell.y, width: cell.width, height: cell.height, depth, open: !!cell.inner };
      scene.boxes.push(box);
      scene.byId.set(id, box);
      if (cell.inner) {
        const slack = (cell.width - 2 * BORDER - cell.inner.width) / 2;
        place(id, cell.inner, box.x + BORDER + slack, box.y + TITLE, depth + 1);
      }
    }
    for (const e of structure.edges[group]) {
      const [from, to, value, lane] = edges[e];
      const a = scene.byId.get(from)!;
      const b = scene.byId.get(to)!;
      const points = [a.x + a.width / 2, a.y + a.height];
      const top = nodes[from].rank + 1;
      const bottom = nodes[to].rank - 1;
      const rowEnd = y + g.rows[nodes[from].rank].bottom;
      if (rowEnd > a.y + a.height) points.push(points[0], rowEnd);
      if (lane !== undefined && top <= bottom) {
        const lx = x + g.lanes.get(lane)!;
        points.push(lx, y + g.rows[top].top, lx, y + g.rows[bottom].bottom);
      }
      points.push(b.x + b.width / 2, b.y);
      scene.lines.push({ from, to, value, points });
    }
  };
  const g = grid(structure, 0, open);
  place(0, g, 0, 0, 0);
  scene.width = g.width;
  scene.height = g.height;
  return scene;
}
