// What programs on these inboxes do now: under the lock of the real proper-lockfile read the file, parse it, change it,
// and write all of it anew.
//
//   node baseline.js FILE          a line "append" or "mark" on the standard input is done and answered with nanoseconds
//   node baseline.js DIRECTORY     the same of "list" and "claim": all tasks are read, each time
//   node baseline.js FILE COUNT    COUNT messages, with retries on a held lock
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
  const begun = process.hrtime.bigint();
  const release = lockfile.lockSync(file, options);
  rewrite(change);
  release();
  return process.hrtime.bigint() - begun;
}

function tasks() {
  const names = fs.readdirSync(file).filter((name) => /^[0-9]+\.json$/.test(name));
  return names.map((name) => JSON.parse(fs.readFileSync(`${file}/${name}`, 'utf8')));
}

function list() {
  const begun = process.hrtime.bigint();
  tasks();
  return process.hrtime.bigint() - begun;
}

function claim() {
  const begun = process.hrtime.bigint();
  const release = lockfile.lockSync(`${file}/.lock`, { lockfilePath: `${file}/.lock.lock`, realpath: false });
  const all = tasks().sort((a, b) => Number(a.id) - Number(b.id));
  const task = all.find((one) => one.status === 'pending' && !one.owner);
  const whole = JSON.stringify({ ...task, owner: 'peer', status: 'in_progress' }, null, 2);
  fs.writeFileSync(`${file}/${task.id}.json`, whole);
  release();
  return process.hrtime.bigint() - begun;
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
