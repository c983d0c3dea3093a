// SPDX-License-Identifier: Apache-2.0
// The inputs of a model: files dropped as from a file manager, the camera, and random values of a size.
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { lengthOfName, png, wav } from "./samples.mjs";
import { checkAccess, failures, tab, withPage } from "./visit.mjs";

/** Drops a file on the form, as from a file manager. */
async function drop(page, bytes, name, type) {
  const data = await page.evaluateHandle(
    ([text, fileName, fileType]) => {
      const transfer = new DataTransfer();
      transfer.items.add(new File([Uint8Array.from(atob(text), (c) => c.charCodeAt(0))], fileName, { type: fileType }));
      return transfer;
    },
    [bytes.toString("base64"), name, type],
  );
  await page.dispatchEvent("form.drop", "drop", { dataTransfer: data });
}

/** A drawn 1 dropped on MNIST, its times, and their colors on the graph. */
export async function story(walker, model) {
  await withPage(walker, model, async (page) => {
    await tab(page, "Preview");
    await drop(page, png(28, 28, (x, y) => (x >= 12 && x <= 15 && y >= 4 && y <= 23 ? 255 : 0)), "one.png", "image/png");
    await page.getByText(/^Predicted in/).waitFor();
    const figures = await page.locator(".numbers .figure").allTextContents();
    const best = figures.map(Number).reduce((b, v, i, all) => (v > all[b] ? i : b), 0);
    if (figures.length !== 10 || best !== 1) failures.push(`${model}: the drawn 1 is read as ${figures}`);
    await page.screenshot({ path: join(walker.screenshots, "story-preview.png") });
    await tab(page, "Values");
    await page.getByRole("button", { name: "Compare" }).click();
    await page.getByRole("status").getByText("No value differs by more than rounding").waitFor({ timeout: 120000 });
    await page.getByLabel("Filter values").fill("conv");
    await page.getByRole("region", { name: "Values" }).getByRole("button").first().click();
    await page.getByRole("img", { name: /^Heat maps of/ }).waitFor();
    await checkAccess(page, "MNIST, Values");
    await page.screenshot({ path: join(walker.screenshots, "story-values.png"), fullPage: true });
    await tab(page, "Performance");
    await page.getByRole("button", { name: "Measure" }).click();
    await page.getByRole("heading", { name: "Operations" }).waitFor({ timeout: 120000 });
    await checkAccess(page, "MNIST, Performance");
    await page.screenshot({ path: join(walker.screenshots, "story-performance.png") });
    await tab(page, "Structure");
    await page.getByLabel("Colors").selectOption("values");
    await page.waitForTimeout(100);
    await page.screenshot({ path: join(walker.screenshots, "story-structure-values.png") });
    await page.getByLabel("Colors").selectOption("time");
    await page.getByRole("searchbox", { name: "Search operations" }).fill("conv");
    await page.getByRole("status").getByText("found").waitFor();
    await page.keyboard.press("Enter");
    const details = page.getByRole("complementary", { name: "Details" });
    await details.getByRole("rowheader", { name: "kernelSize" }).waitFor();
    await details.getByText("Kernel", { exact: true }).waitFor();
    await details.locator(".chart canvas").first().waitFor();
    await checkAccess(page, "MNIST, Structure with times");
    await page.screenshot({ path: join(walker.screenshots, "story-structure.png") });
    await page.emulateMedia({ colorScheme: "dark" });
    await page.waitForTimeout(200);
    await checkAccess(page, "MNIST, dark");
    await page.screenshot({ path: join(walker.screenshots, "story-dark.png") });
  });
}

/** A table's first row dropped on a model of several inputs. */
export async function table(walker, model) {
  await withPage(walker, model, async (page) => {
    await tab(page, "Preview");
    await drop(page, Buffer.from("rooms,area,kilometres\n3,70,5\n1,20,0\n"), "flats.csv", "text/csv");
    await page.getByText(/^Predicted in .*Using the first of 2 rows/).waitFor();
    // The model was fitted to 150 + 40 rooms + 11 area - 18 kilometres.
    const rent = Number((await page.locator(".answers .result").textContent()).replaceAll(",", ""));
    if (Math.abs(rent - 950) > 1e-3) failures.push(`${model}: the dropped table costs ${rent}, expected 950`);
    await checkAccess(page, `${model}, a table`);
    await page.screenshot({ path: join(walker.screenshots, "drop-table.png") });
    // A value that is typed replaces the table.
    await page.getByLabel(/^rooms/).fill("4");
    if (!(await page.getByRole("button", { name: "Predict", exact: true }).isDisabled())) failures.push(`${model}: the table stays behind a typed value`);
  });
}

/** Where the brightest column of a heat map is, from 0 to 1. Runs in the page. */
function brightestColumn(image) {
  const canvas = document.createElement("canvas");
  const { naturalWidth: width, naturalHeight: height } = image;
  [canvas.width, canvas.height] = [width, height];
  const c = canvas.getContext("2d");
  c.drawImage(image, 0, 0);
  const sums = Array(width).fill(0);
  c.getImageData(0, 0, width, height).data.forEach((value, i) => (sums[(i >> 2) % width] += value));
  const border = 12;
  return (sums.indexOf(Math.max(...sums)) + 0.5 - border) / (width - 2 * border);
}

/** A tone of 440 Hz dropped on a model that transcribes notes: the map of notes is hottest at key 48 of a piano's 88. */
export async function sound(walker, model) {
  await withPage(walker, model, async (page) => {
    await tab(page, "Preview");
    await drop(page, wav(22050, 1.5, 440), "tone.wav", "audio/wav");
    await page.getByText(/^Predicted in .*tone\.wav: 33075 samples, \d+ of silence added/).waitFor({ timeout: 60000 });
    const maps = await page.getByRole("img", { name: /^Heat maps of/ }).all();
    const keys = await Promise.all(maps.map((map) => map.evaluate(brightestColumn)));
    if (keys.length !== 3 || keys.some((key) => Math.floor(88 * key) !== 48)) failures.push(`${model}: the dropped tone is heard at ${keys}, expected key 48 of 88`);
    await page.screenshot({ path: join(walker.screenshots, "drop-sound.png"), fullPage: true });
  });
}

/** A text dropped on it, and a table whose cell looks like a file. */
export async function text(walker, folder) {
  const model = join(folder, "Names.mlmodel");
  writeFileSync(model, lengthOfName());
  await withPage(walker, model, async (page) => {
    await tab(page, "Preview");
    await drop(page, Buffer.from("eleven"), "name.txt", "text/plain");
    await page.getByText(/^Predicted in/).waitFor();
    const length = page.locator(".answers .result");
    if ((await length.textContent()) !== "6") failures.push(`${model}: the dropped text has the answer ${await length.textContent()}, expected 6`);
    await page.screenshot({ path: join(walker.screenshots, "drop-text.png") });
    writeFileSync(join(folder, "secret.txt"), "three");
    await drop(page, Buffer.from(`name\n@${join(folder, "secret.txt")}\n`), "names.csv", "text/csv");
    await length.getByText("0", { exact: true }).waitFor();
  });
}

/** The camera predicts one picture after another. */
export async function camera(walker, model) {
  await withPage(walker, model, async (page) => {
    await tab(page, "Preview");
    await page.getByRole("button", { name: "Camera" }).click();
    const answer = page.getByText(/^Predicted in/);
    await answer.waitFor({ timeout: 60000 });
    const picture = page.locator(".answers img").first();
    const first = await picture.getAttribute("src");
    await page.waitForFunction((src) => document.querySelector(".answers img")?.getAttribute("src") !== src, first, { timeout: 60000 });
    await page.screenshot({ path: join(walker.screenshots, "camera.png") });
    await page.getByRole("button", { name: "Stop the camera" }).click();
    await page.getByRole("button", { name: "Camera", exact: true }).waitFor();
  });
}

/** Random values of a size that a flexible input allows. */
export async function sizes(walker, model) {
  await withPage(walker, model, async (page) => {
    await tab(page, "Preview");
    await page.getByLabel("Size").first().fill("3 x 1");
    await page.getByRole("button", { name: "Random" }).first().click();
    await page.getByRole("button", { name: "Predict", exact: true }).click();
    await page.getByText(/^Predicted in/).waitFor({ timeout: 60000 });
    await page.getByText(/float\d+ 3 × 1 /).first().waitFor();
  });
}
