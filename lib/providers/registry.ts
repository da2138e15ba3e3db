/** Which descriptor speaks to which kind of upstream. */
import type { ProviderKind } from "../core/domain.ts";
import { CLAUDE } from "./claude.ts";
import { CODEX } from "./codex.ts";
import { OPENAI_COMPATIBLE } from "./openai_compatible.ts";
import type { ProviderDescriptor } from "./provider.ts";
import { ZAI } from "./zai.ts";

const DESCRIPTORS: Readonly<Record<ProviderKind, ProviderDescriptor>> = {
  codex: CODEX,
  anthropic: CLAUDE,
  zai: ZAI,
  openai: OPENAI_COMPATIBLE,
};

export function descriptorFor(kind: ProviderKind): ProviderDescriptor {
  return DESCRIPTORS[kind];
}
