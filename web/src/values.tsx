// SPDX-License-Identifier: Apache-2.0
// Every value of the Preview's prediction, and the first one that another setting computes differently.
import { useEffect, useState } from "preact/hooks";
import { ArrayView, type ArrayFacts, type ArrayShown } from "./answers";
import { ask, type FunctionFacts } from "./document";
import { isComplete, type Given, type PreviewState } from "./preview";
import { count, number } from "./text";

export interface Setting {
  device: string; // empty: as the command line says
  precision: string;
}

export interface ValueFacts extends ArrayFacts {
  index: number;
  operation: string;
  value: string;
  difference?: number;
  relative?: number;
  differs?: boolean;
  other?: ArrayFacts;
}

interface Found {
  values: ValueFacts[];
  complete: boolean;
  first?: number;
}

/** What the server was asked; it names a value of this prediction. */
export interface ValuesRequest {
  function: string;
  inputs: Record<string, Given>;
  setting: Partial<Setting>;
}

/** What the tab shows; it outlives a change of tabs. */
export interface ValuesState {
  setting?: Setting;
  other?: Setting;
  request?: ValuesRequest;
  found?: Found;
  compares?: boolean;
  error?: string;
}

export function valuesByName(found: Found): Map<string, ValueFacts[]> {
  const out = new Map<string, ValueFacts[]>();
  for (const value of found.values) {
    if (!out.has(value.value)) out.set(value.value, []);
    out.get(value.value)!.push(value);
  }
  return out;
}

/** NaN and infinity are red, values that differ between the settings are orange. */
export function tintOfValues(values: ValueFacts[], dark: boolean): { color: string; text: string } | undefined {
  if (values.length === 0) return undefined;
  const bad = values.find((v) => v.nan + v.infinite > 0);
  const differing = values.find((v) => v.differs);
  const shown = bad ?? differing ?? values[0];
  const hue = bad ? "2 85%" : differing ? "32 90%" : "200 35%";
  const text = bad ? `${count(shown.nan)} NaN, ${count(shown.infinite)} infinite` : differing ? `differs by ${number(shown.difference ?? 0)}` : `${number(shown.minimum)} … ${number(shown.maximum)}`;
  return { color: `hsl(${hue} ${dark ? 60 : 48}%)`, text };
}

const short = (request: ValuesRequest): Record<string, unknown> => ({ function: request.function, inputs: request.inputs, setting: request.setting });
const sent = (setting: Setting): Partial<Setting> => ({ ...(setting.device && { device: setting.device }), ...(setting.precision && { precision: setting.precision }) });

/** One value with its heat maps, which the server computes when they are shown. */
export function ValueCard({ value, request }: { value: ValueFacts; request: ValuesRequest }) {
  const [array, setArray] = useState<ArrayShown>();
  const [error, setError] = useState<string>();
  useEffect(() => {
    let isCurrent = true;
    setArray(undefined);
    setError(undefined);
    ask<ArrayShown>("values", { ...short(request), index: value.index })
      .then((a) => isCurrent && setArray(a))
      .catch((e: Error) => isCurrent && setError(e.message));
    return () => { isCurrent = false; };
  }, [value, request]);
  return (
    <div class="weight">
      <div class="name">{value.value}</div>
      <ArrayView array={array ?? value} label={value.value} />
      {value.differs && value.other && (
        <p class="error small">Differs{value.relative !== undefined && ` by up to ${number(value.difference!)}, ${number(100 * value.relative)} % of the greatest value`}. The other setting: {value.other.type} {value.other.shape.join(" × ")}, {number(value.other.minimum)} … {number(value.other.maximum)}{value.other.nan + value.other.infinite > 0 && `, ${count(value.other.nan)} NaN, ${count(value.other.infinite)} infinite`}.</p>
      )}
      {error && <p class="error">{error}</p>}
    </div>
  );
}

const DEVICES: [string, string][] = [["", "as started"], ["cpu", "cpu"], ["vulkan", "vulkan"], ["reference", "reference"]];
const PRECISIONS: [string, string][] = [["", "as started"], ["at-least", "at least"], ["exact", "exact"]];

function Choice({ label, options, value, change }: { label: string; options: [string, string][]; value: string; change: (value: string) => void }) {
  return (
    <label>{label} <select value={value} onChange={(e) => change(e.currentTarget.value)}>
      {options.map(([key, text]) => <option key={key} value={key}>{text}</option>)}
    </select></label>
  );
}

const MOST_ROWS = 500;

function Rows({ state, selected, select }: { state: ValuesState; selected?: ValueFacts; select: (value: ValueFacts) => void }) {
  const [filter, setFilter] = useState("");
  const found = state.found!;
  const text = filter.trim().toLowerCase();
  const rows = found.values.filter((v) => !text || `${v.value} ${v.operation}`.toLowerCase().includes(text));
  // The rows around the first value that differs.
  const start = !text && found.first !== undefined ? Math.max(0, Math.min(found.first - MOST_ROWS / 2, rows.length - MOST_ROWS)) : 0;
  return (
    <section class="card wide">
      <h2>Values</h2>
      <input type="search" placeholder="Filter by name" aria-label="Filter values" value={filter} onInput={(e) => setFilter(e.currentTarget.value)} />
      <div class="scroll" tabIndex={0} role="region" aria-label="Values">
        <table class="plain">
          <thead><tr><th>#</th><th>Value</th><th>Shape</th><th class="figure">Minimum</th><th class="figure">Maximum</th><th class="figure">Mean</th><th class="figure">NaN, infinite</th>{state.compares && <th class="figure">Difference</th>}</tr></thead>
          <tbody>{rows.slice(start, start + MOST_ROWS).map((v) => (
            <tr key={v.index} class={v.index === found.first ? "first" : ""} aria-current={selected === v}>
              <td class="dim">{v.index}</td>
              <td class="long"><button class="link" onClick={() => select(v)}>{v.value}</button>{v.operation !== v.value && <div class="dim small">{v.operation}</div>}</td>
              <td>{v.type} {v.shape.join(" × ")}</td>
              <td class="figure">{number(v.minimum)}</td><td class="figure">{number(v.maximum)}</td><td class="figure">{number(v.mean)}</td>
              <td class={"figure" + (v.nan + v.infinite > 0 ? " error" : "")}>{v.nan + v.infinite > 0 && `${count(v.nan)}, ${count(v.infinite)}`}</td>
              {state.compares && <td class={"figure" + (v.differs ? " error" : "")}>{v.relative !== undefined ? `${number(100 * v.relative)} %` : v.differs ? "form" : ""}</td>}
            </tr>
          ))}</tbody>
        </table>
        {rows.length > MOST_ROWS && <p class="dim">{MOST_ROWS} of {count(rows.length)}</p>}
        {!found.complete && <p class="dim">The prediction computes more values than these.</p>}
      </div>
    </section>
  );
}

interface Props {
  facts: FunctionFacts;
  preview: PreviewState;
  changePreview: (state: PreviewState) => void;
  state: ValuesState;
  change: (state: ValuesState) => void;
}

export function Values({ facts, preview, changePreview, state, change }: Props) {
  const [busy, setBusy] = useState(false);
  const [selected, setSelected] = useState<ValueFacts>();
  const setting = state.setting ?? { device: "", precision: "" };
  const other = state.other ?? { device: "reference", precision: "" };
  const ready = isComplete(facts, preview.given);
  const compute = async (compares: boolean) => {
    setBusy(true);
    setSelected(undefined);
    const request = { function: facts.name, inputs: preview.given, setting: sent(setting) };
    try {
      const found = await ask<Found>("values", { ...short(request), ...(compares && { other: sent(other) }) });
      found.values.forEach((v, i) => (v.index = i));
      change({ setting, other, request, found, compares });
      if (found.first !== undefined) setSelected(found.values[found.first]);
    } catch (e) {
      change({ setting, other, error: (e as Error).message });
    }
    setBusy(false);
  };
  const { found } = state;
  const first = found?.first === undefined ? undefined : found.values[found.first];
  return (
    <div class="stack values">
      <section class="card">
        <h2>Every value of the prediction</h2>
        {!ready && (
          <p>The inputs are those of Preview, which has none yet. <button onClick={() => {
            const given = { ...preview.given };
            for (const f of facts.inputs) if (!f.optional && !given[f.name]) given[f.name] = { random: true };
            changePreview({ ...preview, given });
          }}>Use random inputs</button></p>
        )}
        <div class="row">
          <Choice label="Device" options={DEVICES} value={setting.device} change={(device) => change({ ...state, setting: { ...setting, device } })} />
          <Choice label="Precision" options={PRECISIONS} value={setting.precision} change={(precision) => change({ ...state, setting: { ...setting, precision } })} />
          <button class="primary" disabled={busy || !ready} onClick={() => compute(false)}>Compute</button>
        </div>
        <div class="row">
          <Choice label="Other device" options={DEVICES} value={other.device} change={(device) => change({ ...state, other: { ...other, device } })} />
          <Choice label="Other precision" options={PRECISIONS} value={other.precision} change={(precision) => change({ ...state, other: { ...other, precision } })} />
          <button disabled={busy || !ready} onClick={() => compute(true)}>Compare</button>
        </div>
        <p class="small" role="status">{busy ? "Computing…" : !found ? "" : !state.compares ? `${count(found.values.length)} values` : first ? (
          <strong class="error">The first value that differs by more than rounding: {first.value}, of operation {first.operation}</strong>
        ) : "No value differs by more than rounding."}</p>
        {state.error && <p class="error">{state.error}</p>}
      </section>
      {selected && state.request && <section class="card"><h2>{selected.operation}</h2><ValueCard value={selected} request={state.request} /></section>}
      {found && <Rows state={state} selected={selected} select={setSelected} />}
    </div>
  );
}
