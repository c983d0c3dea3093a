// SPDX-License-Identifier: Apache-2.0
// Bundles src/ into viewer.html, one file without references.
import { readFile, writeFile } from "node:fs/promises";
import { build } from "esbuild";

const result = await build({
  entryPoints: ["src/main.tsx"],
  bundle: true,
  minify: true,
  write: false,
  outdir: "out",
  format: "iife",
  target: "es2020",
  jsx: "automatic",
  jsxImportSource: "preact",
  legalComments: "inline",
});
const text = (ending) => result.outputFiles.find((file) => file.path.endsWith(ending)).text;
// "</script" inside a string would end the element that holds the program.
const script = text(".js").replaceAll("</script", "<\\/script");
const page = (await readFile("src/index.html", "utf8"))
  .replace("/*STYLE*/", () => text(".css"))
  .replace("/*SCRIPT*/", () => script);
await writeFile("viewer.html", page);
