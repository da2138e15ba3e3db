/** Which descriptor speaks to which kind of upstream. */
import type { ProviderKind } from "../core/domain.ts";
import { CLAUDE } from "./claude.ts";
import { CODEX } from "./codex.ts";
import { ZAI } from "./zai.ts";
import type { ProviderDescriptor } from "./provider.ts";

const DESCRIPTORS: ReadonlyMap<ProviderKind, ProviderDescriptor> = new Map(
  [CODEX, CLAUDE, ZAI].map((descriptor) => [descriptor.kind, descriptor]),
);

/** @returns `null` for a kind this build cannot speak to. */
export function descriptorFor(kind: ProviderKind): ProviderDescriptor | null {
  return DESCRIPTORS.get(kind) ?? null;
}
