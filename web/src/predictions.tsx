import type { Feature } from "./document";
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
            <td><strong>{f.name}</strong>{f.optional && <span class="chip">optional</span>}</td>
            <td>{f.type}{sizesOf(f) && <div class="dim">Sizes: {sizesOf(f)}</div>}</td>
            <td class="dim">{f.description}</td>
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
    </div>
  );
}
