// SPDX-License-Identifier: Apache-2.0
// Outputs by their form. The server draws pictures, maps and what the answer means.
import { useMemo, useState } from "preact/hooks";
import { Bars } from "./chart";
import { model } from "./document";
import { count, floatsOf, number } from "./text";

export interface ArrayFacts {
  type: string;
  shape: number[];
  minimum: number;
  maximum: number;
  mean: number;
  finite: number;
  nan: number;
  infinite: number;
}

/** An array with its elements, of which there may be more, or with its planes as heat maps. */
export interface ArrayShown extends ArrayFacts {
  data?: string;
  maps?: Png & { planes: number; shown: number };
}

export type Output = { name: string } & (
  | { form: "number"; value: number | null }
  | { form: "text"; text: string }
  | { form: "list"; items: (string | number)[] }
  | { form: "classes"; entries: [string, number | null][] }
  | ({ form: "image" } & Png)
  | ({ form: "array" } & ArrayShown)
);

export interface Png {
  width: number;
  height: number;
  png: string;
}

export function Picture({ picture, label }: { picture: Png; label: string }) {
  return <img class="picture" src={"data:image/png;base64," + picture.png} width={picture.width} height={picture.height} alt={label} />;
}

const MOST_ROWS = 20;

/** An array: a table when it is short, bars of the largest when it counts classes, maps when it has planes. */
export function ArrayView({ array, label }: { array: ArrayShown; label: string }) {
  const values = useMemo(() => (array.data === undefined ? undefined : floatsOf(array.data)), [array]);
  const facts = (
    <p class="dim small">{array.type} {array.shape.join(" × ")} · {number(array.minimum)} … {number(array.maximum)}, mean {number(array.mean)}
      {array.nan + array.infinite > 0 && <strong class="error"> · {count(array.nan)} NaN, {count(array.infinite)} infinite</strong>}
    </p>
  );
  if (array.maps)
    return (
      <>
        {facts}
        <Picture picture={array.maps} label={`Heat maps of ${label}`} />
        {array.maps.planes > array.maps.shown && <p class="dim small">The first {array.maps.shown} of {count(array.maps.planes)} planes</p>}
      </>
    );
  if (!values) return facts;
  const all = array.shape.reduce((product, d) => product * d, 1);
  const shape = array.shape.filter((d) => d !== 1);
  const labels = model.model.classLabels?.labels;
  if (shape.length <= 1 && labels && labels.length === values.length) {
    const rank = (i: number) => (Number.isNaN(values[i]) ? -Infinity : values[i]);
    const order = [...values.keys()].sort((a, b) => (rank(a) === rank(b) ? a - b : rank(b) - rank(a))).slice(0, 10);
    return <>{facts}<Bars rows={order.map((i) => ({ name: labels[i], value: values[i], text: number(values[i]) }))} /></>;
  }
  const columns = shape.length >= 2 ? shape[shape.length - 1] : 1;
  if (columns <= 12) {
    const rows = Math.min(all / columns, MOST_ROWS);
    return (
      <>
        {facts}
        <table class="plain numbers"><tbody>{Array.from({ length: rows }, (_, r) => (
          <tr key={r}><th scope="row">{r}</th>{Array.from({ length: columns }, (_, k) => <td key={k} class="figure">{number(values[r * columns + k])}</td>)}</tr>
        ))}</tbody></table>
        {all / columns > rows && <p class="dim small">The first {rows} of {count(all / columns)} rows</p>}
      </>
    );
  }
  return <>{facts}<p class="figures">{[...values.slice(0, 60)].map(number).join("  ")}{all > 60 && " …"}</p></>;
}

export function Answer({ output }: { output: Output }) {
  const [all, setAll] = useState(false);
  switch (output.form) {
    case "number": return <p class="result">{number(output.value)}</p>;
    case "text": return <p class="result">{output.text}</p>;
    case "list": return <p>{output.items.slice(0, 200).join(", ")}</p>;
    case "image": return <Picture picture={output} label={`Output ${output.name}`} />;
    case "array": return <ArrayView array={output} label={output.name} />;
    case "classes": {
      const shown = output.entries.slice(0, all ? 1000 : 10);
      return (
        <>
          <Bars rows={shown.map(([name, value]) => ({ name, value, text: number(value) }))} />
          {!all && output.entries.length > 10 && <button onClick={() => setAll(true)}>All {count(output.entries.length)}</button>}
        </>
      );
    }
  }
}
