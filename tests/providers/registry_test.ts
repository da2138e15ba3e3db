import { assertEquals } from "@std/assert";
import { descriptorFor } from "../../lib/providers/registry.ts";
import { settingsOf } from "../support/outgoing.ts";

const KINDS = ["codex", "anthropic", "zai", "openai"] as const;
const CLIENTS = ["responses", "chat", "messages", "raw"] as const;

Deno.test("descriptorFor() gives each kind its own descriptor", () => {
  assertEquals(KINDS.map((kind) => descriptorFor(kind).kind), [...KINDS]);
});

Deno.test("upstreamProtocol() of all kinds: which protocol each client is served in", () => {
  const hosts = [
    settingsOf("codex", "https://chatgpt.com/backend-api/codex"),
    settingsOf("anthropic", "https://api.anthropic.com"),
    settingsOf("zai", "https://api.z.ai", { plan: "coding" }),
    settingsOf("openai", "https://api.openai.com/v1"),
    settingsOf("openai", "http://127.0.0.1:8000/v1"),
  ];
  const matrix = hosts.map((settings) =>
    CLIENTS.map((client) => descriptorFor(settings.kind).upstreamProtocol(client, settings)).join(" ")
  );
  assertEquals(matrix, [
    "responses responses responses raw",
    "messages messages messages raw",
    "chat chat messages raw",
    "responses chat responses raw",
    "chat chat chat raw",
  ]);
});
