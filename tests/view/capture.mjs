// SPDX-License-Identifier: Apache-2.0
// Opens the page of `moka capture -o` without a network: it sorts, filters, opens a command with its buffers, and axe finds no serious fault.
// node capture.mjs PROGRAM MODEL SCREENSHOTS
import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { launch } from "./serve.mjs";

const [, , program, model, screenshots] = process.argv;
const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const failures = [];
const check = (condition, text) => condition || failures.push(text);
mkdirSync(screenshots, { recursive: true });
const folder = mkdtempSync(join(tmpdir(), "moka-capture-"));
let shown = 0;

const browser = await launch();
try {
  for (const [device, colorScheme] of [["vulkan", "light"], ["cpu", "dark"]]) {
    const file = join(folder, `${device}.html`);
    const units = device === "cpu" ? ["--compute-units", "cpuOnly"] : ["--device", device];
    execFileSync(program, ["capture", model, ...units, "-o", file, "--values", join(folder, device)], { stdio: ["ignore", "ignore", "inherit"] });
    const { commands } = JSON.parse(readFileSync(join(folder, `${device}.json`), "utf8"));
    shown += commands.length;
    const context = await browser.newContext({ viewport: { width: 1500, height: 900 }, colorScheme, offline: true });
    const page = await context.newPage();
    page.on("console", (m) => check(!["error", "warning"].includes(m.type()), `console: ${m.text()}`));
    page.on("pageerror", (e) => failures.push(e.message));
    page.on("request", (r) => check(r.url() === pathToFileURL(file).href, `request to ${r.url()}`));
    await page.goto(pathToFileURL(file).href);
    const rows = page.locator("#commands tbody tr.command");
    check((await rows.count()) === commands.length, `${await rows.count()} rows for ${commands.length} commands`);
    check((await page.locator("#timeline rect").count()) > 0, "no bar on the timeline");
    // A click on a heading sorts, the slowest first.
    await page.getByRole("button", { name: "Time", exact: true }).click();
    const slowest = commands.reduce((a, b) => ((a.seconds?.median ?? 0) >= (b.seconds?.median ?? 0) ? a : b));
    check((await rows.first().textContent()).includes(slowest.kind), `${await rows.first().textContent()} comes before the slowest, ${slowest.kind}`);
    // The search finds an operation, and its row opens.
    const chosen = commands.find((c) => c.operations.some((o) => o.type === "conv"));
    await page.getByRole("searchbox").fill(chosen.kernels[0]);
    check((await rows.count()) === commands.filter((c) => JSON.stringify(c).includes(chosen.kernels[0])).length, "the search finds other commands");
    await rows.first().getByRole("button").click();
    const details = page.locator("tr.details");
    const text = await details.textContent();
    for (const b of chosen.buffers) check(text.includes(b.value ?? "") && text.includes(String(b.bytes)), `the details lack buffer ${b.name}`);
    for (const f of [...(chosen.constants ?? []), ...(chosen.parameters ?? []), ...(chosen.facts ?? [])]) check(text.includes(f.name) && text.includes(f.value), `the details lack ${f.name}`);
    check((await details.locator("a").count()) === chosen.buffers.filter((b) => b.file).length, "the details name other files");
    check((await details.locator("a").count()) > 0, "no file of a buffer");
    await page.getByRole("searchbox").fill("");
    // A bar of the timeline opens its command.
    await page.locator("#timeline rect").first().click();
    check((await details.count()) === 1, `${await details.count()} open commands after a click on the timeline`);
    await page.evaluate(axe);
    // The page's policy refuses what axe would fetch; it has nothing to fetch.
    const { violations } = await page.evaluate(() => window.axe.run({ preload: false }));
    for (const v of violations)
      if (["serious", "critical"].includes(v.impact)) failures.push(`${device}: ${v.id}: ${v.nodes.map((n) => n.html.slice(0, 120)).join(" | ")}`);
    await page.screenshot({ path: join(screenshots, `capture-${device}.png`), fullPage: true });
    await context.close();
  }
} finally {
  await browser.close();
  rmSync(folder, { recursive: true });
}
for (const failure of failures) console.error("FAILED " + failure);
console.log(`the capture's page: ${shown} commands on two devices, sorted, searched and opened`);
process.exit(failures.length ? 1 : 0);
