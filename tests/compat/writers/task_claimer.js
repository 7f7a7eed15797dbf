// Claims tasks as Claude Code does: takes the lock of the list and the lock of the file, and writes in place.
//
//   node task_claimer.js DIRECTORY OWNER
//
// Reads task ids from standard input. Claims each task for OWNER if the task is pending and has no owner. Prints `won`
// or `lost` for each id.
'use strict';
const fs = require('fs');
const path = require('path');
const readline = require('readline');
const lockfile = require('proper-lockfile');

const [directory, owner] = process.argv.slice(2);
const retries = { retries: 2000, factor: 1.2, minTimeout: 2, maxTimeout: 20, randomize: true };

async function claim(id) {
  const file = path.join(directory, `${id}.json`);
  const releaseList = await lockfile.lock(path.join(directory, '.lock'), { retries });
  const releaseTask = await lockfile.lock(file, { retries });
  const task = JSON.parse(fs.readFileSync(file, 'utf8'));
  const isClaimable = task.status === 'pending' && !task.owner;
  if (isClaimable) fs.writeFileSync(file, JSON.stringify({ ...task, owner, status: 'in_progress' }, null, 2));
  await releaseTask();
  await releaseList();
  return isClaimable;
}

async function main() {
  for await (const id of readline.createInterface({ input: process.stdin })) {
    process.stdout.write((await claim(id)) ? 'won\n' : 'lost\n');
  }
}

main().catch((error) => {
  process.stderr.write(`${error.stack}\n`);
  process.exit(1);
});
