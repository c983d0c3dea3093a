// SPDX-License-Identifier: Apache-2.0
// What the graph of a model shows: the program after the passes, scopes, and trees.
import { existsSync } from "node:fs";
import { join } from "node:path";
import { checkAccess, failures, tab, withPage } from "./visit.mjs";

/** What the passes made of a program, its source text, and a copy of it. */
export async function inside(walker, model) {
  await withPage(walker, model, async (page, folder) => {
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
    await page.screenshot({ path: join(walker.screenshots, "passes.png") });
    await tab(page, "Utilities");
    await page.getByLabel("File", { exact: true }).fill("copy.mlpackage");
    await page.getByRole("button", { name: "Save" }).click();
    await page.getByRole("status").getByText("Wrote ").waitFor({ timeout: 60000 });
    if (!existsSync(join(folder, "copy.mlpackage", "Manifest.json"))) failures.push(`${model}: no copy was saved`);
    await page.getByRole("button", { name: "Save" }).click();
    await page.getByRole("status").getByText("exists already").waitFor();
    await checkAccess(page, `${model}, Utilities`);
    await page.screenshot({ path: join(walker.screenshots, "utilities.png") });
  });
}

/** The scopes of names open and close as groups. */
export async function scopes(walker, model) {
  await withPage(walker, model, async (page) => {
    const search = page.getByRole("searchbox", { name: "Search operations" });
    await page.screenshot({ path: join(walker.screenshots, "scopes-closed.png") });
    await search.fill("dense_71");
    await page.keyboard.press("Enter");
    const details = page.getByRole("complementary", { name: "Details" });
    await details.getByText("sequential_35 › dense_71 › BiasAdd", { exact: true }).waitFor();
    await page.getByRole("list", { name: "Found operations" }).getByRole("button", { name: "scope sequential_35/dense_71", exact: true }).click();
    await details.getByRole("button", { name: "Close (2 operations)" }).click();
    await details.getByRole("button", { name: "Open (2 operations)" }).click();
    await checkAccess(page, `${model}, scopes`);
    await search.fill("");
    await page.screenshot({ path: join(walker.screenshots, "scopes.png") });
  });
}

/** The trees of an ensemble open, and a tree in them. */
export async function trees(walker, model) {
  await withPage(walker, model, async (page) => {
    const search = page.getByRole("searchbox", { name: "Search operations" });
    await search.fill("tree 1");
    await page.keyboard.press("Enter");
    const details = page.getByRole("complementary", { name: "Details" });
    await details.getByRole("button", { name: /^Open \(\d+ nodes\)/ }).click();
    await search.fill("<");
    await page.keyboard.press("Enter");
    await details.getByRole("heading", { name: /^feature \d+ / }).waitFor();
    await search.fill("");
    await page.screenshot({ path: join(walker.screenshots, "trees.png") });
  });
}
