// SPDX-License-Identifier: Apache-2.0
import { useEffect, useState } from "preact/hooks";
import { Histogram } from "./chart";
import type { Graph, Statistics, Weight } from "./document";
import { ask, model } from "./document";
import type { Step } from "./placement";
import type { Structure } from "./scene";
import { bytes, count, nameInside, number, percent, seconds, shortType, sizeOf, sourceOf } from "./text";
import { ValueCard, type ValueFacts, type ValuesRequest } from "./values";

function WeightCard({ weight }: { weight: Weight }) {
  const [statistics, setStatistics] = useState<Statistics | undefined>(weight.statistics);
  const [error, setError] = useState(weight.error);
  useEffect(() => {
    setStatistics(weight.statistics);
    setError(weight.error);
    if (weight.statistics || weight.error || !model.live) return;
    let isCurrent = true;
    ask<Statistics>("weight", { index: weight.index, models: weight.models ?? [] })
      .then((s) => {
        weight.statistics = s;
        if (isCurrent) setStatistics(s);
      })
      .catch((e: Error) => isCurrent && setError(e.message));
    return () => { isCurrent = false; };
  }, [weight]);
  return (
    <div class="weight">
      <div class="name" title={weight.name}>{weight.name}</div>
      <div class="dim">{shortType(weight.type)} · {bytes(weight.bytes)} · {weight.storage}</div>
      {error && <p class="error">{error}</p>}
      {statistics && statistics.count > 0 && (
        <>
          <Histogram values={statistics.histogram} from={statistics.minimum} to={statistics.maximum} label={`Distribution of ${weight.name}`} />
          <table class="pairs"><tbody>
            <tr><th scope="row">Range</th><td>{number(statistics.minimum)} … {number(statistics.maximum)}</td></tr>
            <tr><th scope="row">Mean ± deviation</th><td>{number(statistics.mean)} ± {number(statistics.deviation)}</td></tr>
            <tr><th scope="row">Zeros</th><td>{percent(statistics.zeros / statistics.count)}</td></tr>
            <tr><th scope="row">Bits</th><td>{statistics.bits}{statistics.distinct > 0 && `, ${count(statistics.distinct)} different values`}</td></tr>
            {statistics.nan + statistics.infinite > 0 && <tr><th scope="row">NaN, infinite</th><td>{count(statistics.nan)}, {count(statistics.infinite)}</td></tr>}
          </tbody></table>
        </>
      )}
    </div>
  );
}

function Placement({ step }: { step: Step }) {
  return (
    <>
      <h3>Placement and time</h3>
      <table class="pairs"><tbody>
        <tr><th scope="row">Device</th><td>{step.device}</td></tr>
        {step.kernel && <tr><th scope="row">Kernel</th><td>{step.kernel}</td></tr>}
        {step.seconds !== undefined && <tr><th scope="row">Time</th><td>{seconds(step.seconds)}{step.share !== undefined && `, ${percent(step.share)}`}</td></tr>}
        {step.into && <tr><th scope="row">Computed by</th><td>{step.into}</td></tr>}
        {step.fused.length > 0 && <tr><th scope="row">Also computes</th><td>{step.fused.join(", ")}</td></tr>}
        {step.roof && <tr><th scope="row">Of the roof</th><td>{step.roof}</td></tr>}
      </tbody></table>
      {step.refusals.map((text) => <p key={text} class="dim small">{text}</p>)}
    </>
  );
}

interface Props {
  graph: Graph;
  structure: Structure;
  id: number;
  step?: Step;
  values?: Map<string, ValueFacts[]>;
  request?: ValuesRequest;
  select: (id: number) => void;
  toggle: (id: number) => void;
  isOpen: boolean;
}

const MOST_WEIGHTS = 12;

const isTreeNode = (graph: Graph, id: number) => graph.nodes[graph.nodes[id].parent]?.type === "tree";

export function Details({ graph, structure, id, step, values, request, select, toggle, isOpen }: Props) {
  const node = graph.nodes[id];
  const producers = new Map<string, number>();
  for (const e of structure.in[id]) producers.set(graph.edges[e][2], graph.edges[e][0]);
  const users = [...new Set(structure.out[id].map((e) => graph.edges[e][1]))];
  const computed = (node.outputs ?? []).flatMap(([name]) => values?.get(name)?.slice(0, 4) ?? []);
  const label = (n: number) => graph.nodes[n].name || graph.nodes[n].type || graph.nodes[n].kind;
  const path = [...structure.around(id).map(label), node.name];
  return (
    <>
      <h2>{node.kind === "operation" ? node.type || node.name : node.name || node.type}</h2>
      <p class="dim path">{path.map((name, i) => nameInside(name, path[i - 1])).join(" › ")}</p>
      {structure.isGroup(id) && (
        <p><button onClick={() => toggle(id)}>{isOpen ? "Close" : "Open"} ({sizeOf(node)})</button></p>
      )}
      {step && <Placement step={step} />}
      {node.inputs && (
        <>
          <h3>Inputs</h3>
          <table class="pairs"><tbody>{node.inputs.map(([parameter, names]) => (
            <tr key={parameter}>{names[0] !== parameter && <th scope="row">{parameter}</th>}<td colSpan={names[0] === parameter ? 2 : 1}>{names.map((name, i) => (
              <span key={i}>{i > 0 && ", "}{producers.has(name) ? <button class="link" onClick={() => select(producers.get(name)!)}>{name}</button> : name}</span>
            ))}</td></tr>
          ))}</tbody></table>
        </>
      )}
      {node.values && node.values.length > 0 && (
        <>
          <h3>Parameters</h3>
          <table class="pairs"><tbody>{node.values.map(([parameter, text], i) => <tr key={i}><th scope="row">{parameter}</th><td>{text}</td></tr>)}</tbody></table>
        </>
      )}
      {node.outputs && node.outputs.length > 0 && (
        <>
          <h3>Results</h3>
          <table class="pairs"><tbody>{node.outputs.map(([name, type]) => <tr key={name}><th scope="row">{name}</th><td>{shortType(type)}</td></tr>)}</tbody></table>
        </>
      )}
      {request && computed.length > 0 && (
        <>
          <h3>Values of the prediction</h3>
          {computed.map((value) => <ValueCard key={value.index} value={value} request={request} />)}
        </>
      )}
      {node.kind === "operation" && !structure.isGroup(id) && !isTreeNode(graph, id) && (
        <details class="source">
          <summary>Source</summary>
          <pre tabIndex={0} aria-label="Source of the operation">{sourceOf(node)}</pre>
        </details>
      )}
      {users.length > 0 && (
        <>
          <h3>Used by</h3>
          <p class="list">{users.slice(0, 30).map((n, i) => <span key={n}>{i > 0 && ", "}<button class="link" onClick={() => select(n)}>{label(n)}</button></span>)}{users.length > 30 && ` and ${users.length - 30} more`}</p>
        </>
      )}
      {node.weights && (
        <>
          <h3>Weights</h3>
          {node.weights.slice(0, MOST_WEIGHTS).map((w) => <WeightCard key={w} weight={graph.weights[w]} />)}
          {node.weights.length > MOST_WEIGHTS && <p class="dim">{node.weights.length - MOST_WEIGHTS} more</p>}
        </>
      )}
    </>
  );
}
