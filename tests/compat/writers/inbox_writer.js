// Writes messages to an inbox as Claude Code does, with the lock of the same npm package.
//
//   node inbox_writer.js sync|async|truncating|slow FILE PREFIX COUNT|- [PAUSE]
//
// sync: like Claude Code up to 2.1.139. Does not write if the lock is held. Otherwise truncates the file and writes in
//   place.
// async: like Claude Code from 2.1.158 on. Retries until it has the lock, writes a temporary file and renames it.
// truncating: retries until it has the lock, truncates the file, and writes in two halves with a pause between them.
// slow: like async, but waits for 2.5 s between reading and writing.
//
// Sends COUNT messages, or with `-` until standard input ends. The texts are PREFIX:0, PREFIX:1 and so on. Waits for up
// to PAUSE ms (default 6) between two messages. Prints {"stored": [TEXT, ...], "refused": [TEXT, ...]}.
'use strict';
const fs = require('fs');
const path = require('path');
const lockfile = require('proper-lockfile');

const [mode, file, prefix, count, maxPause] = process.argv.slice(2);
const lockfilePath = `${file}.lock`;
const outcome = { stored: [], refused: [] };
const retries = { retries: 2000, factor: 1.2, minTimeout: 5, maxTimeout: 50, randomize: true };
let stdinEnded = false;

function createIfMissing() {
  try {
    fs.writeFileSync(file, '[]', { flag: 'wx' });
  } catch (error) {
    if (error.code !== 'EEXIST') throw error;
  }
}

function withMessage(text) {
  const messages = JSON.parse(fs.readFileSync(file, 'utf8'));
  const message = { from: 'peer', text, timestamp: new Date().toISOString(), read: false };
  messages.push({ ...message, theirs: { of: text } });
  return JSON.stringify(messages, null, 2);
}

function pause(milliseconds) {
  return new Promise((resolve) => setTimeout(resolve, milliseconds));
}

function sendAtOnce(text) {
  let release;
  try {
    release = lockfile.lockSync(file, { lockfilePath });
  } catch (error) {
    // The path of the lock may be a file, or a directory that is not empty, and so no lock.
    if (!['ELOCKED', 'ENOTDIR', 'ENOTEMPTY'].includes(error.code)) throw error;
    outcome.refused.push(text);
    return;
  }
  fs.writeFileSync(file, withMessage(text));
  release();
  outcome.stored.push(text);
}

async function sendWithRetries(text, delay = 0) {
  const release = await lockfile.lock(file, { lockfilePath, retries });
  const temporary = path.join(path.dirname(file), `${path.basename(file)}.tmp.${process.pid.toString(16).padStart(8, '0')}`);
  const bytes = withMessage(text);
  if (delay) await pause(delay);
  fs.writeFileSync(temporary, bytes, { flag: 'wx' });
  fs.renameSync(temporary, file);
  await release();
  outcome.stored.push(text);
}

async function sendInPlace(text) {
  const release = await lockfile.lock(file, { lockfilePath, retries });
  const bytes = Buffer.from(withMessage(text));
  const descriptor = fs.openSync(file, 'w');
  const half = bytes.length >> 1;
  fs.writeSync(descriptor, bytes, 0, half);
  await pause(1);
  fs.writeSync(descriptor, bytes, half);
  fs.closeSync(descriptor);
  await release();
  outcome.stored.push(text);
}

async function main() {
  const slowly = (text) => sendWithRetries(text, 2500);
  const send = { sync: sendAtOnce, async: sendWithRetries, truncating: sendInPlace, slow: slowly }[mode];
  const last = count === '-' ? Infinity : Number(count);
  if (last === Infinity) process.stdin.on('end', () => { stdinEnded = true; }).resume();
  createIfMissing();
  for (let n = 0; n < last && !stdinEnded; n += 1) {
    await send(`${prefix}:${n}`);
    await pause(Math.random() * Number(maxPause || 6));
  }
  process.stdout.write(JSON.stringify(outcome));
}

main().catch((error) => {
  process.stderr.write(`${error.stack}\n`);
  process.exit(1);
});
