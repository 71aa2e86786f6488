// An agent made of the official TypeScript SDK that only calls tools. Its callTool
// validates what a tool answers against the tool's outputSchema, and throws.
//
//   node schema.mjs < {"npm": DIR, "url": URL} or {"npm": DIR, "server": {COMMAND, ENV}}
//
// It calls every tool but those of the gateway and prints, by name, what was thrown
// and which receipt came.
import { createRequire } from "node:module";
import { text } from "node:stream/consumers";

const { npm, url, server } = JSON.parse(await text(process.stdin));
const require = createRequire(npm + "/");
const sdk = (path) => require("@modelcontextprotocol/sdk/" + path);
const { Client } = sdk("client/index.js");
const { StreamableHTTPClientTransport } = sdk("client/streamableHttp.js");
const { StdioClientTransport } = sdk("client/stdio.js");

const client = new Client({ name: "schema-agent", version: "1" });
await client.connect(url
  ? new StreamableHTTPClientTransport(new URL(url))
  : new StdioClientTransport({ command: server.Command, env: server.Env, stderr: "ignore" }));
const seen = {};
for (const { name } of (await client.listTools()).tools.filter(({ name }) => !name.startsWith("mcphub_"))) {
  try {
    const result = await client.callTool({ name, arguments: {} }, undefined, { timeout: 300_000 });
    seen[name] = { callId: result._meta?.["mcphub/receipt"]?.callId, structured: result.structuredContent };
  } catch (e) {
    seen[name] = { threw: String(e?.message ?? e).slice(0, 300) };
  }
}
console.log(JSON.stringify(seen));
await client.close();
