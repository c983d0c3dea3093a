// SPDX-License-Identifier: Apache-2.0
import { render } from "preact";
import { useEffect, useMemo, useState } from "preact/hooks";
import { ask, model, type Passes } from "./document";
import { General } from "./general";
import { Performance } from "./performance";
import { stepsByName, type Report } from "./placement";
import { Predictions } from "./predictions";
import { Preview, type PreviewState } from "./preview";
import { StructureTab, type Shown } from "./structure";
import "./style.css";
import { bytes, count } from "./text";
import { Utilities } from "./utilities";
import { Values, type ValuesState } from "./values";

type Tab = "General" | "Structure" | "Predictions" | "Preview" | "Values" | "Performance" | "Utilities";
const TABS: Tab[] = ["General", "Structure", "Predictions"];
// These ask the server.
if (model.live) TABS.push("Preview", "Values", "Performance", "Utilities");

function useDark(): boolean {
  const query = matchMedia("(prefers-color-scheme: dark)");
  const [dark, setDark] = useState(query.matches);
  useEffect(() => {
    const change = () => setDark(query.matches);
    query.addEventListener("change", change);
    return () => query.removeEventListener("change", change);
  }, []);
  return dark;
}

function App() {
  const fromAddress = TABS.find((t) => "#" + t.toLowerCase() === location.hash);
  const [tab, setTab] = useState<Tab>(fromAddress ?? "Structure");
  const [shown, setShown] = useState(() => Math.max(0, model.graphs.findIndex((g) => g.name === model.model.defaultFunction)));
  const [preview, setPreview] = useState<PreviewState>({ given: {}, pictures: {} });
  const [values, setValues] = useState<ValuesState>({});
  const [report, setReport] = useState<Report>();
  const [passes, setPasses] = useState<Passes>();
  const [graph, setGraph] = useState<Shown>("file");
  const [note, setNote] = useState<string>();
  const steps = useMemo(() => {
    const found = report?.operations ? report : passes;
    return found && stepsByName(found);
  }, [report, passes]);
  const dark = useDark();
  const facts = model.model.functions.find((f) => f.name === model.graphs[shown].name) ?? model.model.functions[0];
  const choose = (t: Tab) => {
    setTab(t);
    // In a notebook's frame the address is not the page's own.
    if (location.protocol !== "about:") history.replaceState(null, "", "#" + t.toLowerCase());
  };
  const show = async (which: Shown) => {
    setNote(undefined);
    if (which === "passes" && !passes) {
      setNote("Loading the model…");
      try {
        setPasses(await ask<Passes>("passes", { function: model.graphs[shown].name }));
        setNote(undefined);
      } catch (e) {
        setNote(`The passes cannot run: ${(e as Error).message}`);
        return;
      }
    }
    setGraph(which);
  };
  const summary = graph === "passes" && passes ? `${count(passes.graph.nodes[0].operations ?? 0)} operations of ${count(passes.operationsInSource)}${passes.folded ? `, ${count(passes.folded)} computed while loading` : ""}` : undefined;
  const arrows = (e: KeyboardEvent) => {
    const step = e.key === "ArrowRight" ? 1 : e.key === "ArrowLeft" ? -1 : 0;
    if (!step) return;
    const next = TABS[(TABS.indexOf(tab) + step + TABS.length) % TABS.length];
    choose(next);
    document.getElementById("tab-" + next)?.focus();
  };
  return (
    <>
      <header>
        <h1 title={model.name}>{model.name}</h1>
        <span class="chip">{model.model.type}</span>
        <span class="chip">{bytes(model.model.bytes)}</span>
        <div role="tablist" aria-label="Views" onKeyDown={arrows}>
          {TABS.map((t) => (
            <button key={t} id={"tab-" + t} role="tab" aria-selected={t === tab} aria-controls="panel" tabIndex={t === tab ? 0 : -1} onClick={() => choose(t)}>{t}</button>
          ))}
        </div>
        {tab !== "General" && tab !== "Predictions" && model.graphs.length > 1 && (
          <label class="function-choice">Function <select value={shown} onChange={(e) => {
            setShown(Number(e.currentTarget.value));
            setPreview({ given: {}, pictures: {} });
            setValues({});
            setReport(undefined);
            setPasses(undefined);
            setGraph("file");
            setNote(undefined);
          }}>
            {model.graphs.map((g, i) => <option key={i} value={i}>{g.name}</option>)}
          </select></label>
        )}
      </header>
      <main id="panel" role="tabpanel" aria-labelledby={"tab-" + tab} class={tab === "Structure" ? "full" : ""} tabIndex={tab === "Structure" ? -1 : 0}>
        {tab === "General" && <General dark={dark} />}
        {tab === "Structure" && <StructureTab graph={graph === "passes" && passes ? passes.graph : model.graphs[shown]} summary={summary} shown={graph} show={show} note={note} dark={dark} steps={steps} values={values} />}
        {tab === "Predictions" && <Predictions />}
        {tab === "Preview" && facts && <Preview facts={facts} state={preview} change={setPreview} />}
        {tab === "Values" && facts && <Values facts={facts} preview={preview} changePreview={setPreview} state={values} change={setValues} />}
        {tab === "Utilities" && <Utilities />}
        {tab === "Performance" && <Performance name={model.graphs[shown].name} report={report} change={setReport} />}
      </main>
    </>
  );
}

document.title = `${model.name} — Moka`;
render(<App />, document.getElementById("app")!);
