// Reads and parses all inboxes in a directory at a fixed interval, as programs do that poll
// inboxes.
//
//   node poller.js DIRECTORY MILLISECONDS
'use strict';
const fs = require('fs');
const path = require('path');

const [directory, milliseconds] = process.argv.slice(2);

setInterval(() => {
  for (const name of fs.readdirSync(directory)) {
    JSON.parse(fs.readFileSync(path.join(directory, name), 'utf8'));
  }
}, Number(milliseconds));
