const escape = require("escape-html");
const ms = require("ms");

exports.shout = (text) => escape(text).toUpperCase() + "!".repeat(ms("1ms"));
