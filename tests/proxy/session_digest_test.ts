import { assertEquals, assertNotEquals } from "@std/assert";
import { digestSignal } from "../../lib/proxy/session_digest.ts";
import { createDigest } from "../../lib/runtime/digest.ts";

const tenant = (id: string) => ({ id, keyHint: "", userId: null });

Deno.test("a signal has one digest, made once, and each tenant and kind its own", () => {
  let made = 0;
  const { sha256, equal } = createDigest();
  const deps = {
    digest: { equal, sha256: (text: string | Uint8Array<ArrayBuffer>) => (made++, sha256(text)) },
  };
  const of = (id: string, kind: "header" | "conversation", value: string) =>
    digestSignal(deps, tenant(id), { kind, value });
  const first = of("key:a", "header", "session-1");
  assertEquals(first, sha256("key:a\0header\0session-1"));
  assertEquals([of("key:a", "header", "session-1"), made], [first, 1]);
  assertNotEquals(of("key:b", "header", "session-1"), first);
  assertNotEquals(of("key:a", "conversation", "session-1"), first);
  const long = "x".repeat(10_000);
  assertEquals([of("key:a", "header", long), made], [sha256(`key:a\0header\0${long}`), 4]);
});
