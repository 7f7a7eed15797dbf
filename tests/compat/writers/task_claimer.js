// A claimant of tasks that takes the list's lock and the file's, as Claude Code does, and writes in place.
//
//   node task_claimer.js DIRECTORY OWNER
//
// For each id on its standard input it takes that task, if it is pending and nobody's, and says won or lost.
'use strict';
const fs = require('fs');
const path = require('path');
const readline = require('readline');
const lockfile = require('proper-lockfile');

const [directory, owner] = process.argv.slice(2);
const retries = { retries: 2000, factor: 1.2, minTimeout: 2, maxTimeout: 20, randomize: true };

async function claim(id) {
  const file = path.join(directory, `${id}.json`);
  const list = await lockfile.lock(path.join(directory, '.lock'), { retries });
  const one = await lockfile.lock(file, { retries });
  const task = JSON.parse(fs.readFileSync(file, 'utf8'));
  const free = task.status === 'pending' && !task.owner;
  if (free) fs.writeFileSync(file, JSON.stringify({ ...task, owner, status: 'in_progress' }, null, 2));
  await one();
  await list();
  return free;
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
