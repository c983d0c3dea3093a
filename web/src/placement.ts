// SPDX-License-Identifier: Apache-2.0
// A report's operations, by the names that the graph has.
import type { Graph, PlannedOperation } from "./document";
import { percent, seconds } from "./text";

export interface Report {
  error?: string;
  first?: number;
  load?: { median: number };
  steady?: { median: number; p90: number; p99: number; minimum: number; samples: number[] };
  memory?: Record<string, number>;
  operations?: PlannedOperation[];
  plan?: { predictionSeconds: number; operationsSeconds: number; folded: number };
  remarks?: { pass: string; text: string }[];
}

export interface Step {
  device: string;
  kernel: string;
  seconds?: number;
  share?: number;
  into?: string; // the operation that also computes this one
  fused: string[];
  refusals: string[];
  roof?: string;
}

function refusalsOf(units: NonNullable<PlannedOperation["units"]>): string[] {
  return units
    .filter((u) => u.refusal)
    .map((u) => `${u.device}: ${u.refusal}${u.remedy ? `. Instead: ${u.remedy}` : ""}${u.source ? ` (${u.source})` : ""}`);
}

export function stepsByName(report: { operations?: PlannedOperation[] }): Map<string, Step> {
  const steps = new Map<string, Step>();
  for (const o of report.operations ?? []) {
    const step: Step = {
      device: o.device,
      kernel: o.kernel,
      seconds: o.measuredSeconds,
      share: o.share,
      fused: o.fused,
      refusals: o.units ? refusalsOf(o.units) : o.refusals,
      roof: o.roof && `${percent(o.roof.fraction)} (${o.roof.bound})`,
    };
    // A conversion has the name of the operation that it serves.
    if (o.type !== "convert_layout" && o.type !== "transfer" && !steps.has(o.name)) steps.set(o.name, step);
    for (const name of o.fused)
      if (!steps.has(name)) steps.set(name, { device: o.device, kernel: "", into: o.name, fused: [], refusals: [] });
  }
  return steps;
}

/** The steps of a graph's nodes; those of a group are summed. */
export function stepsOfNodes(graph: Graph, steps: Map<string, Step>): Map<number, Step> {
  const out = new Map<number, Step>();
  graph.nodes.forEach((node, id) => {
    if (node.kind !== "operation") return;
    const step = steps.get(node.name);
    if (!step) return;
    out.set(id, step);
    for (let p = node.parent; p > 0; p = graph.nodes[p].parent) {
      if (!out.has(p)) out.set(p, { device: step.device, kernel: "", fused: [], refusals: [], seconds: 0, share: 0 });
      const sum = out.get(p)!;
      sum.seconds = (sum.seconds ?? 0) + (step.seconds ?? 0);
      sum.share = (sum.share ?? 0) + (step.share ?? 0);
      if (sum.device !== step.device) sum.device = "several devices";
    }
  });
  return out;
}

const DEVICE_HUES: Record<string, number> = { cpu: 212, vulkan: 28, neuralEngine: 142, "neural-engine": 142, reference: 345 };

export function tintOf(step: Step, by: "device" | "time", dark: boolean): { color: string; text: string } {
  const text = step.into ? `in ${step.into}` : step.seconds !== undefined ? `${seconds(step.seconds)}${step.share !== undefined ? " · " + percent(step.share) : ""}` : step.kernel || "no copy";
  if (by === "device") return { color: `hsl(${DEVICE_HUES[step.device] ?? 265} 60% ${dark ? 60 : 50}%)`, text: step.into ? text : `${step.device} · ${text}` };
  // Ten percent of the time is already hot.
  const heat = Math.min(1, Math.sqrt((step.share ?? 0) / 0.15));
  return { color: `hsl(${210 - 205 * heat} ${25 + 60 * heat}% ${dark ? 58 : 60 - 12 * heat}%)`, text };
}
