/** What holds for the headers of every kind, whatever a client sends. */
import { assert, assertEquals } from "@std/assert";
import fc from "fast-check";
import type { ProviderKind } from "../../lib/core/domain.ts";
import { ROUTES } from "../../lib/protocol/route.ts";
import { descriptorFor } from "../../lib/providers/registry.ts";
import { KEY, LOGIN, outgoingAs, settingsOf } from "../support/outgoing.ts";

const KINDS: readonly ProviderKind[] = ["codex", "anthropic", "zai", "openai"];
const SECRET = "SENT-client";
const secretName = fc.constantFrom(
  "authorization",
  "x-api-key",
  "api-key",
  "anthropic-api-key",
  "x-anthropic-auth-token",
  "openai-api-key",
  "x-openai-api-key",
  "x-claude-code-access-token",
  "x-codex-secret",
  "cookie",
  "proxy-authorization",
  "x-goog-api-key",
  "x-zai-password",
);
const harmless = fc.tuple(
  fc.constantFrom("user-agent", "accept", "anthropic-beta", "x-app", "session_id", "connection", "x-zz"),
  fc.string().map((text) => text.replace(/[^\x20-\x7e]/g, "").trim()),
);

for (const descriptor of KINDS.map(descriptorFor)) {
  Deno.test(`headers() of ${descriptor.kind} never passes a client's key on, and signs with the account's`, () => {
    const settings = settingsOf(descriptor.kind, "https://host.test/v1");
    const routes = ROUTES.filter((route) => descriptor.serves(route));
    fc.assert(
      fc.property(
        fc.array(fc.tuple(secretName, fc.constant(SECRET))),
        fc.array(harmless),
        fc.constantFrom(...routes),
        fc.constantFrom(LOGIN, KEY),
        (secrets, others, route, credential) => {
          const protocol = descriptor.upstreamProtocol(route.protocol, settings);
          const clientHeaders = new Headers([...secrets, ...others]);
          const headers = descriptor.headers(
            outgoingAs(route.name, protocol, { clientHeaders }),
            settings,
            credential,
          );
          for (const [, value] of headers) assert(!value.includes(SECRET));
          const own = [...headers].filter(([, value]) => value.includes("SENT-"));
          assertEquals(own.length, 1);
          assert(["authorization", "x-api-key"].includes(own[0]![0]));
        },
      ),
      { numRuns: 300 },
    );
  });
}
