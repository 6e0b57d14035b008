module.exports = require("./build/Release/shout.node");
