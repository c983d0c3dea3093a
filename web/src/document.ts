// SPDX-License-Identifier: Apache-2.0
// The data in the page. docs/viewer.md describes it.

export type Kind = "operation" | "input" | "output" | "model" | "block" | "repeat" | "scope" | "port";

export interface GraphNode {
  kind: Kind;
  name: string;
  type: string;
  parent: number;
  rank: number;
  lane: number;
  operations?: number; // of a group
  inputs?: [string, string[]][];
  outputs?: [string, string][];
  values?: [string, string][];
  weights?: number[];
}

export interface Statistics {
  count: number;
  zeros: number;
  nan: number;
  infinite: number;
  bits: number;
  minimum: number;
  maximum: number;
  mean: number;
  deviation: number;
  distinct: number;
  histogram: number[];
}

export interface Weight {
  name: string;
  type: string;
  bytes: number;
  storage: string;
  index: number;
  models?: number[];
  available?: boolean;
  statistics?: Statistics;
  error?: string;
}

export interface Graph {
  name: string;
  nodes: GraphNode[];
  edges: [number, number, string, number?][];
  weights: Weight[];
}

/** An operation of a plan, as reports have it. */
export interface PlannedOperation {
  name: string;
  type: string;
  device: string;
  kernel: string;
  fused: string[];
  refusals: string[];
  units?: { device: string; refusal?: string; remedy?: string; source?: string }[];
  measuredSeconds?: number;
  share?: number;
  roof?: { fraction: number; bound: string };
}

/** The loaded function after the passes, and the steps of its plan. */
export interface Passes {
  graph: Graph;
  operations: PlannedOperation[];
  folded: number;
  operationsInSource: number;
  remarks: { pass: string; text: string }[];
}

export interface Feature {
  name: string;
  type: string;
  kind: string;
  optional: boolean;
  default?: number;
  description?: string;
  dataType?: string;
  shape?: number[];
  shapeRange?: [number, number | null][];
  enumeratedShapes?: number[][];
  width?: number;
  height?: number;
  widthRange?: [number, number | null];
  heightRange?: [number, number | null];
  enumeratedSizes?: [number, number][];
}

export interface FunctionFacts {
  name: string;
  inputs: Feature[];
  outputs: Feature[];
  states: Feature[];
  predictedFeatureName?: string;
  predictedProbabilitiesName?: string;
}

export interface Counts {
  count: number;
  opset?: string;
  byType: Record<string, number>;
}

/** What happens to an input before everything else. */
export interface Preprocessing {
  input: string;
  stored: string;
  channels?: string;
  scale?: number | null | (number | null)[]; // a list: of each channel
  bias?: (number | null)[];
  meanImage?: number;
}

/** A model of a pipeline. */
export interface Part {
  name: string;
  type: string;
  preprocessing?: Preprocessing[];
  models?: Part[];
}

/** What an updatable model learns. */
export interface Update {
  trainingInputs: Feature[];
  layers: { name: string; type: string; parameters: string[] }[];
  losses: { name: string; type: string; input: string; target: string; trainingInput: string }[];
  optimizer?: string;
  parameters: Record<string, { default: number | boolean | null; range?: (number | null)[]; allowed?: number[] }>;
  nearestNeighbors?: { dimensions: number; samples: number; index: string; weighting: string; defaultLabel?: string };
  fault?: string;
}

export interface ModelFacts {
  type: string;
  bytes: number;
  specificationVersion: number;
  requires: string;
  storagePrecision?: string;
  computePrecision?: string;
  availability?: Record<string, string>;
  updatable: boolean;
  update?: Update;
  metadata: { description: string; author: string; license: string; version: string };
  userDefined: Record<string, string>;
  functions: FunctionFacts[];
  defaultFunction: string;
  classLabels?: { type: string; count: number; labels: string[] };
  operations?: Counts;
  layers?: Counts;
  facts?: Record<string, string>;
  preprocessing?: Preprocessing[];
  weights: {
    count: number;
    bytes: number;
    groups: { type: string; storage: string; arrays: number; parameters: number; bytes: number }[];
  };
  models?: Part[];
  faults?: string[];
}

export interface Document {
  moka: string;
  name: string;
  model: ModelFacts;
  graphs: Graph[];
  live?: boolean; // a server answers below this page's address
}

export const model: Document = JSON.parse(document.getElementById("document")!.textContent!);

/** Asks the server, which exists where `model.live` is set. */
export async function ask<T>(what: string, body?: unknown): Promise<T> {
  const answer = await fetch("api/" + what, body === undefined ? {} : { method: "POST", body: JSON.stringify(body) });
  const json = await answer.json();
  if (!answer.ok) throw new Error(json.error ?? answer.statusText);
  return json as T;
}
