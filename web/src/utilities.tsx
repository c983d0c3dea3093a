// SPDX-License-Identifier: Apache-2.0
// Saves the model under another name, and names the commands that go further.
import { useState } from "preact/hooks";
import { ask, model, type Feature } from "./document";
import { shapeOf, sizesOf } from "./text";

const [, stem, extension] = /^(.*?)(\.[^.]*)?$/.exec(model.name)!;
const isPlain = extension === ".mlmodel" || extension === ".mlpackage";
const isFlexible = (f: Feature) => f.kind === "MultiArray" && (f.shapeRange ?? f.enumeratedShapes) !== undefined;

function SaveAs() {
  const functions = model.model.functions.map((f) => f.name);
  const flexible = functions.length > 1 ? [] : model.model.functions[0]?.inputs.filter(isFlexible) ?? [];
  const [path, setPath] = useState(`${stem}-copy${isPlain ? extension : ".mlpackage"}`);
  const [only, setOnly] = useState("");
  const [sizes, setSizes] = useState<Record<string, string>>({});
  const [busy, setBusy] = useState(false);
  const [written, setWritten] = useState<string>();
  const [error, setError] = useState<string>();
  const save = async () => {
    setBusy(true);
    setWritten(undefined);
    setError(undefined);
    const shapes = Object.entries(sizes).filter(([, text]) => text.trim()).map(([name, text]) => `${name}=${(shapeOf(text) ?? [text]).join("x")}`);
    try {
      setWritten((await ask<{ written: string }>("save", { path, function: only, shapes })).written);
    } catch (e) {
      setError((e as Error).message);
    }
    setBusy(false);
  };
  return (
    <section class="card">
      <h2>Save as</h2>
      <form onSubmit={(e) => { e.preventDefault(); save(); }}>
        <p class="dim small">The ending of the name decides the format: .mlmodel, .mlpackage, .mlmodelc (compiled) or .onnx. Names without a folder are in the folder in which moka view was started.</p>
        <div class="row"><label class="wide-input">File <input type="text" value={path} onInput={(e) => setPath(e.currentTarget.value)} /></label></div>
        {functions.length > 1 && (
          <div class="row"><label>Functions <select value={only} onChange={(e) => setOnly(e.currentTarget.value)}>
            <option value="">all</option>
            {functions.map((name) => <option key={name} value={name}>only {name}</option>)}
          </select></label></div>
        )}
        {flexible.map((f) => (
          <div class="row" key={f.name}><label>Size of {f.name} <input type="text" placeholder="as it is" value={sizes[f.name] ?? ""} onInput={(e) => setSizes({ ...sizes, [f.name]: e.currentTarget.value })} /></label> <span class="dim small">{sizesOf(f)}</span></div>
        ))}
        <div class="row"><button class="primary" type="submit" disabled={busy || !path}>{busy ? "Saving…" : "Save"}</button></div>
        <div role="status">
          {written && <p class="long">Wrote {written}</p>}
          {error && <p class="error long">{error}</p>}
        </div>
      </form>
    </section>
  );
}

const COMMANDS: [string, string][] = [
  ["This page without a server", "moka view MODEL -o model.html"],
  ["Performance report as a page", "moka report MODEL -o report.html"],
  ["What a program does with models", "moka trace -- COMMAND"],
  ["Where each operation runs, and why", "moka explain MODEL --measure"],
  ["Model class for Swift, C++, C or Python", "moka generate MODEL src --language Swift"],
  ["Other names, types, sizes and texts", "moka edit MODEL --rename OLD=NEW -o OUT.mlpackage"],
  ["Smaller weights", "moka compress MODEL --linear 8 -o OUT.mlpackage"],
  ["An encrypted copy", "moka encrypt MODEL -r age1..."],
];

export function Utilities() {
  return (
    <div class="stack">
      <SaveAs />
      <section class="card">
        <h2>In a terminal</h2>
        <table class="plain">
          <thead><tr><th>What</th><th>Command</th></tr></thead>
          <tbody>{COMMANDS.map(([what, command]) => <tr key={what}><td>{what}</td><td class="long"><code>{command.replace("MODEL", /[^\w.-]/.test(model.name) ? `'${model.name}'` : model.name)}</code></td></tr>)}</tbody>
        </table>
      </section>
    </div>
  );
}
