const test = require("node:test");
const assert = require("node:assert");
const { shout } = require("./index.js");

test("shouts", () => assert.equal(shout("a"), "A!"));
