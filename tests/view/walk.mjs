// Opens every model in Chromium as a user would: walks the tabs, drops pictures, sounds, tables and texts, measures, and searches. Fails on messages in the
// console, requests that leave the machine, and serious findings of axe.
// node walk.mjs PROGRAM MODELS SCREENSHOTS EXAMPLES
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, extname, join, relative } from "node:path";
import { createRequire } from "node:module";
import { deflateSync } from "node:zlib";
import { launch, serveModel } from "./serve.mjs";

const [, , program, folder, screenshots, examples] = process.argv;
const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const failures = [];
mkdirSync(screenshots, { recursive: true });

function modelsIn(path) {
  return readdirSync(path, { withFileTypes: true }).flatMap((entry) => {
    const inner = join(path, entry.name);
    if ([".mlmodel", ".mlpackage", ".mlmodelc"].includes(extname(entry.name))) return [inner];
    return entry.isDirectory() ? modelsIn(inner) : [];
  });
}

/** A page of a server of its own for the model. */
async function withPage(browser, model, work) {
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

async function checkAccess(page, where) {
  await page.evaluate(axe);
  const { violations } = await page.evaluate(() => window.axe.run());
  for (const v of violations)
    if (["serious", "critical"].includes(v.impact)) failures.push(`${where}: ${v.id}: ${v.nodes.map((n) => n.html.slice(0, 120)).join(" | ")}`);
}

const tab = (page, name) => page.getByRole("tab", { name }).click();

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

/** A PNG of one channel, made here: `pixel` gives 0 to 255. */
function png(width, height, pixel) {
  const table = Array.from({ length: 256 }, (_, n) => {
    for (let k = 0; k < 8; k++) n = n & 1 ? 0xedb88320 ^ (n >>> 1) : n >>> 1;
    return n >>> 0;
  });
  const crc = (data) => {
    let c = 0xffffffff;
    for (const b of data) c = table[(c ^ b) & 255] ^ (c >>> 8);
    return (c ^ 0xffffffff) >>> 0;
  };
  const chunk = (type, data) => {
    const body = Buffer.concat([Buffer.from(type), data]);
    const size = Buffer.alloc(4);
    const sum = Buffer.alloc(4);
    size.writeUInt32BE(data.length);
    sum.writeUInt32BE(crc(body));
    return Buffer.concat([size, body, sum]);
  };
  const head = Buffer.alloc(13);
  head.writeUInt32BE(width, 0);
  head.writeUInt32BE(height, 4);
  head.set([8, 0, 0, 0, 0], 8);
  const rows = Buffer.alloc(height * (width + 1));
  for (let y = 0; y < height; y++) for (let x = 0; x < width; x++) rows[y * (width + 1) + 1 + x] = pixel(x, y);
  return Buffer.concat([Buffer.from("\x89PNG\r\n\x1a\n", "latin1"), chunk("IHDR", head), chunk("IDAT", deflateSync(rows)), chunk("IEND", Buffer.alloc(0))]);
}

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
async function story(browser, model) {
  await withPage(browser, model, async (page) => {
    await tab(page, "Preview");
    await drop(page, png(28, 28, (x, y) => (x >= 12 && x <= 15 && y >= 4 && y <= 23 ? 255 : 0)), "one.png", "image/png");
    await page.getByText(/^Predicted in/).waitFor();
    const figures = await page.locator(".numbers .figure").allTextContents();
    const best = figures.map(Number).reduce((b, v, i, all) => (v > all[b] ? i : b), 0);
    if (figures.length !== 10 || best !== 1) failures.push(`${model}: the drawn 1 is read as ${figures}`);
    await page.screenshot({ path: join(screenshots, "story-preview.png") });
    await tab(page, "Values");
    await page.getByRole("button", { name: "Compare" }).click();
    await page.getByRole("status").getByText("No value differs by more than rounding").waitFor({ timeout: 120000 });
    await page.getByLabel("Filter values").fill("conv");
    await page.getByRole("region", { name: "Values" }).getByRole("button").first().click();
    await page.getByRole("img", { name: /^Heat maps of/ }).waitFor();
    await checkAccess(page, "MNIST, Values");
    await page.screenshot({ path: join(screenshots, "story-values.png"), fullPage: true });
    await tab(page, "Performance");
    await page.getByRole("button", { name: "Measure" }).click();
    await page.getByRole("heading", { name: "Operations" }).waitFor({ timeout: 120000 });
    await checkAccess(page, "MNIST, Performance");
    await page.screenshot({ path: join(screenshots, "story-performance.png") });
    await tab(page, "Structure");
    await page.getByLabel("Colors").selectOption("values");
    await page.waitForTimeout(100);
    await page.screenshot({ path: join(screenshots, "story-structure-values.png") });
    await page.getByLabel("Colors").selectOption("time");
    await page.getByRole("searchbox", { name: "Search operations" }).fill("conv");
    await page.getByRole("status").getByText("found").waitFor();
    await page.keyboard.press("Enter");
    const details = page.getByRole("complementary", { name: "Details" });
    await details.getByRole("rowheader", { name: "kernelSize" }).waitFor();
    await details.getByText("Kernel", { exact: true }).waitFor();
    await details.locator(".chart canvas").first().waitFor();
    await checkAccess(page, "MNIST, Structure with times");
    await page.screenshot({ path: join(screenshots, "story-structure.png") });
    await page.emulateMedia({ colorScheme: "dark" });
    await page.waitForTimeout(200);
    await checkAccess(page, "MNIST, dark");
    await page.screenshot({ path: join(screenshots, "story-dark.png") });
  });
}

/** A table's first row dropped on a model of several inputs. */
async function table(browser, model) {
  await withPage(browser, model, async (page) => {
    await tab(page, "Preview");
    await drop(page, Buffer.from("rooms,area,kilometres\n3,70,5\n1,20,0\n"), "flats.csv", "text/csv");
    await page.getByText(/^Predicted in .*Using the first of 2 rows/).waitFor();
    // The model was fitted to 150 + 40 rooms + 11 area - 18 kilometres.
    const rent = Number((await page.locator(".answers .result").textContent()).replaceAll(",", ""));
    if (Math.abs(rent - 950) > 1e-3) failures.push(`${model}: the dropped table costs ${rent}, expected 950`);
    await checkAccess(page, `${model}, a table`);
    await page.screenshot({ path: join(screenshots, "drop-table.png") });
    // A value that is typed replaces the table.
    await page.getByLabel(/^rooms/).fill("4");
    if (!(await page.getByRole("button", { name: "Predict", exact: true }).isDisabled())) failures.push(`${model}: the table stays behind a typed value`);
  });
}

/** A tone as WAV: one channel, 16 bits. */
function wav(rate, seconds, frequency) {
  const samples = Math.round(rate * seconds);
  const out = Buffer.alloc(44 + 2 * samples);
  out.write("RIFF", 0);
  out.writeUInt32LE(36 + 2 * samples, 4);
  out.write("WAVEfmt ", 8);
  for (const [at, value] of [[16, 16], [24, rate], [28, 2 * rate], [40, 2 * samples]]) out.writeUInt32LE(value, at);
  for (const [at, value] of [[20, 1], [22, 1], [32, 2], [34, 16]]) out.writeUInt16LE(value, at);
  out.write("data", 36);
  for (let i = 0; i < samples; i++) out.writeInt16LE(Math.round(12000 * Math.sin((2 * Math.PI * frequency * i) / rate)), 44 + 2 * i);
  return out;
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
async function sound(browser, model) {
  await withPage(browser, model, async (page) => {
    await tab(page, "Preview");
    await drop(page, wav(22050, 1.5, 440), "tone.wav", "audio/wav");
    await page.getByText(/^Predicted in .*tone\.wav: 33075 samples, \d+ of silence added/).waitFor({ timeout: 60000 });
    const maps = await page.getByRole("img", { name: /^Heat maps of/ }).all();
    const keys = await Promise.all(maps.map((map) => map.evaluate(brightestColumn)));
    if (keys.length !== 3 || keys.some((key) => Math.floor(88 * key) !== 48)) failures.push(`${model}: the dropped tone is heard at ${keys}, expected key 48 of 88`);
    await page.screenshot({ path: join(screenshots, "drop-sound.png"), fullPage: true });
  });
}

/** A model of one text: the length of a number's name. */
function lengthOfName() {
  const varint = (n) => (n < 128 ? [n] : [(n & 127) | 128, ...varint(n >>> 7)]);
  const field = (number, value) => {
    if (typeof value === "number") return Buffer.from([...varint(number << 3), ...varint(value)]);
    const bytes = Buffer.from(value);
    return Buffer.concat([Buffer.from([...varint((number << 3) | 2), ...varint(bytes.length)]), bytes]);
  };
  const message = (number, ...fields) => field(number, Buffer.concat(fields));
  const entry = (name) => message(1, field(1, name), field(2, name.length));
  return Buffer.concat([
    field(1, 1),
    message(2, message(1, field(1, "name"), message(3, message(3))), message(10, field(1, "length"), message(3, message(1)))),
    message(606, message(1, ...["one", "three", "eleven"].map(entry)), field(102, 0)),
  ]);
}

/** A text dropped on it, and a table whose cell looks like a file. */
async function text(browser, folder) {
  const model = join(folder, "Names.mlmodel");
  writeFileSync(model, lengthOfName());
  await withPage(browser, model, async (page) => {
    await tab(page, "Preview");
    await drop(page, Buffer.from("eleven"), "name.txt", "text/plain");
    await page.getByText(/^Predicted in/).waitFor();
    const length = page.locator(".answers .result");
    if ((await length.textContent()) !== "6") failures.push(`${model}: the dropped text has the answer ${await length.textContent()}, expected 6`);
    await page.screenshot({ path: join(screenshots, "drop-text.png") });
    writeFileSync(join(folder, "secret.txt"), "three");
    await drop(page, Buffer.from(`name\n@${join(folder, "secret.txt")}\n`), "names.csv", "text/csv");
    await length.getByText("0", { exact: true }).waitFor();
  });
}

/** What the passes made of a program, its source text, and a copy of it. */
async function inside(browser, model) {
  await withPage(browser, model, async (page, folder) => {
    const status = page.getByRole("status");
    const before = Number((await status.textContent()).replace(/\D/g, ""));
    await page.getByRole("combobox", { name: "Graph" }).selectOption("passes");
    await status.getByText(" operations of ").waitFor({ timeout: 120000 });
    const [after, of] = (await status.textContent()).match(/[\d,]+/g).map((n) => Number(n.replace(",", "")));
    if (!(after < of && after > 0 && of === before)) failures.push(`${model}: ${after} operations of ${of} after the passes, ${before} in the file`);
    await page.getByRole("searchbox", { name: "Search operations" }).fill("conv");
    await page.keyboard.press("Enter");
    const details = page.getByRole("complementary", { name: "Details" });
    await details.getByText("Kernel", { exact: true }).waitFor();
    await details.getByText("Source", { exact: true }).click();
    await details.getByText("[name = string(").waitFor();
    await checkAccess(page, `${model}, after the passes`);
    await page.screenshot({ path: join(screenshots, "passes.png") });
    await tab(page, "Utilities");
    await page.getByLabel("File", { exact: true }).fill("copy.mlpackage");
    await page.getByRole("button", { name: "Save" }).click();
    await page.getByRole("status").getByText("Wrote ").waitFor({ timeout: 60000 });
    if (!existsSync(join(folder, "copy.mlpackage", "Manifest.json"))) failures.push(`${model}: no copy was saved`);
    await page.getByRole("button", { name: "Save" }).click();
    await page.getByRole("status").getByText("exists already").waitFor();
    await checkAccess(page, `${model}, Utilities`);
    await page.screenshot({ path: join(screenshots, "utilities.png") });
  });
}

/** The scopes of names open and close as groups. */
async function scopes(browser, model) {
  await withPage(browser, model, async (page) => {
    const search = page.getByRole("searchbox", { name: "Search operations" });
    await page.screenshot({ path: join(screenshots, "scopes-closed.png") });
    await search.fill("dense_71");
    await page.keyboard.press("Enter");
    const details = page.getByRole("complementary", { name: "Details" });
    await details.getByText("sequential_35 › dense_71 › BiasAdd", { exact: true }).waitFor();
    await page.getByRole("list", { name: "Found operations" }).getByRole("button", { name: "scope sequential_35/dense_71", exact: true }).click();
    await details.getByRole("button", { name: "Close (2 operations)" }).click();
    await details.getByRole("button", { name: "Open (2 operations)" }).click();
    await checkAccess(page, `${model}, scopes`);
    await search.fill("");
    await page.screenshot({ path: join(screenshots, "scopes.png") });
  });
}

/** The trees of an ensemble open, and a tree in them. */
async function trees(browser, model) {
  await withPage(browser, model, async (page) => {
    const search = page.getByRole("searchbox", { name: "Search operations" });
    await search.fill("tree 1");
    await page.keyboard.press("Enter");
    const details = page.getByRole("complementary", { name: "Details" });
    await details.getByRole("button", { name: /^Open \(\d+ nodes\)/ }).click();
    await search.fill("<");
    await page.keyboard.press("Enter");
    await details.getByRole("heading", { name: /^feature \d+ / }).waitFor();
    await search.fill("");
    await page.screenshot({ path: join(screenshots, "trees.png") });
  });
}

/** The camera predicts one picture after another. */
async function camera(browser, model) {
  await withPage(browser, model, async (page) => {
    await tab(page, "Preview");
    await page.getByRole("button", { name: "Camera" }).click();
    const answer = page.getByText(/^Predicted in/);
    await answer.waitFor({ timeout: 60000 });
    const picture = page.locator(".answers img").first();
    const first = await picture.getAttribute("src");
    await page.waitForFunction((src) => document.querySelector(".answers img")?.getAttribute("src") !== src, first, { timeout: 60000 });
    await page.screenshot({ path: join(screenshots, "camera.png") });
    await page.getByRole("button", { name: "Stop the camera" }).click();
    await page.getByRole("button", { name: "Camera", exact: true }).waitFor();
  });
}

/** Random values of a size that a flexible input allows. */
async function sizes(browser, model) {
  await withPage(browser, model, async (page) => {
    await tab(page, "Preview");
    await page.getByLabel("Size").first().fill("3 x 1");
    await page.getByRole("button", { name: "Random" }).first().click();
    await page.getByRole("button", { name: "Predict", exact: true }).click();
    await page.getByText(/^Predicted in/).waitFor({ timeout: 60000 });
    await page.getByText(/float\d+ 3 × 1 /).first().waitFor();
  });
}

const browser = await launch();
const models = modelsIn(folder);
if (models.length === 0) failures.push(`${folder}: no models`);
let predicting = 0;
for (const [i, model] of models.entries()) {
  const name = relative(folder, model).replaceAll(/[^\w.]+/g, "-");
  const started = Date.now();
  await withPage(browser, model, async (page) => {
    const predicts = await walk(page, name, i % 6 === 0);
    predicting += predicts;
    console.log(`${name}: ${predicts ? "predicts" : "shown"}, ${((Date.now() - started) / 1000).toFixed(1)} s`);
  });
}
const mnist = models.find((m) => basename(m) === "MNIST.mlmodel");
if (mnist) await story(browser, mnist);
const built = mkdtempSync(join(tmpdir(), "moka-view-models-"));
await text(browser, built);
rmSync(built, { recursive: true });
await table(browser, examples + "/rent.mlmodel");
for (const [name, work] of [["nmp.mlpackage", inside], ["nmp.mlpackage", sound], ["RandomForest.mlmodel", trees], ["ImageQualityCP20.mlmodel", scopes], ["Image2Image.mlmodel", camera], ["MyModel.mlpackage", sizes]]) {
  const model = models.find((m) => basename(m) === name);
  if (model) await work(browser, model);
}
await browser.close();
console.log(`${models.length} models, ${predicting} predict; screenshots are in ${screenshots}`);
for (const failure of failures) console.error("FAILED " + failure);
process.exit(failures.length ? 1 : 0);
