// SPDX-License-Identifier: Apache-2.0
import type { Feature, Part, Preprocessing } from "./document";
import { model } from "./document";
import { sizesOf } from "./text";

function Features({ title, features }: { title: string; features: Feature[] }) {
  if (features.length === 0) return null;
  return (
    <section class="card wide">
      <h2>{title}</h2>
      <table class="plain">
        <thead><tr><th>Name</th><th>Type</th><th>Description</th></tr></thead>
        <tbody>{features.map((f) => (
          <tr key={f.name}>
            <td><strong>{f.name}</strong>{f.optional && <span class="chip">{f.default === undefined ? "optional" : `optional, by default ${f.default}`}</span>}</td>
            <td>{f.type}{sizesOf(f) && <div class="dim">Sizes: {sizesOf(f)}</div>}</td>
            <td class="dim">{f.description}</td>
          </tr>
        ))}</tbody>
      </table>
    </section>
  );
}

/** The preprocessing of a model and of those inside it, whose names stand before the inputs. */
function preprocessingOf(part: Pick<Part, "preprocessing" | "models">, where = ""): [string, Preprocessing][] {
  return [
    ...(part.preprocessing ?? []).map((p): [string, Preprocessing] => [where + p.input, p]),
    ...(part.models ?? []).flatMap((inner) => preprocessingOf(inner, `${where}${inner.name}: `)),
  ];
}

function PreprocessingTable() {
  const rows = preprocessingOf(model.model);
  if (rows.length === 0) return null;
  return (
    <section class="card wide">
      <h2>Preprocessing</h2>
      <table class="plain">
        <thead><tr><th>Input</th><th>Channels</th><th>Scale</th><th>Bias</th><th>Stored as</th></tr></thead>
        <tbody>{rows.map(([name, p]) => (
          <tr key={name}>
            <td><strong>{name}</strong></td>
            <td>{p.channels}</td>
            <td>{p.meanImage ? "" : [p.scale].flat().join(", ")}</td>
            <td>{p.meanImage ? `minus ${p.meanImage} numbers` : p.bias?.join(", ")}</td>
            <td class="dim">{p.stored}</td>
          </tr>
        ))}</tbody>
      </table>
    </section>
  );
}

export function Predictions() {
  return (
    <div class="stack">
      {model.model.functions.map((f) => (
        <div key={f.name} class="stack">
          {model.model.functions.length > 1 && <h2 class="function">Function {f.name}{f.name === model.model.defaultFunction && <span class="chip">default</span>}</h2>}
          <Features title="Inputs" features={f.inputs} />
          <Features title="Outputs" features={f.outputs} />
          <Features title="States" features={f.states} />
        </div>
      ))}
      <PreprocessingTable />
    </div>
  );
}
