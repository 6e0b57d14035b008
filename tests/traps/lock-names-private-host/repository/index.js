const escape = require("escape-html");

exports.shout = (text) => escape(text).toUpperCase() + "!";
