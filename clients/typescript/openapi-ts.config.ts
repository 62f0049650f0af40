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

const FILE = "file";

/**
 * The document of the API, with the answers that `connect` lets through: JSON where there is JSON, and no 202, since
 * it waits for the job. A body that may be a file as well as JSON has the types of both, and a header for its kind.
 */
function document(): object {
  const api = JSON.parse(readFileSync("../../docs/openapi.json", "utf8"));
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
          if (schema.format !== FILE) return undefined;
          return $.type.or($.type("string"), $.type("Uint8Array"), $.type("Blob"));
        },
      },
    },
    "@hey-api/sdk",
  ],
  logs: { level: "warn" },
});
