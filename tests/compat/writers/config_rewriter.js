// A writer of config.json as Claude Code up to 2.1.100 is one: no lock, what it read a moment ago written back whole,
// and the file empty and then half written meanwhile. So members that were added in between are dropped, and those that
// were removed come back.
//
//   node config_rewriter.js FILE COUNT|- [PAUSE]
//
// COUNT times, or (-) until its standard input ends, at most PAUSE ms (50) apart; prints {"stored": [what it wrote,
// by number], "refused": [when it could not read]}.
'use strict';
const fs = require('fs');

const [file, count, longest] = process.argv.slice(2);
const outcome = { stored: [], refused: [] };
let told = false;

function pause(milliseconds) {
  return new Promise((resolve) => setTimeout(resolve, milliseconds));
}

async function rewrite(n) {
  let config;
  try {
    config = JSON.parse(fs.readFileSync(file, 'utf8'));
  } catch {
    // Another one of its kind is writing, or ours has just replaced it.
    outcome.refused.push(String(n));
    return;
  }
  await pause(Math.random() * 20);
  const bytes = Buffer.from(JSON.stringify(config, null, 2));
  const opened = fs.openSync(file, 'w');
  await pause(Math.random() * 2);
  fs.writeSync(opened, bytes, 0, bytes.length >> 1);
  fs.writeSync(opened, bytes, bytes.length >> 1);
  fs.closeSync(opened);
  outcome.stored.push(String(n));
}

async function main() {
  const last = count === '-' ? Infinity : Number(count);
  if (last === Infinity) process.stdin.on('end', () => { told = true; }).resume();
  for (let n = 0; n < last && !told; n += 1) {
    await rewrite(n);
    await pause(Math.random() * Number(longest || 50));
  }
  process.stdout.write(JSON.stringify(outcome));
}

main().catch((error) => {
  process.stderr.write(`${error.stack}\n`);
  process.exit(1);
});
