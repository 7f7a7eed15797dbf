// A sender as Claude Code has it: the same lock from the same package, taken in the same two ways.
//
//   node writer.js sync|async FILE PREFIX COUNT
//
// sync: as up to 2.1.139: no retry on a held lock, and the file truncated and written in place.
// async: as from 2.1.158 on: retries, a temporary file and a rename.
// Sends COUNT messages, PREFIX:0 and so on, and prints {"stored": [...], "refused": [...]}.
'use strict';
const fs = require('fs');
const path = require('path');
const lockfile = require('proper-lockfile');

const [mode, file, prefix, count] = process.argv.slice(2);
const lockfilePath = `${file}.lock`;
const outcome = { stored: [], refused: [] };

function exists() {
  try {
    fs.writeFileSync(file, '[]', { flag: 'wx' });
  } catch (error) {
    if (error.code !== 'EEXIST') throw error;
  }
}

function grown(text) {
  const messages = JSON.parse(fs.readFileSync(file, 'utf8'));
  messages.push({ from: 'peer', text, timestamp: new Date().toISOString(), read: false });
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
    if (error.code !== 'ELOCKED') throw error;
    outcome.refused.push(text);
    return;
  }
  fs.writeFileSync(file, grown(text));
  release();
  outcome.stored.push(text);
}

async function sendWithRetries(text) {
  const retries = { retries: 2000, factor: 1.2, minTimeout: 5, maxTimeout: 50, randomize: true };
  const release = await lockfile.lock(file, { lockfilePath, retries });
  const temporary = path.join(path.dirname(file), `${path.basename(file)}.tmp.${process.pid.toString(16).padStart(8, '0')}`);
  fs.writeFileSync(temporary, grown(text), { flag: 'wx' });
  fs.renameSync(temporary, file);
  await release();
  outcome.stored.push(text);
}

async function main() {
  exists();
  for (let n = 0; n < Number(count); n += 1) {
    await (mode === 'sync' ? sendAtOnce : sendWithRetries)(`${prefix}:${n}`);
    await pause(Math.random() * 6);
  }
  process.stdout.write(JSON.stringify(outcome));
}

main().catch((error) => {
  process.stderr.write(`${error.stack}\n`);
  process.exit(1);
});
