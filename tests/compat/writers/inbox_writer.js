// A writer of an inbox as Claude Code has it: the same lock from the same package, taken in the same ways.
//
//   node inbox_writer.js sync|async|truncating|slow FILE PREFIX COUNT|- [PAUSE]
//
// sync: as up to 2.1.139: no retry on a held lock, and the file truncated and written in place.
// async: as from 2.1.158 on: retries, a temporary file and a rename.
// truncating: retries, then truncates and writes in place, in two halves with a moment between them.
// slow: as async, with two and a half seconds between what it reads and what it writes.
// Sends COUNT messages, or (-) until its standard input ends, PREFIX:0 and so on, at most PAUSE ms (6) apart, and
// prints {"stored": [...], "refused": [...]}.
'use strict';
const fs = require('fs');
const path = require('path');
const lockfile = require('proper-lockfile');

const [mode, file, prefix, count, longest] = process.argv.slice(2);
const lockfilePath = `${file}.lock`;
const outcome = { stored: [], refused: [] };
const retries = { retries: 2000, factor: 1.2, minTimeout: 5, maxTimeout: 50, randomize: true };
let told = false;

function exists() {
  try {
    fs.writeFileSync(file, '[]', { flag: 'wx' });
  } catch (error) {
    if (error.code !== 'EEXIST') throw error;
  }
}

function grown(text) {
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
    // What stands in the lock's place may be no lock at all.
    if (!['ELOCKED', 'ENOTDIR', 'ENOTEMPTY'].includes(error.code)) throw error;
    outcome.refused.push(text);
    return;
  }
  fs.writeFileSync(file, grown(text));
  release();
  outcome.stored.push(text);
}

async function sendWithRetries(text, meanwhile = 0) {
  const release = await lockfile.lock(file, { lockfilePath, retries });
  const temporary = path.join(path.dirname(file), `${path.basename(file)}.tmp.${process.pid.toString(16).padStart(8, '0')}`);
  const bytes = grown(text);
  if (meanwhile) await pause(meanwhile);
  fs.writeFileSync(temporary, bytes, { flag: 'wx' });
  fs.renameSync(temporary, file);
  await release();
  outcome.stored.push(text);
}

async function sendInPlace(text) {
  const release = await lockfile.lock(file, { lockfilePath, retries });
  const bytes = Buffer.from(grown(text));
  const opened = fs.openSync(file, 'w');
  const half = bytes.length >> 1;
  fs.writeSync(opened, bytes, 0, half);
  await pause(1);
  fs.writeSync(opened, bytes, half);
  fs.closeSync(opened);
  await release();
  outcome.stored.push(text);
}

async function main() {
  const slowly = (text) => sendWithRetries(text, 2500);
  const send = { sync: sendAtOnce, async: sendWithRetries, truncating: sendInPlace, slow: slowly }[mode];
  const last = count === '-' ? Infinity : Number(count);
  if (last === Infinity) process.stdin.on('end', () => { told = true; }).resume();
  exists();
  for (let n = 0; n < last && !told; n += 1) {
    await send(`${prefix}:${n}`);
    await pause(Math.random() * Number(longest || 6));
  }
  process.stdout.write(JSON.stringify(outcome));
}

main().catch((error) => {
  process.stderr.write(`${error.stack}\n`);
  process.exit(1);
});
