// SPDX-License-Identifier: Apache-2.0
// Opens the page of `moka report -o` without a network: it sorts, filters, prints, and axe finds no serious fault.
// node report.mjs PROGRAM MODEL SCREENSHOTS
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
const folder = mkdtempSync(join(tmpdir(), "moka-report-"));
const file = join(folder, "report.html");
const saved = join(folder, "report.json");
execFileSync(program, ["report", model, "--threads", "1,2", "--seconds", "0.5", "-o", file, "--save", saved], { stdio: ["ignore", "ignore", "inherit"] });
const operations = JSON.parse(readFileSync(saved, "utf8")).settings[0].operations;

const browser = await launch();
try {
  for (const colorScheme of ["light", "dark"]) {
    const context = await browser.newContext({ viewport: { width: 1400, height: 860 }, colorScheme, offline: true });
    const page = await context.newPage();
    page.on("console", (m) => check(!["error", "warning"].includes(m.type()), `console: ${m.text()}`));
    page.on("pageerror", (e) => failures.push(e.message));
    page.on("request", (r) => check(r.url() === pathToFileURL(file).href, `request to ${r.url()}`));
    await page.goto(pathToFileURL(file).href);
    const rows = page.locator("#operations tbody tr");
    check((await rows.count()) === operations.length, `${await rows.count()} rows for ${operations.length} operations`);
    // The slowest comes first, and a click turns the order.
    const slowest = operations.filter((o) => !o.contains).reduce((a, b) => ((a.measuredSeconds ?? 0) >= (b.measuredSeconds ?? 0) ? a : b));
    check((await rows.first().textContent()).includes(slowest.name), `${await rows.first().textContent()} comes before ${slowest.name}`);
    await page.getByRole("button", { name: /^Time/ }).click();
    check((await rows.last().textContent()).includes(slowest.name), "a click does not turn the order");
    await page.getByRole("searchbox").fill(slowest.kernel);
    check((await rows.count()) === operations.filter((o) => JSON.stringify(o).includes(slowest.kernel)).length, "the search finds other operations");
    await page.getByRole("searchbox").fill("");
    await page.locator("#setting").selectOption("1");
    await page.evaluate(axe);
    // The page's policy refuses what axe would fetch; it has nothing to fetch.
    const { violations } = await page.evaluate(() => window.axe.run({ preload: false }));
    for (const v of violations)
      if (["serious", "critical"].includes(v.impact)) failures.push(`${colorScheme}: ${v.id}: ${v.nodes.map((n) => n.html.slice(0, 120)).join(" | ")}`);
    await page.screenshot({ path: join(screenshots, `report-${colorScheme}.png`), fullPage: true });
    if (colorScheme === "light") {
      const pages = (await page.pdf({ format: "A4" })).toString("latin1").match(/\/Type\s*\/Page\b/g) ?? [];
      check(pages.length > 0, "the page does not print");
      await page.emulateMedia({ media: "print" });
      check(!(await page.locator(".tools").isVisible()), "printing shows the search");
      await page.screenshot({ path: join(screenshots, "report-print.png") });
    }
    await context.close();
  }
} finally {
  await browser.close();
  rmSync(folder, { recursive: true });
}
for (const failure of failures) console.error("FAILED " + failure);
console.log(`the report's page: ${operations.length} operations, sorted, searched and printed`);
process.exit(failures.length ? 1 : 0);
