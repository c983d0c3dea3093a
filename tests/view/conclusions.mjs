// SPDX-License-Identifier: Apache-2.0
// Opens the page of `moka trace conclude -o` without a network: its conclusions lead to their events in the lanes, and axe finds no
// serious fault.
// node conclusions.mjs PROGRAM MODEL SCREENSHOTS
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
const run = (...args) => execFileSync(program, args, { encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] });
mkdirSync(screenshots, { recursive: true });
const folder = mkdtempSync(join(tmpdir(), "moka-conclusions-"));
const trace = join(folder, "t.pftrace"), file = join(folder, "conclusions.html");
const PROCESSES = 4;
run("trace", "-o", trace, "--", "sh", "-c", `for i in $(seq ${PROCESSES}); do "$0" predict "$1" --input random; done`, program, model);
run("trace", "conclude", trace, "-o", file);
const { conclusions } = JSON.parse(run("trace", "conclude", trace, "--json"));
check(conclusions.some((c) => c.text === `loaded ${PROCESSES} times for ${PROCESSES} predictions, by ${PROCESSES} processes: let one process predict`), `the conclusions are ${conclusions.map((c) => c.text)}`);

const browser = await launch();
try {
  for (const colorScheme of ["light", "dark"]) {
    const context = await browser.newContext({ viewport: { width: 1300, height: 860 }, colorScheme, offline: true });
    const page = await context.newPage();
    page.on("console", (m) => check(!["error", "warning"].includes(m.type()), `console: ${m.text()}`));
    page.on("pageerror", (e) => failures.push(e.message));
    page.on("request", (r) => check(r.url() === pathToFileURL(file).href, `request to ${r.url()}`));
    await page.goto(pathToFileURL(file).href);
    const shown = page.locator("#conclusions > li");
    check((await shown.count()) === conclusions.length, `${await shown.count()} conclusions for ${conclusions.length}`);
    for (const [i, c] of conclusions.entries()) check((await shown.nth(i).textContent()).includes(c.text), `conclusion ${i} is not '${c.text}'`);
    // A conclusion leads to its event: the lanes show its time, and its path and thread are told.
    const range = page.locator("#range");
    const whole = await range.textContent();
    const loads = page.locator('[data-rule="loaded-repeatedly"]');
    check((await loads.locator("[data-mark]").count()) === PROCESSES, "there is no button for each load");
    const pixels = () => page.locator("#canvas").evaluate((c) => c.toDataURL());
    const before = await pixels();
    await loads.locator("[data-mark]").nth(1).click();
    check((await range.textContent()) !== whole, "choosing an event does not zoom");
    check((await pixels()) !== before, "choosing an event draws nothing");
    check(/load: .* at .*thread \d+.*path .*shapes/.test(await page.locator("#facts").textContent()), `the event is '${await page.locator("#facts").textContent()}'`);
    await page.screenshot({ path: join(screenshots, `conclusions-${colorScheme}.png`), fullPage: true });
    // Keys and buttons move and zoom.
    await page.locator("#canvas").focus();
    const at = await range.textContent();
    await page.keyboard.press("-");
    check((await range.textContent()) !== at, "'-' does not zoom");
    await page.getByRole("button", { name: "Whole trace" }).click();
    check((await range.textContent()) === whole, "the whole trace does not come back");
    await page.evaluate(axe);
    // The page's policy refuses what axe would fetch; it has nothing to fetch.
    const { violations } = await page.evaluate(() => window.axe.run({ preload: false }));
    for (const v of violations)
      if (["serious", "critical"].includes(v.impact)) failures.push(`${colorScheme}: ${v.id}: ${v.nodes.map((n) => n.html.slice(0, 120)).join(" | ")}`);
    await context.close();
  }
} finally {
  await browser.close();
  rmSync(folder, { recursive: true });
}
for (const failure of failures) console.error("FAILED " + failure);
console.log(`the page of conclusions: ${conclusions.length} conclusions lead to their events`);
process.exit(failures.length ? 1 : 0);
