// Rewrites a config.json as Claude Code up to 2.1.100 does. It takes no lock, reads the file, and writes the same
// content back a moment later. Meanwhile the file is empty and then half written. So a member that was added in between
// is dropped, and a member that was removed returns.
//
//   node config_rewriter.js FILE COUNT|- [PAUSE]
//
// Rewrites the file COUNT times, or with `-` until standard input ends. Waits for up to PAUSE ms (default 50) between
// two rewrites. Prints {"stored": [NUMBER, ...], "refused": [NUMBER, ...]}: the numbers of the rewrites that succeeded,
// and of those that could not read the file.
'use strict';
const fs = require('fs');

const [file, count, maxPause] = process.argv.slice(2);
const outcome = { stored: [], refused: [] };
let stdinEnded = false;

function pause(milliseconds) {
  return new Promise((resolve) => setTimeout(resolve, milliseconds));
}

async function rewrite(n) {
  let config;
  try {
    config = JSON.parse(fs.readFileSync(file, 'utf8'));
  } catch {
    // Another process is writing the file, or has just replaced it.
    outcome.refused.push(String(n));
    return;
  }
  await pause(Math.random() * 20);
  const bytes = Buffer.from(JSON.stringify(config, null, 2));
  const descriptor = fs.openSync(file, 'w');
  await pause(Math.random() * 2);
  fs.writeSync(descriptor, bytes, 0, bytes.length >> 1);
  fs.writeSync(descriptor, bytes, bytes.length >> 1);
  fs.closeSync(descriptor);
  outcome.stored.push(String(n));
}

async function main() {
  const last = count === '-' ? Infinity : Number(count);
  if (last === Infinity) process.stdin.on('end', () => { stdinEnded = true; }).resume();
  for (let n = 0; n < last && !stdinEnded; n += 1) {
    await rewrite(n);
    await pause(Math.random() * Number(maxPause || 50));
  }
  process.stdout.write(JSON.stringify(outcome));
}

main().catch((error) => {
  process.stderr.write(`${error.stack}\n`);
  process.exit(1);
});
