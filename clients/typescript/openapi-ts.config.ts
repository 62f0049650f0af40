import { readFileSync } from "node:fs";

import { defineConfig } from "@hey-api/openapi-ts";

interface Answer {
  content?: Record<string, { schema: unknown }>;
}

interface Operation {
  parameters?: object[];
  requestBody?: Required<Answer>;
  responses?: Record<string, Answer>;
}

/** Formats that stand for a type of TypeScript. */
const FILE = "file";
const BIG = "bigint";

/** A schema of a body, which may have a BigInt wherever it has an amount or a list of integers. */
function sent(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(sent);
  if (typeof schema !== "object" || schema === null) return schema;
  const parts = Object.fromEntries(Object.entries(schema).map(([name, part]) => [name, sent(part)]));
  if (parts.type === "array" && parts.items?.type === "integer") return { ...parts, items: orBig(parts.items) };
  return parts.$ref === "#/components/schemas/Amount" ? orBig(parts) : parts;
}

function orBig(schema: object): object {
  return { anyOf: [schema, { type: "string", format: BIG }] };
}

/**
 * The document of the API, with the answers that `connect` lets through: JSON where there is JSON, and no 202, since
 * it waits for the job. A body that may be a file as well as JSON has the types of both, and a header for its kind.
 */
function document(): object {
  const api = JSON.parse(readFileSync("../../docs/openapi.json", "utf8"));
  const { schemas } = api.components;
  for (const name of Object.keys(schemas)) {
    if (/(Body|Operation|Options)$/.test(name)) schemas[name] = sent(schemas[name]);
  }
  for (const path of Object.values<Record<string, Operation>>(api.paths)) {
    for (const { parameters, requestBody, responses } of Object.values(path)) {
      const { "application/json": columns, ...files } = requestBody?.content ?? {};
      if (columns && Object.keys(files).length > 0) {
        columns.schema = { anyOf: [columns.schema, { type: "string", format: FILE }] };
        const kind = { type: "string", enum: ["application/json", ...Object.keys(files)] };
        parameters?.push({ in: "header", name: "Content-Type", schema: kind });
      }
      const json = responses?.["200"]?.content?.["application/json"];
      if (responses?.["200"] && json) {
        responses["200"].content = { "application/json": json };
        delete responses["202"];
      }
    }
  }
  return api;
}

export default defineConfig({
  input: document() as never,
  output: { path: "src/generated", importFileExtension: ".js", clean: true },
  plugins: [
    { name: "@hey-api/client-fetch", throwOnError: true },
    {
      name: "@hey-api/typescript",
      "~resolvers": {
        string({ $, schema }) {
          if (schema.format === BIG) return $.type("bigint");
          if (schema.format !== FILE) return undefined;
          return $.type.or($.type("string"), $.type("Uint8Array"), $.type("Blob"));
        },
      },
    },
    "@hey-api/sdk",
  ],
  logs: { level: "warn" },
});
