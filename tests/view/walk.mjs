// SPDX-License-Identifier: Apache-2.0
// Opens every model in Chromium as a user would: walks the tabs, drops pictures, sounds, tables and texts, measures, and searches. Fails on messages in the
// console, requests that leave the machine, and serious findings of axe.
// node walk.mjs PROGRAM MODELS SCREENSHOTS EXAMPLES
import { mkdirSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, extname, join, relative } from "node:path";
import { inside, scopes, trees } from "./graphs.mjs";
import { camera, sizes, sound, story, table, text } from "./inputs.mjs";
import { launch } from "./serve.mjs";
import { checkAccess, failures, tab, withPage } from "./visit.mjs";

const [, , program, folder, screenshots, examples] = process.argv;
mkdirSync(screenshots, { recursive: true });

function modelsIn(path) {
  return readdirSync(path, { withFileTypes: true }).flatMap((entry) => {
    const inner = join(path, entry.name);
    if ([".mlmodel", ".mlpackage", ".mlmodelc"].includes(extname(entry.name))) return [inner];
    return entry.isDirectory() ? modelsIn(inner) : [];
  });
}

/** All tabs of a model; returns whether the model predicts. */
async function walk(page, name, isThorough) {
  const shot = (what) => page.screenshot({ path: join(screenshots, `${name}-${what}.png`) });
  const graph = page.getByRole("application");
  await graph.focus();
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("ArrowDown");
  await page.getByRole("complementary", { name: "Details" }).waitFor();
  if (isThorough) await checkAccess(page, `${name}, Structure`);
  await shot("structure");
  if (await page.getByRole("button", { name: "Open all" }).count()) {
    await page.getByRole("button", { name: "Open all" }).click();
    await page.getByRole("button", { name: "Fit" }).click();
    await page.waitForTimeout(100);
    await shot("open");
  }
  await tab(page, "General");
  await page.getByRole("heading", { name: "Model", exact: true }).waitFor();
  if (isThorough) await checkAccess(page, `${name}, General`);
  await shot("general");
  await tab(page, "Predictions");
  await page.getByRole("heading", { name: "Inputs" }).first().waitFor();
  if (isThorough) await checkAccess(page, `${name}, Predictions`);
  await tab(page, "Preview");
  for (const random of await page.getByRole("button", { name: "Random" }).all()) await random.click();
  await page.getByRole("button", { name: "Predict", exact: true }).click();
  const answer = page.getByText(/^Predicted in/);
  const refusal = page.getByRole("heading", { name: "The prediction failed" });
  await answer.or(refusal).waitFor({ timeout: 120000 });
  const predicts = (await refusal.count()) === 0;
  if (isThorough) await checkAccess(page, `${name}, Preview`);
  await shot("preview");
  if (!isThorough) return predicts;
  await tab(page, "Values");
  await page.getByRole("button", { name: "Compute" }).click();
  const values = page.getByRole("status").getByText(/^[\d,]+ values$/);
  await values.or(page.locator("p.error")).waitFor({ timeout: 120000 });
  if ((await values.count()) === 1 && predicts) {
    const rows = page.getByRole("region", { name: "Values" }).getByRole("button");
    // A model that hands its input on computes nothing.
    if ((await values.textContent()) !== "0 values") {
      await rows.last().click();
      await page.locator(".values .weight").waitFor();
    }
  } else if (predicts) {
    failures.push(`${name}: no values: ${await page.locator("p.error").textContent()}`);
  }
  await checkAccess(page, `${name}, Values`);
  await shot("values");
  return predicts;
}

const walker = { browser: await launch(), program, screenshots };
const models = modelsIn(folder);
if (models.length === 0) failures.push(`${folder}: no models`);
let predicting = 0;
for (const [i, model] of models.entries()) {
  const name = relative(folder, model).replaceAll(/[^\w.]+/g, "-");
  const started = Date.now();
  await withPage(walker, model, async (page) => {
    const predicts = await walk(page, name, i % 6 === 0);
    predicting += predicts;
    console.log(`${name}: ${predicts ? "predicts" : "shown"}, ${((Date.now() - started) / 1000).toFixed(1)} s`);
  });
}
const mnist = models.find((m) => basename(m) === "MNIST.mlmodel");
if (mnist) await story(walker, mnist);
const built = mkdtempSync(join(tmpdir(), "moka-view-models-"));
await text(walker, built);
rmSync(built, { recursive: true });
await table(walker, examples + "/rent.mlmodel");
for (const [name, work] of [["nmp.mlpackage", inside], ["nmp.mlpackage", sound], ["RandomForest.mlmodel", trees], ["ImageQualityCP20.mlmodel", scopes], ["Image2Image.mlmodel", camera], ["MyModel.mlpackage", sizes]]) {
  const model = models.find((m) => basename(m) === name);
  if (model) await work(walker, model);
}
await walker.browser.close();
console.log(`${models.length} models, ${predicting} predict; screenshots are in ${screenshots}`);
for (const failure of failures) console.error("FAILED " + failure);
process.exit(failures.length ? 1 : 0);
