import { assertEquals } from "@std/assert";
import fc from "fast-check";
import type { ClientProtocol } from "../../lib/core/domain.ts";
import { type ListedModels, type ModelNames, resolveModel } from "../../lib/core/model_resolution.ts";

const NAMES: ModelNames = {
  providers: [
    { id: "zai", kind: "zai", models: [] },
    { id: "claude", kind: "anthropic", models: [] },
    { id: "claude-two", kind: "anthropic", models: [] },
    { id: "lab", kind: "openai", models: ["qwen3", "meta/llama", "shared"] },
    { id: "lab-two", kind: "openai", models: ["qwen3"] },
  ],
  models: [
    { alias: "fast", provider: "codex", model: "gpt-5.4-mini" },
    { alias: "lab/own", provider: "zai", model: "glm-5.2" },
    { alias: "qwen3-alias", provider: "lab", model: "fast" },
  ],
  pools: [{
    name: "frontier",
    members: [
      { provider: "codex", model: "gpt-5.5", weight: 3 },
      { provider: "claude", model: "claude-opus-4-8", weight: 2 },
    ],
    fallback: [{ provider: "lab", model: "qwen3" }, { provider: "zai", model: "glm-5.2" }],
  }],
};
const LISTED: ListedModels = new Map([
  ["codex", new Set(["gpt-5.5", "shared", "all"])],
  ["claude", new Set(["claude-opus-4-8", "all"])],
  ["zai", new Set(["glm-5.2", "all"])],
  ["gone", new Set(["only-gone"])],
]);

Deno.test("resolveModel() gives a pool's members with weights in order, and its fallbacks", () => {
  for (const protocol of ["responses", "chat", "messages"] as const) {
    assertEquals(resolveModel(NAMES, LISTED, protocol, "frontier"), {
      targets: [
        { provider: "codex", model: "gpt-5.5", weight: 3 },
        { provider: "claude", model: "claude-opus-4-8", weight: 2 },
      ],
      fallbacks: [{ provider: "lab", model: "qwen3" }, { provider: "zai", model: "glm-5.2" }],
      pool: "frontier",
    });
  }
});

const cases: readonly {
  name: string;
  protocol: ClientProtocol;
  model: string | null;
  want: readonly [provider: string, model: string | null];
}[] = [
  { name: "an alias", protocol: "chat", model: "fast", want: ["codex", "gpt-5.4-mini"] },
  { name: "an alias before provider/model", protocol: "chat", model: "lab/own", want: ["zai", "glm-5.2"] },
  { name: "an alias once, never twice", protocol: "chat", model: "qwen3-alias", want: ["lab", "fast"] },
  { name: "provider/model", protocol: "chat", model: "claude/new", want: ["claude", "new"] },
  { name: "codex/model", protocol: "messages", model: "codex/gpt-5.5", want: ["codex", "gpt-5.5"] },
  { name: "the first slash alone", protocol: "chat", model: "lab/meta/llama", want: ["lab", "meta/llama"] },
  { name: "a listed model with a slash", protocol: "chat", model: "meta/llama", want: ["lab", "meta/llama"] },
  { name: "an unknown prefix as a name", protocol: "chat", model: "nobody/m", want: ["codex", "nobody/m"] },
  { name: "a prefix without a model", protocol: "chat", model: "lab/", want: ["codex", "lab/"] },
  { name: "a slash at the start", protocol: "chat", model: "/m", want: ["codex", "/m"] },
  { name: "a pool below a provider", protocol: "chat", model: "lab/frontier", want: ["lab", "frontier"] },
  { name: "a model of the file's list", protocol: "messages", model: "qwen3", want: ["lab", "qwen3"] },
  { name: "a model of the upstream's list", protocol: "chat", model: "glm-5.2", want: ["zai", "glm-5.2"] },
  { name: "codex's list", protocol: "messages", model: "gpt-5.5", want: ["codex", "gpt-5.5"] },
  { name: "the lister of the own dialect", protocol: "chat", model: "shared", want: ["lab", "shared"] },
  { name: "codex of several listers", protocol: "responses", model: "shared", want: ["codex", "shared"] },
  { name: "codex where no lister fits", protocol: "messages", model: "shared", want: ["codex", "shared"] },
  { name: "the first fitting lister", protocol: "messages", model: "all", want: ["zai", "all"] },
  { name: "no provider that is gone", protocol: "chat", model: "only-gone", want: ["codex", "only-gone"] },
  { name: "an unknown model, chat", protocol: "chat", model: "new", want: ["codex", "new"] },
  { name: "an unknown model, responses", protocol: "responses", model: "new", want: ["codex", "new"] },
  { name: "an unknown model, raw", protocol: "raw", model: "new", want: ["codex", "new"] },
  { name: "an unknown model, messages", protocol: "messages", model: "new", want: ["claude", "new"] },
  { name: "another case as another name", protocol: "messages", model: "FAST", want: ["claude", "FAST"] },
  { name: "no model, raw", protocol: "raw", model: null, want: ["codex", null] },
  { name: "no model, messages", protocol: "messages", model: null, want: ["claude", null] },
  { name: "an empty model", protocol: "chat", model: "", want: ["codex", null] },
];
for (const c of cases) {
  Deno.test(`resolveModel() resolves ${c.name}`, () => {
    const [provider, model] = c.want;
    assertEquals(resolveModel(NAMES, LISTED, c.protocol, c.model), {
      targets: [{ provider, model, weight: 1 }],
      fallbacks: [],
      pool: null,
    });
  });
}

Deno.test("resolveModel() sends Anthropic-style clients to codex where no anthropic provider is", () => {
  const names: ModelNames = { providers: [{ id: "zai", kind: "zai", models: [] }], models: [], pools: [] };
  const { targets } = resolveModel(names, new Map(), "messages", "claude-opus-4-8");
  assertEquals(targets, [{ provider: "codex", model: "claude-opus-4-8", weight: 1 }]);
});

Deno.test("resolveModel() names a provider that exists, whatever the client asks for", () => {
  const known = new Set(["codex", ...NAMES.providers.map((provider) => provider.id)]);
  const protocol = fc.constantFrom<ClientProtocol>("responses", "chat", "messages", "raw");
  const part = fc.oneof(fc.string(), fc.constantFrom("codex", "lab", "claude", "frontier", "fast", "", "/"));
  fc.assert(fc.property(protocol, part, part, fc.boolean(), (protocol, a, b, slash) => {
    const { targets, fallbacks } = resolveModel(NAMES, LISTED, protocol, slash ? `${a}/${b}` : a);
    assertEquals(targets.length > 0, true);
    for (const target of [...targets, ...fallbacks]) assertEquals(known.has(target.provider), true);
  }));
});
