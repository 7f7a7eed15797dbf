// The baseline of the comparison. Changes a file like Claude Code: takes the lock of the package
// proper-lockfile, reads and parses the whole file, changes it, and writes it whole.
//
//   node baseline.js FILE          reads the commands "append" and "mark" from standard input, runs
//                                  each, and prints its duration in nanoseconds
//   node baseline.js DIRECTORY     the same for "list" and "claim", which read all tasks each time
//   node baseline.js FILE COUNT    appends COUNT messages; retries while the lock is held
'use strict';
const fs = require('fs');
const lockfile = require('proper-lockfile');

const [file, count] = process.argv.slice(2);
const options = { lockfilePath: `${file}.lock` };
const retries = { retries: 10000, factor: 1.2, minTimeout: 5, maxTimeout: 100, randomize: true };
const text = 'x'.repeat(180);

function rewrite(change) {
  const messages = JSON.parse(fs.readFileSync(file, 'utf8'));
  change(messages);
  fs.writeFileSync(file, JSON.stringify(messages, null, 2));
}

function push(messages) {
  messages.push({ from: 'peer', text, timestamp: new Date().toISOString(), read: false });
}

function mark(messages) {
  messages[messages.length - 1].read = true;
}

function once(change) {
  const started = process.hrtime.bigint();
  const release = lockfile.lockSync(file, options);
  rewrite(change);
  release();
  return process.hrtime.bigint() - started;
}

function tasks() {
  const names = fs.readdirSync(file).filter((name) => /^[0-9]+\.json$/.test(name));
  return names.map((name) => JSON.parse(fs.readFileSync(`${file}/${name}`, 'utf8')));
}

function list() {
  const started = process.hrtime.bigint();
  tasks();
  return process.hrtime.bigint() - started;
}

function claim() {
  const started = process.hrtime.bigint();
  const release = lockfile.lockSync(`${file}/.lock`, { lockfilePath: `${file}/.lock.lock`, realpath: false });
  const all = tasks().sort((a, b) => Number(a.id) - Number(b.id));
  const task = all.find((one) => one.status === 'pending' && !one.owner);
  const text = JSON.stringify({ ...task, owner: 'peer', status: 'in_progress' }, null, 2);
  fs.writeFileSync(`${file}/${task.id}.json`, text);
  release();
  return process.hrtime.bigint() - started;
}

async function many() {
  for (let n = 0; n < Number(count); n += 1) {
    const release = await lockfile.lock(file, { ...options, retries });
    rewrite(push);
    await release();
  }
}

if (count) {
  many();
} else {
  require('readline').createInterface({ input: process.stdin }).on('line', (line) => {
    const done = { list, claim, mark: () => once(mark), append: () => once(push) };
    console.log(String(done[line]()));
  });
}
