// SPDX-License-Identifier: Apache-2.0
import { useCallback, useEffect, useMemo, useRef, useState } from "preact/hooks";
import { Details } from "./details";
import type { Graph } from "./document";
import { model } from "./document";
import { draw, drawMap, type Look, type View } from "./draw";
import { stepsOfNodes, tintOf, type Step } from "./placement";
import { arrange, Structure } from "./scene";
import { count } from "./text";
import { tintOfValues, valuesByName, type ValuesState } from "./values";

interface Props {
  graph: Graph;
  /** Of the graph after the passes. */
  summary?: string;
  shown: Shown;
  show: (shown: Shown) => void;
  note?: string;
  dark: boolean;
  steps?: Map<string, Step>;
  values: ValuesState;
}

export type Shown = "file" | "passes";
type Coloring = "type" | "device" | "time" | "values";
const MOST_FOUND = 200;

export function StructureTab({ graph, summary, shown, show: showOther, note, dark, steps, values }: Props) {
  const structure = useMemo(() => new Structure(graph), [graph]);
  const [open, setOpen] = useState<Set<number>>(new Set());
  const [selected, setSelected] = useState(-1);
  const [query, setQuery] = useState("");
  const [coloring, setColoring] = useState<Coloring>("type");
  const canvas = useRef<HTMLCanvasElement>(null);
  const map = useRef<HTMLCanvasElement>(null);
  const search = useRef<HTMLInputElement>(null);
  const view = useRef<View>({ x: 0, y: 0, scale: 1 });
  const mapView = useRef<View>({ x: 0, y: 0, scale: 1 });
  const scene = useMemo(() => arrange(structure, open), [structure, open]);
  const nodeSteps = useMemo(() => (steps ? stepsOfNodes(graph, steps) : undefined), [graph, steps]);

  const byName = useMemo(() => (values.found ? valuesByName(values.found) : undefined), [values]);

  const matches = useMemo(() => {
    const text = query.trim().toLowerCase();
    if (!text) return [];
    const out: number[] = [];
    graph.nodes.forEach((node, id) => {
      if (node.kind === "port" || id === 0) return;
      const outputs = node.outputs?.some(([name]) => name.toLowerCase().includes(text));
      if (node.name.toLowerCase().includes(text) || node.type.toLowerCase().includes(text) || outputs) out.push(id);
    });
    return out;
  }, [graph, query]);

  const look = useMemo<Look>(() => {
    const found = new Set<number>();
    for (const id of matches) {
      // A closed group shows that it holds a match.
      const closed = structure.around(id).find((group) => !open.has(group));
      found.add(closed ?? id);
    }
    const tint = coloring === "type" ? undefined : (id: number) => {
      if (coloring === "values") return byName && tintOfValues((graph.nodes[id].outputs ?? []).flatMap(([name]) => byName.get(name) ?? []), dark);
      const step = nodeSteps?.get(id);
      return step && tintOf(step, coloring, dark);
    };
    return { dark, selected, found, tint };
  }, [dark, selected, matches, structure, open, nodeSteps, coloring, byName]);

  const frame = useRef(0);
  const paint = useCallback(() => {
    cancelAnimationFrame(frame.current);
    frame.current = requestAnimationFrame(() => {
      if (!canvas.current?.clientWidth) return;
      draw(canvas.current, graph, scene, view.current, look);
      const size = { width: canvas.current.clientWidth, height: canvas.current.clientHeight };
      if (map.current) mapView.current = drawMap(map.current, graph, scene, view.current, size, look);
    });
  }, [graph, scene, look]);

  const fit = useCallback((whole: boolean) => {
    const { clientWidth: w, clientHeight: h } = canvas.current!;
    const scale = Math.min(1, (w - 60) / scene.width, whole ? (h - 60) / scene.height : 1);
    const s = Math.max(scale, whole ? 0.01 : 0.45);
    // The start of the graph, with its inputs in the middle.
    const first = scene.boxes.find((b) => b.depth === 0 && b.y === 0);
    const center = whole || scale >= 0.45 || !first ? scene.width / 2 : first.x + first.width / 2;
    const top = whole || scene.height * s < h ? scene.height / 2 - h / s / 2 : -40 / s;
    view.current = { x: center - w / s / 2, y: top, scale: s };
    paint();
  }, [scene, paint]);

  const show = useCallback((id: number) => {
    const groups = structure.around(id).filter((group) => !open.has(group));
    if (groups.length) setOpen(new Set([...open, ...groups]));
    setSelected(id);
  }, [structure, open]);

  // Brings the selected box into the window.
  useEffect(() => {
    const box = scene.byId.get(selected);
    if (!box) return;
    const { clientWidth: w, clientHeight: h } = canvas.current!;
    const v = view.current;
    if (v.scale < 0.4) v.scale = 0.8;
    const [left, top] = [(box.x - v.x) * v.scale, (box.y - v.y) * v.scale];
    if (left < 0 || top < 0 || left + Math.min(box.width * v.scale, w) > w + 1 || top + 40 > h) {
      v.x = box.x + box.width / 2 - w / v.scale / 2;
      v.y = box.y + Math.min(box.height, h / v.scale) / 2 - h / v.scale / 2;
    }
    paint();
  }, [selected, scene]);

  const isNew = useRef<Graph | null>(null);
  useEffect(() => {
    if (isNew.current !== graph) {
      isNew.current = graph;
      setOpen(new Set());
      setSelected(-1);
      fit(false);
    }
    paint();
  }, [graph, paint]);

  useEffect(() => {
    const observer = new ResizeObserver(paint);
    observer.observe(canvas.current!);
    return () => observer.disconnect();
  }, [paint]);

  const toggle = useCallback((id: number) => {
    if (!structure.isGroup(id)) return;
    const before = scene.byId.get(id);
    const next = new Set(open);
    if (!next.delete(id)) next.add(id);
    // The group's upper edge stays where it is in the window.
    const after = arrange(structure, next).byId.get(id);
    if (before && after) {
      view.current.x += after.x + after.width / 2 - before.x - before.width / 2;
      view.current.y += after.y - before.y;
    }
    setOpen(next);
  }, [structure, scene, open]);

  const zoom = useCallback((factor: number, px: number, py: number) => {
    const v = view.current;
    const scale = Math.min(4, Math.max(0.01, v.scale * factor));
    v.x += px / v.scale - px / scale;
    v.y += py / v.scale - py / scale;
    v.scale = scale;
    paint();
  }, [paint]);

  useEffect(() => {
    const element = canvas.current!;
    const wheel = (e: WheelEvent) => {
      e.preventDefault();
      if (e.ctrlKey || e.metaKey) return zoom(Math.exp(-e.deltaY / 150), e.offsetX, e.offsetY);
      const lines = e.deltaMode === 1 ? 30 : 1;
      const [dx, dy] = e.shiftKey && !e.deltaX ? [e.deltaY, 0] : [e.deltaX, e.deltaY];
      view.current.x += (dx * lines) / view.current.scale;
      view.current.y += (dy * lines) / view.current.scale;
      paint();
    };
    element.addEventListener("wheel", wheel, { passive: false });
    return () => element.removeEventListener("wheel", wheel);
  }, [zoom, paint]);

  const boxAt = (e: MouseEvent) => {
    const x = view.current.x + e.offsetX / view.current.scale;
    const y = view.current.y + e.offsetY / view.current.scale;
    let hit = -1;
    for (const b of scene.boxes)
      if (graph.nodes[b.id].kind !== "port" && x >= b.x && x < b.x + b.width && y >= b.y && y < b.y + b.height) hit = b.id;
    return hit;
  };

  const drag = useRef<{ x: number; y: number; moved: boolean } | null>(null);
  const down = (e: PointerEvent) => {
    (e.target as Element).setPointerCapture(e.pointerId);
    drag.current = { x: e.clientX, y: e.clientY, moved: false };
  };
  const move = (e: PointerEvent) => {
    const d = drag.current;
    if (!d) return;
    const [dx, dy] = [e.clientX - d.x, e.clientY - d.y];
    if (!d.moved && Math.abs(dx) + Math.abs(dy) < 4) return;
    d.moved = true;
    view.current.x -= dx / view.current.scale;
    view.current.y -= dy / view.current.scale;
    [d.x, d.y] = [e.clientX, e.clientY];
    paint();
  };
  const up = (e: PointerEvent) => {
    if (drag.current && !drag.current.moved) setSelected(boxAt(e));
    drag.current = null;
  };

  const mapTo = (e: PointerEvent) => {
    if (!(e.buttons & 1)) return;
    const m = mapView.current;
    const { clientWidth: w, clientHeight: h } = canvas.current!;
    view.current.x = m.x + e.offsetX / m.scale - w / view.current.scale / 2;
    view.current.y = m.y + e.offsetY / m.scale - h / view.current.scale / 2;
    paint();
  };

  const keys = (e: KeyboardEvent) => {
    const { clientWidth: w, clientHeight: h } = canvas.current!;
    const neighbor = (edges: number[], end: 0 | 1) => edges.map((i) => graph.edges[i][end]).find((id) => scene.byId.has(id) && graph.nodes[id].kind !== "port");
    const sideways = (step: number) => {
      const box = scene.byId.get(selected);
      if (!box) return undefined;
      const row = scene.boxes.filter((b) => graph.nodes[b.id].parent === graph.nodes[selected].parent && graph.nodes[b.id].rank === graph.nodes[selected].rank && graph.nodes[b.id].kind !== "port").sort((a, b) => a.x - b.x);
      return row[row.findIndex((b) => b.id === selected) + step]?.id;
    };
    const first = scene.boxes[0]?.id;
    const go = (id: number | undefined) => id !== undefined && setSelected(id);
    if (e.key === "ArrowDown") go(selected < 0 ? first : neighbor(structure.out[selected], 1));
    else if (e.key === "ArrowUp") go(selected < 0 ? first : neighbor(structure.in[selected], 0));
    else if (e.key === "ArrowRight") go(sideways(1));
    else if (e.key === "ArrowLeft") go(sideways(-1));
    else if (e.key === "Enter" && selected >= 0) toggle(selected);
    else if (e.key === "Escape") setSelected(-1);
    else if (e.key === "+" || e.key === "=") zoom(1.3, w / 2, h / 2);
    else if (e.key === "-") zoom(1 / 1.3, w / 2, h / 2);
    else if (e.key === "0") fit(true);
    else if (e.key === "/") search.current!.focus();
    else return;
    e.preventDefault();
  };

  const groups = graph.nodes.flatMap((_, id) => (id > 0 && structure.isGroup(id) ? [id] : []));
  const operations = graph.nodes[0]?.operations ?? 0;
  return (
    <div class="structure">
      <div class="tools">
        <input ref={search} type="search" placeholder="Search names and types ( / )" aria-label="Search operations" value={query}
          onInput={(e) => setQuery(e.currentTarget.value)}
          onKeyDown={(e) => {
            if (e.key === "Enter" && matches.length) show(matches[(matches.indexOf(selected) + 1) % matches.length]);
            if (e.key === "Escape") { setQuery(""); canvas.current!.focus(); }
          }} />
        <span class="dim" role="status">{note ?? (query ? `${count(matches.length)} found` : summary ?? (operations ? `${count(operations)} operations` : ""))}</span>
        <span class="space" />
        {model.live && (
          <label>Graph <select value={shown} onChange={(e) => showOther(e.currentTarget.value as Shown)}>
            <option value="file">In the file</option>
            <option value="passes">After the passes</option>
          </select></label>
        )}
        {(nodeSteps || byName) && (
          <label>Colors <select value={coloring} onChange={(e) => setColoring(e.currentTarget.value as Coloring)}>
            <option value="type">Type</option>
            {nodeSteps && <><option value="device">Device</option><option value="time">Time</option></>}
            {byName && <option value="values">Values</option>}
          </select></label>
        )}
        {groups.length > 0 && <button onClick={() => setOpen(open.size ? new Set() : new Set(groups))}>{open.size ? "Close all" : "Open all"}</button>}
        <button onClick={() => fit(true)} title="The whole graph (0)">Fit</button>
        <button onClick={() => zoom(1 / 1.3, canvas.current!.clientWidth / 2, canvas.current!.clientHeight / 2)} aria-label="Zoom out">−</button>
        <button onClick={() => zoom(1.3, canvas.current!.clientWidth / 2, canvas.current!.clientHeight / 2)} aria-label="Zoom in">+</button>
      </div>
      <div class="stage">
        <canvas ref={canvas} class="graph" tabIndex={0} role="application" aria-label="Graph of the model. Arrow keys follow the edges, Enter opens a group, slash searches."
          onPointerDown={down} onPointerMove={move} onPointerUp={up} onDblClick={(e) => toggle(boxAt(e))} onKeyDown={keys} />
        <canvas ref={map} class="map" aria-hidden="true" onPointerDown={mapTo} onPointerMove={mapTo} />
        {query && matches.length > 0 && (
          <ul class="found" aria-label="Found operations">
            {matches.slice(0, MOST_FOUND).map((id) => (
              <li key={id}><button aria-current={id === selected} onClick={() => show(id)}><b>{graph.nodes[id].type || graph.nodes[id].kind}</b> {graph.nodes[id].name}</button></li>
            ))}
            {matches.length > MOST_FOUND && <li class="dim">{count(matches.length - MOST_FOUND)} more</li>}
          </ul>
        )}
        {selected >= 0 && graph.nodes[selected] && (
          <aside class="details" aria-label="Details" tabIndex={0}>
            <button class="close" aria-label="Close details" onClick={() => setSelected(-1)}>×</button>
            <Details graph={graph} structure={structure} id={selected} step={nodeSteps?.get(selected)} values={byName} request={values.request} select={show} toggle={toggle} isOpen={open.has(selected)} />
          </aside>
        )}
      </div>
    </div>
  );
}
