// SPDX-License-Identifier: Apache-2.0
import { Bars } from "./chart";
import { model, type Update } from "./document";
import { familyColor } from "./draw";
import { bytes, count } from "./text";

const SYSTEMS: Record<string, string> = { macCatalyst: "Mac Catalyst" };

function Facts({ rows }: { rows: [string, string | undefined][] }) {
  return (
    <dl class="facts">
      {rows.filter(([, value]) => value).map(([name, value]) => (
        <div key={name}><dt>{name}</dt><dd>{value}</dd></div>
      ))}
    </dl>
  );
}

function Training({ update }: { update: Update }) {
  const neighbors = update.nearestNeighbors;
  const allowed = (p: Update["parameters"][string]) => (p.range ? `${p.range[0]} to ${p.range[1]}` : (p.allowed ?? []).join(", "));
  return (
    <section class="card">
      <h2>Training</h2>
      <Facts rows={[
        ...update.trainingInputs.map((f): [string, string] => [`Input ${f.name}`, f.type]),
        ...update.layers.map((layer): [string, string] => [`Updates ${layer.name}`, layer.type]),
        ...update.losses.map((loss): [string, string] => [`Loss ${loss.name}`, `${loss.type}: ${loss.input} against ${loss.target}`]),
        ["Samples", neighbors && `${count(neighbors.samples)} of ${count(neighbors.dimensions)} dimensions`],
        ["Default label", neighbors?.defaultLabel],
        ["Optimizer", update.optimizer],
      ]} />
      <table class="plain">
        <thead><tr><th>Parameter</th><th class="figure">Default</th><th>Allowed</th></tr></thead>
        <tbody>{Object.entries(update.parameters).map(([name, p]) => (
          <tr key={name}><td>{name}</td><td class="figure">{String(p.default)}</td><td>{allowed(p)}</td></tr>
        ))}</tbody>
      </table>
      {update.fault && <p>It cannot be updated: {update.fault}</p>}
    </section>
  );
}

export function General({ dark }: { dark: boolean }) {
  const m = model.model;
  const counts = m.operations ?? m.layers;
  const labels = m.classLabels;
  const parameters = m.weights.groups.reduce((sum, group) => sum + group.parameters, 0);
  const faults = m.faults ?? [];
  return (
    <div class="columns">
      <section class="card">
        <h2>Model</h2>
        {m.metadata.description && <p class="lead">{m.metadata.description}</p>}
        <Facts rows={[
          ["Type", m.type],
          ["Size", bytes(m.bytes)],
          ["Author", m.metadata.author],
          ["License", m.metadata.license],
          ["Version", m.metadata.version],
          ["Specification", String(m.specificationVersion)],
          ["Available from", m.availability ? Object.entries(m.availability).map(([system, version]) => `${SYSTEMS[system] ?? system} ${version}`).join(", ") : m.requires],
          ["Storage precision", m.storagePrecision],
          ["Compute precision", m.computePrecision],
          ["Operation set", m.operations?.opset],
          ["Updatable", m.updatable ? "yes" : undefined],
          ["Functions", m.functions.length > 1 ? m.functions.map((f) => f.name).join(", ") : undefined],
          ["Models", m.models?.map((part) => `${part.name} (${part.type})`).join(", ")],
          ...Object.entries(m.facts ?? {}),
        ]} />
      </section>
      <section class="card">
        <h2>Weights</h2>
        {m.weights.groups.length === 0 && <p class="dim">None.</p>}
        {m.weights.groups.length > 0 && (
          <>
            <p class="lead">{count(parameters)} parameters in {bytes(m.weights.groups.reduce((sum, g) => sum + g.bytes, 0))}</p>
            <table class="plain">
              <thead><tr><th>Type</th><th>Storage</th><th class="figure">Arrays</th><th class="figure">Parameters</th><th class="figure">Bytes</th></tr></thead>
              <tbody>{m.weights.groups.map((g, i) => (
                <tr key={i}><td>{g.type}</td><td>{g.storage}</td><td class="figure">{count(g.arrays)}</td><td class="figure">{count(g.parameters)}</td><td class="figure">{bytes(g.bytes)}</td></tr>
              ))}</tbody>
            </table>
          </>
        )}
      </section>
      {counts && counts.count > 0 && (
        <section class="card">
          <h2>{m.layers ? "Layers" : "Operations"}</h2>
          <p class="lead">{count(counts.count)} of {Object.keys(counts.byType).length} types</p>
          <Bars rows={Object.entries(counts.byType).map(([name, n]) => ({ name, value: n, text: count(n) }))} color={(name) => familyColor(name, dark)} />
        </section>
      )}
      {m.update && <Training update={m.update} />}
      {labels && (
        <section class="card">
          <h2>Class labels</h2>
          <p class="lead">{count(labels.count)} of type {labels.type}</p>
          <ol class="labels" tabIndex={0} aria-label="Class labels" start={0}>{labels.labels.slice(0, 2000).map((label, i) => <li key={i}>{label}</li>)}</ol>
        </section>
      )}
      {Object.keys(m.userDefined).length > 0 && (
        <section class="card">
          <h2>Metadata</h2>
          <Facts rows={Object.entries(m.userDefined)} />
        </section>
      )}
      {faults.length > 0 && (
        <section class="card">
          <h2>Parts that could not be read</h2>
          <ul>{faults.map((fault) => <li key={fault}>{fault}</li>)}</ul>
        </section>
      )}
    </div>
  );
}
