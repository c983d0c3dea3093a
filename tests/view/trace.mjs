// SPDX-License-Identifier: Apache-2.0
// Opens a trace in Perfetto's user interface and compares what its trace processor finds with `moka trace summary` and `moka explain`.
// node trace.mjs PROGRAM MODEL PYTHON SCREENSHOTS
import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openTrace, query, servePerfetto } from "./perfetto.mjs";
import { launch } from "./serve.mjs";

const [, , program, model, python, screenshots] = process.argv;
const REPEAT = 5;
const failures = [];
const check = (condition, text) => condition || failures.push(text);
const run = (...args) => execFileSync(program, args, { encoding: "utf8", stdio: ["ignore", "pipe", "inherit"] });
mkdirSync(screenshots, { recursive: true });
const folder = mkdtempSync(join(tmpdir(), "moka-trace-"));
const file = join(folder, "t.pftrace");
run("trace", "-o", file, "--", program, "predict", model, "--input", "random", "--repeat", String(REPEAT));
const { groups } = JSON.parse(run("trace", "summary", file, "--json"));
const explained = JSON.parse(run("explain", model, "--measure", "--json")).operations;

const perfetto = await servePerfetto(python, file);
const browser = await launch();
try {
  const page = await (await browser.newContext({ viewport: { width: 1400, height: 860 } })).newPage();
  await openTrace(page, perfetto.address);
  const [errors] = await query(page, "select count(*) as n from stats where severity in ('error', 'data_loss') and value > 0", ["n"]);
  check(errors.n === 0, `the trace processor counts ${errors.n} kinds of errors`);
  const slices = await query(
    page,
    `select s.name as name, s.category as kind, t.name as lane, p.name as around, count(*) as n, sum(s.dur) as total, min(s.dur) as least, max(s.depth) as depth,
      sum(ifnull(extract_arg(s.arg_set_id, 'debug.bytes'), 0)) as bytes, extract_arg(s.arg_set_id, 'debug.kernel') as kernel
      from slice s join track t on s.track_id = t.id left join track p on t.parent_id = p.id group by s.name, s.category, t.name, kernel`,
    ["name", "kind", "lane", "around", "n", "total", "least", "depth", "bytes", "kernel"],
  );
  for (const lane of ["Activity", "Data", "Compute"]) check(slices.some((s) => s.lane === lane), `no lane ${lane}`);
  check(slices.every((s) => s.least >= 0), "slices without an end");
  // Lanes, counts, times and bytes are those of the summary.
  for (const g of groups) {
    const found = slices.filter((s) => s.name === g.name && s.kind === g.kind && s.lane === g.lane && (s.kernel ?? "") === g.kernel);
    const sum = (key) => found.reduce((n, s) => n + Number(s[key]), 0);
    check(sum("n") === g.count, `${g.lane} ${g.name}: ${sum("n")} slices in Perfetto, ${g.count} in the summary`);
    check(Math.abs(sum("total") / 1e9 - g.total) < 1e-6, `${g.lane} ${g.name}: ${sum("total") / 1e9} s in Perfetto, ${g.total} s in the summary`);
    check(sum("bytes") === (g.bytes ?? 0), `${g.lane} ${g.name}: ${sum("bytes")} bytes in Perfetto, ${g.bytes} in the summary`);
  }
  // Each operation that explain lists runs once in a prediction, inside a stretch.
  const predictions = slices.filter((s) => s.kind === "predict").reduce((n, s) => n + s.n, 0);
  for (const o of explained) {
    if (!o.kernel || o.note.startsWith("no copy")) continue;
    const found = slices.filter((s) => s.lane === "Compute" && s.name === o.name && s.kernel === o.kernel);
    check(found.reduce((n, s) => n + s.n, 0) === predictions, `${o.name} (${o.kernel}): ${found.map((s) => s.n)} slices for ${predictions} predictions`);
    check(found.every((s) => s.depth > 0), `${o.name} is not inside a stretch`);
  }
  check(predictions >= REPEAT, `${predictions} predictions`);
  const counters = (await query(page, "select distinct t.name as name from counter c join track t on c.track_id = t.id", ["name"])).map((c) => c.name);
  for (const name of ["Memory of the process", "Threads in use", "Predictions running"]) check(counters.includes(name), `no counter ${name}; there are ${counters}`);
  await page.waitForTimeout(1000);
  await page.screenshot({ path: join(screenshots, "perfetto.png") });
  console.log(`Perfetto finds ${slices.reduce((n, s) => n + s.n, 0)} slices in ${slices.length} groups, ${predictions} predictions, counters ${counters.join(", ")}`);
} finally {
  await browser.close();
  perfetto.close();
  rmSync(folder, { recursive: true });
}
for (const failure of failures) console.error("FAILED " + failure);
process.exit(failures.length ? 1 : 0);
