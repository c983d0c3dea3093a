// SPDX-License-Identifier: Apache-2.0
// Files that are made here, to be dropped on models.
import { deflateSync } from "node:zlib";

/** A PNG of one channel, made here: `pixel` gives 0 to 255. */
export function png(width, height, pixel) {
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

/** A tone as WAV: one channel, 16 bits. */
export function wav(rate, seconds, frequency) {
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

/** A model of one text: the length of a number's name. */
export function lengthOfName() {
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
