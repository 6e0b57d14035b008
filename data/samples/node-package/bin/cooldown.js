#!/usr/bin/env node
'use strict';

const { lifetime } = require('../lib');

for (const text of process.argv.slice(2)) {
  try {
    console.log(`${text} = ${lifetime(text)} ms`);
  } catch (error) {
    console.error(error.message);
    process.exitCode = 1;
  }
}
