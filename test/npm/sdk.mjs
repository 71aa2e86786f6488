// An agent made of the official TypeScript SDK. Its callTool validates what a tool
// answers against the tool's outputSchema, and throws.
//
//   node sdk.mjs < {"npm": DIR, "url": URL, "server": [COMMAND, ARG…], "calls": {TOOL: {ARGUMENTS}}}
//
// It makes the calls through the gateway at url (where every name has a prefix) and
// at the server directly, and prints what it saw as JSON.
import { createRequire } from "node:module";
import { text } from "node:stream/consumers";
import { isDeepStrictEqual } from "node:util";

const { npm, url, server, calls } = JSON.parse(await text(process.stdin));
const require = createRequire(npm + "/");
const sdk = (path) => require("@modelcontextprotocol/sdk/" + path);
const { Client } = sdk("client/index.js");
const { StreamableHTTPClientTransport } = sdk("client/streamableHttp.js");
const { StdioClientTransport } = sdk("client/stdio.js");
const prefix = "fs__";

async function attach(transport) {
  const client = new Client({ name: "sdk-agent", version: "1" });
  await client.connect(transport);
  const { tools } = await client.listTools();
  return { client, tools: new Map(tools.map((tool) => [tool.name, tool])) };
}

async function call({ client }, name, args) {
  try {
    return { result: await client.callTool({ name, arguments: args }, undefined, { timeout: 300_000 }) };
  } catch (e) {
    return { threw: String(e?.message ?? e).slice(0, 300) };
  }
}

const hub = await attach(new StreamableHTTPClientTransport(new URL(url)));
const fs = await attach(new StdioClientTransport({ command: server[0], args: server.slice(1), stderr: "ignore" }));

const seen = { tools: [], calls: {} };
for (const [name, own] of fs.tools) {
  const { name: _, ...rest } = hub.tools.get(prefix + name) ?? {};
  const { name: __, ...want } = own;
  const sameSchema = isDeepStrictEqual(want.outputSchema, rest.outputSchema);
  delete want.outputSchema; // the gateway may allow receipts beside it, or leave it out
  delete rest.outputSchema;
  seen.tools.push({ name, readOnly: own.annotations?.readOnlyHint === true, sameSchema, same: isDeepStrictEqual(rest, want) });
}
for (const [name, args] of Object.entries(calls)) {
  const got = await call(hub, prefix + name, args);
  const want = await call(fs, name, args);
  const receipt = got.result?._meta?.["mcphub/receipt"];
  seen.calls[name] = {
    threw: got.threw ?? want.threw,
    same: isDeepStrictEqual(got.result, want.result),
    callId: receipt?.callId,
    inText: receipt && JSON.parse(got.result.content[0].text).callId,
    inStructured: receipt && got.result.structuredContent?.callId,
  };
}
console.log(JSON.stringify(seen));
await Promise.all([hub.client.close(), fs.client.close()]);
