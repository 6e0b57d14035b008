'use strict';

const ms = require('ms');

/** Milliseconds of a lifetime such as '5m' or '2 days'. */
function lifetime(text) {
  const value = ms(text);
  if (value === undefined || value <= 0) {
    throw new RangeError(`not a lifetime: ${text}`);
  }
  return value;
}

class Cooldown {
  #entries = new Map();
  #lifetime;
  #now;

  constructor(text, now = Date.now) {
    this.#lifetime = lifetime(text);
    this.#now = now;
  }

  set(key, value) {
    this.#entries.set(key, { value, until: this.#now() + this.#lifetime });
    return this;
  }

  get(key) {
    const entry = this.#entries.get(key);
    if (entry === undefined) return undefined;
    if (entry.until <= this.#now()) {
      this.#entries.delete(key);
      return undefined;
    }
    return entry.value;
  }

  get size() {
    return this.#entries.size;
  }
}

module.exports = { Cooldown, lifetime };
