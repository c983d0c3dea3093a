// SPDX-License-Identifier: Apache-2.0
import type { Feature, GraphNode } from "./document";

export function bytes(count: number): string {
  for (const [unit, size] of [["GB", 1e9], ["MB", 1e6], ["kB", 1e3]] as const)
    if (count >= size) return `${+(count / size).toPrecision(3)} ${unit}`;
  return `${count} B`;
}

export function seconds(s: number): string {
  for (const [unit, size] of [["s", 1], ["ms", 1e-3], ["µs", 1e-6]] as const)
    if (s >= size) return `${+(s / size).toPrecision(3)} ${unit}`;
  return `${Math.round(s * 1e9)} ns`;
}

/** JSON has null for NaN and infinity. */
export function number(v: number | null): string {
  if (v === null) return "not finite";
  if (!Number.isFinite(v)) return String(v);
  return Number.isInteger(v) && Math.abs(v) < 1e9 ? v.toLocaleString("en-US") : String(+v.toPrecision(5));
}

export const count = (v: number): string => v.toLocaleString("en-US");
export const percent = (v: number): string => `${+(100 * v).toPrecision(3)} %`;

/** MIL's "tensor<fp16, [1, 3]>" as "fp16 1×3". */
export function shortType(type: string): string {
  const m = /^tensor<(\w+), \[([^\]]*)\]>$/.exec(type);
  return m ? `${m[1]} ${m[2].split(", ").join("×") || "scalar"}` : type;
}

const FAMILIES: [RegExp, number][] = [
  [/conv|deconv/i, 212],
  [/linear|matmul|einsum|innerProduct|attention|embedding/i, 245],
  [/lstm|gru|rnn|Recurrent/i, 265],
  [/norm/i, 285],
  [/pool|reduce|argmax|topk/i, 172],
  [/relu|sigmoid|tanh|gelu|silu|softmax|softplus|elu|activation|erf|clamp|clip/i, 142],
  [/reshape|transpose|permute|concat|split|slice|stack|squeeze|expand|flatten|gather|scatter|pad|tile|cast|upsample|resize|crop/i, 28],
  [/cond|while|loop|list|branch|state/i, 345],
  [/tree|glm|svm|neighbor|vectorizer|encoder|scaler|imputer|pipeline/i, 95],
];

/** The hue of an operation's family; undefined for arithmetic and all others. */
export function hueOf(type: string): number | undefined {
  return FAMILIES.find(([pattern]) => pattern.test(type))?.[1];
}

/** Little-endian float32 in base64. */
export function floatsOf(data: string): Float32Array {
  const text = atob(data);
  const bytes = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) bytes[i] = text.charCodeAt(i);
  return new Float32Array(bytes.buffer);
}

/** What a group holds. */
export const sizeOf = (node: GraphNode): string => `${count(node.operations ?? 0)} ${node.type.startsWith("tree") ? "nodes" : "operations"}`;

/** What a name adds to that of the scope around it: "attention" in "encoder/layer_0". */
export const nameInside = (name: string, around?: string): string => (around && name.startsWith(around) && /[/.]/.test(name[around.length] ?? "") ? name.slice(around.length + 1) : name);

/** The operation as MIL or the specification writes it. */
export function sourceOf(node: GraphNode): string {
  const outputs = node.outputs ?? [];
  if (outputs.some(([, type]) => type)) {
    const given = [
      ...(node.inputs ?? []).map(([parameter, names]) => `${parameter} = ${names.length === 1 ? names[0] : `(${names.join(", ")})`}`),
      ...(node.values ?? []).map(([parameter, text]) => `${parameter} = ${text}`),
    ];
    return `${outputs.map(([name, type]) => `${type} ${name}`).join(",\n")} =\n  ${node.type}(${given.join(",\n    ")})\n  [name = string(${JSON.stringify(node.name)})];`;
  }
  const lines = [`name: ${JSON.stringify(node.name)}`];
  for (const [, names] of node.inputs ?? []) for (const name of names) lines.push(`input: ${JSON.stringify(name)}`);
  for (const [name] of outputs) lines.push(`output: ${JSON.stringify(name)}`);
  const settings = (node.values ?? []).map(([key, text]) => `\n  ${key}: ${text}`).join("");
  return [...lines, `${node.type} {${settings}${settings && "\n"}}`].join("\n");
}

/** "1 × 3 × 64" and "1x3x64" as numbers; undefined for anything else. */
export function shapeOf(text: string): number[] | undefined {
  const parts = text.trim().split(/\s*[x×]\s*/);
  return parts.every((p) => /^[1-9]\d*$/.test(p)) ? parts.map(Number) : undefined;
}

/** The sizes that a flexible feature allows. */
export function sizesOf(f: Feature): string | undefined {
  const range = ([low, high]: [number, number | null]) => (low === high ? String(low) : `${low} … ${high ?? "any"}`);
  if (f.enumeratedShapes) return f.enumeratedShapes.map((s) => s.join(" × ")).join(", ");
  if (f.enumeratedSizes) return f.enumeratedSizes.map((s) => s.join(" × ")).join(", ");
  if (f.shapeRange) return f.shapeRange.map(range).join(" × ");
  if (f.widthRange && f.heightRange) return `${range(f.widthRange)} × ${range(f.heightRange)}`;
  return undefined;
}
