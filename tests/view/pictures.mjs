// SPDX-License-Identifier: Apache-2.0
// The pictures of the README and of docs/seeing.md: a report, a capture, a trace in Perfetto, conclusions, and the viewer.
// node pictures.mjs PROGRAM MODEL PYTHON OUT
import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { pathToFileURL } from "node:url";
import { openTrace, servePerfetto } from "./perfetto.mjs";
import { launch, serveModel } from "./serve.mjs";

const [, , program, model, python, out] = process.argv;
const run = (...args) => execFileSync(program, args, { stdio: ["ignore", "ignore", "inherit"] });
mkdirSync(out, { recursive: true });
const folder = mkdtempSync(join(tmpdir(), "moka-pictures-"));
const report = join(folder, "report.html");
const capture = join(folder, "capture.html");
const trace = join(folder, "t.pftrace");
run("report", model, "--threads", "1,2", "-o", report);
run("capture", model, "--device", "vulkan", "-o", capture);
run("trace", "-o", trace, "--", program, "predict", model, "--input", "random", "--repeat", "2");
const repeated = join(folder, "repeated.pftrace"), conclusions = join(folder, "conclusions.html");
run("trace", "-o", repeated, "--", "sh", "-c", 'for i in 1 2 3 4 5 6; do "$0" predict "$1" --input random; done', program, model);
run("trace", "conclude", repeated, "-o", conclusions);

const browser = await launch();
const perfetto = await servePerfetto(python, trace);
const server = await serveModel(program, model);
const newPage = async (height) => (await browser.newContext({ viewport: { width: 1200, height }, deviceScaleFactor: 1 })).newPage();
try {
  const first = await newPage(820);
  await first.goto(pathToFileURL(report).href);
  await first.screenshot({ path: join(out, "report.png") });

  const captured = await newPage(900);
  await captured.goto(pathToFileURL(capture).href);
  await captured.getByRole("button", { name: "Time", exact: true }).click();
  await captured.locator("#kind").selectOption("dispatch");
  await captured.locator("#commands tbody tr.command").first().getByRole("button").click();
  await captured.screenshot({ path: join(out, "capture.png") });

  const second = await newPage(560);
  await openTrace(second, perfetto.address);
  await second.getByText(basename(model), { exact: true }).first().click();
  await second.waitForTimeout(1500);
  await second.screenshot({ path: join(out, "trace.png") });

  const page = await newPage(720);
  await page.goto(pathToFileURL(conclusions).href);
  await page.locator("[data-mark]").nth(2).click();
  await page.getByRole("button", { name: "Whole trace" }).click();
  await page.screenshot({ path: join(out, "conclusions.png") });

  const third = await newPage(680);
  await third.goto(server.address);
  await third.getByRole("tab", { name: "Performance" }).click();
  await third.getByRole("button", { name: "Measure" }).click();
  await third.getByRole("heading", { name: "Operations" }).waitFor({ timeout: 120000 });
  await third.getByRole("tab", { name: "Structure" }).click();
  await third.getByLabel("Colors").selectOption("time");
  await third.getByRole("searchbox", { name: "Search operations" }).fill("conv");
  await third.keyboard.press("Enter");
  await third.getByRole("complementary", { name: "Details" }).waitFor();
  await third.getByRole("searchbox", { name: "Search operations" }).fill("");
  await third.locator(".details .chart canvas").first().waitFor();
  await third.screenshot({ path: join(out, "viewer.png") });
} finally {
  await browser.close();
  perfetto.close();
  server.close();
  rmSync(folder, { recursive: true });
}
