// SPDX-License-Identifier: Apache-2.0
import { useEffect, useRef } from "preact/hooks";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { number } from "./text";

interface Props {
  values: number[];
  from: number; // the first bar's left end
  to: number;
  label: string;
}

/** Bars of equal width between two numbers. */
export function Histogram({ values, from, to, label }: Props) {
  const holder = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const element = holder.current!;
    const style = getComputedStyle(element);
    const width = to > from ? to - from : 1;
    const x = values.map((_, i) => from + ((i + 0.5) / values.length) * width);
    const axis = { stroke: style.getPropertyValue("--dim"), grid: { show: false }, ticks: { show: false }, font: "11px system-ui" };
    const plot = new uPlot(
      {
        width: element.clientWidth || 280,
        height: 120,
        cursor: { show: false },
        legend: { show: false },
        scales: { x: { time: false, range: [from, from + width] }, y: { range: (_, __, most) => [0, most || 1] } },
        axes: [{ ...axis, size: 24, space: 70, values: (_, ticks) => ticks.map(number) }, { ...axis, show: false }],
        series: [{}, { fill: style.getPropertyValue("--accent"), width: 0, points: { show: false }, paths: uPlot.paths.bars!({ size: [1, 100], gap: 1 }) }],
      },
      [x, values],
      element,
    );
    return () => plot.destroy();
  }, [values, from, to]);
  return <div class="chart" ref={holder} role="img" aria-label={label} />;
}

interface BarsProps {
  rows: { name: string; value: number | null; text: string }[];
  color?: (name: string) => string;
}

export function Bars({ rows, color }: BarsProps) {
  const lengths = rows.map((row) => (Number.isFinite(row.value) ? Math.max(row.value!, 0) : 0));
  const most = Math.max(...lengths, 0) || 1;
  return (
    <table class="bars">
      <tbody>
        {rows.map((row, i) => (
          <tr key={row.name}>
            <th scope="row" title={row.name}>{row.name}</th>
            <td class="bar"><span style={{ width: `${Math.max(0.5, (100 * lengths[i]) / most)}%`, background: color?.(row.name) }} /></td>
            <td class="figure">{row.text}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}
