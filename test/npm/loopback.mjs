// Loaded before a server (node --import) that listens where PORT says and on every
// address: has it listen on a free port of this machine alone, and say which.
import net from "node:net";

const listen = net.Server.prototype.listen;
net.Server.prototype.listen = function (_, done) {
  this.once("listening", () => console.error(`LISTENING ${this.address().port}`));
  return listen.call(this, { host: "127.0.0.1", port: 0 }, done);
};
