// SPDX-License-Identifier: Apache-2.0
// Helpers of all walks: a page with its own server for each model, the errors that it reports, and accessibility.
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { serveModel } from "./serve.mjs";

const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

/** What went wrong on any page. */
export const failures = [];

export const tab = (page, name) => page.getByRole("tab", { name }).click();

/** Calls work(page, folder) with a page of a server of its own for the model, which runs in a folder of its own. */
export async function withPage({ browser, program }, model, work) {
  const folder = mkdtempSync(join(tmpdir(), "moka-view-test-"));
  const server = await serveModel(program, model, { cwd: folder });
  const { address } = server;
  const context = await browser.newContext({ viewport: { width: 1400, height: 860 } });
  try {
    const page = await context.newPage();
    page.on("console", (m) => {
      // The browser reports refused requests by itself; the page shows their reason.
      if (m.type() === "error" && /status of 400/.test(m.text())) return;
      if (["error", "warning"].includes(m.type())) failures.push(`${model}: console: ${m.text()}`);
    });
    page.on("pageerror", (e) => failures.push(`${model}: ${e.message}`));
    page.on("request", (r) => {
      if (!r.url().startsWith(address) && !/^(data|blob):/.test(r.url())) failures.push(`${model}: request to ${r.url()}`);
    });
    await page.goto(address);
    await work(page, folder);
  } catch (e) {
    failures.push(`${model}: ${e.message}`);
  } finally {
    await context.close();
    server.close();
    rmSync(folder, { recursive: true });
  }
}

export async function checkAccess(page, where) {
  await page.evaluate(axe);
  const { violations } = await page.evaluate(() => window.axe.run());
  for (const v of violations)
    if (["serious", "critical"].includes(v.impact)) failures.push(`${where}: ${v.id}: ${v.nodes.map((n) => n.html.slice(0, 120)).join(" | ")}`);
}
