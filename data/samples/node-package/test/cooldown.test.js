'use strict';

const test = require('node:test');
const assert = require('node:assert');
const { execFileSync, spawnSync } = require('node:child_process');
const path = require('node:path');
const { Cooldown, lifetime } = require('../lib');

const command = path.join(__dirname, '..', 'bin', 'cooldown.js');

test('lifetimes are written the way people say them', () => {
  assert.strictEqual(lifetime('5m'), 300000);
  assert.strictEqual(lifetime('2 days'), 172800000);
});

test('what is no lifetime is refused', () => {
  assert.throws(() => lifetime('soon'), RangeError);
  assert.throws(() => lifetime('-1s'), RangeError);
});

test('an entry is there until it is stale', () => {
  let now = 0;
  const cache = new Cooldown('1s', () => now).set('a', 1);
  now = 999;
  assert.strictEqual(cache.get('a'), 1);
  now = 1000;
  assert.strictEqual(cache.get('a'), undefined);
  assert.strictEqual(cache.size, 0);
});

test('an unknown key has no value', () => {
  assert.strictEqual(new Cooldown('1s').get('b'), undefined);
});

test('the command converts', () => {
  assert.strictEqual(execFileSync(process.execPath, [command, '1h'], { encoding: 'utf8' }), '1h = 3600000 ms\n');
  assert.strictEqual(spawnSync(process.execPath, [command, 'soon']).status, 1);
});
