// SPDX-License-Identifier: Apache-2.0
// `moka view` as a server of its own, and the browser.
import { spawn } from "node:child_process";
import { chromium } from "playwright-core";

export const launch = () =>
  chromium.launch({
    executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
    // A camera that shows a moving picture.
    args: ["--no-sandbox", "--use-fake-device-for-media-stream", "--use-fake-ui-for-media-stream"],
  });

/** Starts `moka view` for a model; resolves to its address. */
export async function serveModel(program, model, options = {}) {
  const server = spawn(program, ["view", model, "--no-open"], { stdio: ["ignore", "pipe", "inherit"], ...options });
  const address = await new Promise((done, failed) => {
    server.stdout.once("data", (data) => done(String(data).trim()));
    server.once("exit", (code) => failed(new Error(`moka view ended with ${code}`)));
  });
  return { address, close: () => server.kill() };
}
