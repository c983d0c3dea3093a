// SPDX-License-Identifier: Apache-2.0
import { useRef, useState } from "preact/hooks";
import { Answer, Picture, type Output, type Png } from "./answers";
import { Camera } from "./camera";
import { ask, type Feature, type FunctionFacts } from "./document";
import { seconds, shapeOf, sizesOf } from "./text";

/** What the server takes for an input. */
export type Given = { text: string } | { random: true; shape?: number[] } | { file: string; name: string };

interface Prediction {
  seconds: number;
  notes: string[];
  outputs: Output[];
  drawing?: Png & { what: string; found: string[] };
}

/** What the tab shows; it outlives a change of tabs. */
export interface PreviewState {
  given: Record<string, Given>;
  pictures: Record<string, string>; // addresses of dropped pictures, by input
  prediction?: Prediction;
  error?: string;
}

/** The name under which a table is given: its columns are inputs. */
const TABLE = "";

export const isComplete = (facts: FunctionFacts, given: Record<string, Given>) => given[TABLE] !== undefined || facts.inputs.every((f) => f.optional || given[f.name]);

const isTable = (file: File) => /\.(csv|jsonl)$/i.test(file.name);

/** The kind of input that a file is meant for. */
function kindOf(file: File): string | undefined {
  const kinds: Record<string, string> = { image: "Image", audio: "MultiArray", text: "String" };
  return kinds[file.type.split("/")[0]];
}

async function base64(file: Blob): Promise<string> {
  const bytes = new Uint8Array(await file.arrayBuffer());
  let text = "";
  for (let i = 0; i < bytes.length; i += 0x8000) text += String.fromCharCode(...bytes.subarray(i, i + 0x8000));
  return btoa(text);
}

/** The size of random values for an array that has several. */
function SizeChoice({ feature, change }: { feature: Feature; change: (shape?: number[]) => void }) {
  const [text, setText] = useState("");
  const shapes = feature.enumeratedShapes;
  if (shapes)
    return (
      <label class="small">Size <select onChange={(e) => change(shapes[Number(e.currentTarget.value)])}>
        {shapes.map((s, i) => <option key={i} value={i}>{s.join(" × ")}</option>)}
      </select></label>
    );
  const bad = text !== "" && shapeOf(text)?.length !== feature.shape?.length;
  return (
    <label class="small">Size <input type="text" class="size" value={text} placeholder={feature.shape?.join(" x ")} aria-invalid={bad} onInput={(e) => {
      setText(e.currentTarget.value);
      change(shapeOf(e.currentTarget.value));
    }} /> <span class="dim">{sizesOf(feature)}</span></label>
  );
}

function Input({ feature, given, picture, onText, onFile, onFrame, onRandom }: {
  feature: Feature; given?: Given; picture?: string; onText: (text: string) => void; onFile: (file: File) => void;
  onFrame: (file: File) => Promise<void>; onRandom: (shape?: number[]) => void;
}) {
  const [shape, setShape] = useState<number[]>();
  const isFlexible = feature.kind === "MultiArray" && (feature.enumeratedShapes ?? feature.shapeRange) !== undefined;
  const takesText = feature.kind !== "Image";
  const id = "input-" + feature.name;
  return (
    <div class="input">
      <label for={id}><strong>{feature.name}</strong> <span class="dim small">{feature.type}{feature.optional && ", optional"}</span></label>
      <div class="row">
        {takesText && <input id={id} type="text" placeholder={feature.kind === "MultiArray" ? "1, 2, 3 …" : feature.kind === "Dictionary" ? '{"word": 1}' : ""}
          value={given && "text" in given ? given.text : ""} onInput={(e) => onText(e.currentTarget.value)} />}
        <label class="file">File<input id={takesText ? undefined : id} type="file" onChange={(e) => e.currentTarget.files?.[0] && onFile(e.currentTarget.files[0])} /></label>
        {!takesText && <Camera onFrame={onFrame} />}
        <button type="button" onClick={() => onRandom(shape)}>Random</button>
      </div>
      {isFlexible && <SizeChoice feature={feature} change={setShape} />}
      {given && "file" in given && <div class="dim small">{given.name}</div>}
      {given && "random" in given && <div class="dim small">random values{given.shape && `, ${given.shape.join(" × ")}`}</div>}
      {picture && <img class="thumb" src={picture} alt={`Input ${feature.name}`} />}
    </div>
  );
}

export function Preview({ facts, state, change }: { facts: FunctionFacts; state: PreviewState; change: (state: PreviewState) => void }) {
  const [busy, setBusy] = useState(false);
  const [over, setOver] = useState(false);
  const latest = useRef(state);
  latest.current = state;
  const set = (part: Partial<PreviewState>) => {
    latest.current = { ...latest.current, ...part };
    change(latest.current);
  };

  const predict = async () => {
    setBusy(true);
    const { given } = latest.current;
    try {
      const prediction = await ask<Prediction>("predict", { function: facts.name, inputs: given });
      set({ prediction, error: undefined });
    } catch (e) {
      set({ prediction: undefined, error: (e as Error).message });
    }
    setBusy(false);
  };
  const give = (name: string, value: Given, file?: File) => {
    const pictures = { ...latest.current.pictures };
    delete pictures[name];
    if (file?.type.startsWith("image/")) pictures[name] = URL.createObjectURL(file);
    // A table gives all inputs.
    const { [TABLE]: table, ...others } = latest.current.given;
    set({ given: name === TABLE ? { [TABLE]: value } : { ...others, [name]: value }, pictures: name === TABLE ? {} : pictures });
  };
  const giveFile = async (name: string, file: File) => {
    give(name, { file: await base64(file), name: file.name }, file);
    if (isComplete(facts, latest.current.given)) await predict();
  };
  const drop = async (e: DragEvent) => {
    e.preventDefault();
    setOver(false);
    const file = e.dataTransfer?.files[0];
    if (!file) return;
    if (isTable(file)) return giveFile(TABLE, file);
    // To the first input of the file's kind, or else of any kind but pictures, that has no value.
    const kind = kindOf(file);
    const own = facts.inputs.filter((f) => f.kind === kind);
    const fitting = own.length ? own : facts.inputs.filter((f) => f.kind !== "Image");
    const input = fitting.find((f) => !state.given[f.name]) ?? fitting[0] ?? facts.inputs[0];
    if (input) await giveFile(input.name, file);
  };
  const drawing = state.prediction?.drawing;
  const table = state.given[TABLE];
  return (
    <div class="preview">
      <form class={"card drop" + (over ? " over" : "")} onSubmit={(e) => { e.preventDefault(); predict(); }}
        onDragOver={(e) => { e.preventDefault(); setOver(true); }} onDragLeave={() => setOver(false)} onDrop={drop}>
        <h2>Inputs</h2>
        <p class="dim small">Drop a picture, a sound, a text, a table or an array here, or type values.</p>
        {table && "file" in table && <p class="small">Table: {table.name}</p>}
        {facts.inputs.map((f) => (
          <Input key={f.name} feature={f} given={state.given[f.name]} picture={state.pictures[f.name]}
            onText={(text) => {
              const { [TABLE]: table, ...given } = latest.current.given;
              if (text) given[f.name] = { text };
              else delete given[f.name];
              set({ given });
            }}
            onFile={(file) => giveFile(isTable(file) ? TABLE : f.name, file)} onRandom={(shape) => give(f.name, { random: true, ...(shape && { shape }) })}
            onFrame={async (file) => {
              give(f.name, { file: await base64(file), name: file.name });
              if (isComplete(facts, latest.current.given)) await predict();
            }} />
        ))}
        <button class="primary" type="submit" disabled={busy || !isComplete(facts, state.given)}>{busy ? "Predicting…" : "Predict"}</button>
      </form>
      <div class="stack answers" aria-live="polite">
        {state.error && <section class="card"><h2>The prediction failed</h2><p class="error">{state.error}</p></section>}
        {state.prediction && (
          <>
            {drawing && (
              <section class="card"><figure>
                <Picture picture={drawing} label={`The answer as a picture: ${drawing.what}`} />
                {drawing.found.length > 0 && <figcaption class="dim small">{drawing.found.join(", ")}</figcaption>}
              </figure></section>
            )}
            {state.prediction.outputs.map((output) => (
              <section class="card" key={output.name}><h2>{output.name}</h2><Answer output={output} /></section>
            ))}
            <p class="dim small">Predicted in {seconds(state.prediction.seconds)}.{state.prediction.notes.map((note) => ` ${note}.`)}</p>
          </>
        )}
        {!state.prediction && !state.error && <section class="card dim">The answer appears here.</section>}
      </div>
    </div>
  );
}
