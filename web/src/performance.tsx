// SPDX-License-Identifier: Apache-2.0
import { useState } from "preact/hooks";
import { Histogram } from "./chart";
import { ask, type PlannedOperation } from "./document";
import type { Report } from "./placement";
import { bytes, percent, seconds } from "./text";

type Key = "order" | "name" | "type" | "device" | "kernel" | "time";

function Operations({ operations }: { operations: PlannedOperation[] }) {
  const [sort, setSort] = useState<Key>("time");
  const [filter, setFilter] = useState("");
  const text = filter.trim().toLowerCase();
  const rows = operations.map((o, i) => ({ o, i })).filter(({ o }) => !text || JSON.stringify(o).toLowerCase().includes(text));
  const by: Record<Key, (a: typeof rows[0], b: typeof rows[0]) => number> = {
    order: (a, b) => a.i - b.i,
    name: (a, b) => a.o.name.localeCompare(b.o.name),
    type: (a, b) => a.o.type.localeCompare(b.o.type),
    device: (a, b) => a.o.device.localeCompare(b.o.device),
    kernel: (a, b) => a.o.kernel.localeCompare(b.o.kernel),
    time: (a, b) => (b.o.measuredSeconds ?? 0) - (a.o.measuredSeconds ?? 0),
  };
  rows.sort(by[sort]);
  const head = (key: Key, label: string, figure = false) => (
    <th class={figure ? "figure" : ""} aria-sort={sort === key ? (key === "time" ? "descending" : "ascending") : "none"}>
      <button class="link" onClick={() => setSort(key)}>{label}</button>
    </th>
  );
  return (
    <section class="card wide">
      <h2>Operations</h2>
      <input type="search" placeholder="Filter by name, type, kernel, device or reason" aria-label="Filter operations" value={filter} onInput={(e) => setFilter(e.currentTarget.value)} />
      <div class="scroll" tabIndex={0} role="region" aria-label="Operations">
        <table class="plain">
          <thead><tr>{head("order", "#")}{head("name", "Name")}{head("type", "Type")}{head("device", "Device")}{head("kernel", "Kernel")}{head("time", "Time", true)}<th class="figure">Share</th><th>Others refuse</th></tr></thead>
          <tbody>{rows.slice(0, 500).map(({ o, i }) => (
            <tr key={i}>
              <td class="dim">{i}</td><td class="long">{o.name}{o.fused.length > 0 && <span class="dim"> +{o.fused.length}</span>}</td><td>{o.type}</td><td>{o.device}</td><td class="long">{o.kernel}</td>
              <td class="figure">{o.measuredSeconds !== undefined && seconds(o.measuredSeconds)}</td>
              <td class="figure">{o.share !== undefined && percent(o.share)}</td>
              <td class="dim small">{o.refusals.join("; ")}</td>
            </tr>
          ))}</tbody>
        </table>
        {rows.length > 500 && <p class="dim">The first 500 of {rows.length}</p>}
      </div>
    </section>
  );
}

export function Performance({ name, report, change }: { name: string; report?: Report; change: (report: Report) => void }) {
  const [busy, setBusy] = useState(false);
  const measure = async () => {
    setBusy(true);
    try {
      change(await ask<Report>("report", { function: name }));
    } catch (e) {
      change({ error: (e as Error).message });
    }
    setBusy(false);
  };
  const steady = report?.steady;
  const sorted = steady ? [...steady.samples].sort((a, b) => a - b) : [];
  const [least, most] = [sorted[0] ?? 0, sorted[Math.floor(0.99 * (sorted.length - 1))] ?? 0];
  const histogram = new Array(40).fill(0);
  for (const s of sorted) if (s <= most) histogram[Math.min(39, Math.floor(((s - least) / (most - least || 1)) * 40))]++;
  return (
    <div class="stack">
      <section class="card">
        <div class="row">
          <button class="primary" onClick={measure} disabled={busy}>{busy ? "Measuring…" : report ? "Measure again" : "Measure"}</button>
          <span class="dim">Loads the model and predicts random inputs for about a second. Colors for devices and times then appear in Structure.</span>
        </div>
        {report?.error && <p class="error">{report.error}</p>}
      </section>
      {steady && report && (
        <section class="card">
          <h2>Prediction</h2>
          <div class="tiles">
            {([["Median", seconds(steady.median)], ["p90", seconds(steady.p90)], ["p99", seconds(steady.p99)], ["First", seconds(report.first!)], ["Load", seconds(report.load!.median)],
              ["Weights in file", bytes(report.memory!.weightBytes)], ["Packed weights", bytes(report.memory!.packedBytes)], ["Values", bytes(report.memory!.arenaBytes)]] as const).map(([label, value]) => (
              <div key={label}><div class="dim small">{label}</div><div class="result">{value}</div></div>
            ))}
          </div>
          {sorted.length > 20 && (
            <>
              <h3>Milliseconds, up to p99</h3>
              <Histogram values={histogram} from={1e3 * least} to={1e3 * most} label="Distribution of prediction times" />
            </>
          )}
        </section>
      )}
      {report?.operations && <Operations operations={report.operations} />}
      {report?.remarks && report.remarks.length > 0 && (
        <section class="card"><h2>What the passes changed</h2><ul class="remarks">{report.remarks.map((r, i) => <li key={i}><strong>{r.pass}</strong> {r.text}</li>)}</ul></section>
      )}
    </div>
  );
}
