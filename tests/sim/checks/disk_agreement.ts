/** P31: after every call the disk holds what memory must not forget, and nothing else. */
import type { AccountOracle, Spell } from "../oracle/account_oracle.ts";
import { isLive } from "../oracle/account_oracle.ts";
import type { Oracle } from "../oracle/oracle.ts";
import type { MirrorStore } from "../stores/mirror_store.ts";
import { must } from "../violation.ts";

const DURABLE_FROM_MS = 60_000;
const SUCCESS_PRECISION_MS = 1_000;

export function requireDiskAgreement(disk: MirrorStore, oracle: Oracle, event: string, nowMs: number): void {
  for (const account of oracle.accounts.values()) requireAccount(disk, oracle, account, event, nowMs);
  requireNothingUnknown(disk, oracle, event, nowMs);
  requireProviders(disk, oracle, event);
  requireNetwork(disk, oracle, event);
}

function requireNothingUnknown(disk: MirrorStore, oracle: Oracle, event: string, nowMs: number): void {
  for (const { account, deadline } of disk.deadlines.values()) {
    must(
      oracle.accounts.has(account) || deadline.untilMs <= nowMs,
      "P31",
      () => `a deadline of ${account}, which is no account, is on disk after ${event}`,
    );
  }
  const unknown = [...disk.credentials.keys(), ...disk.credits.keys()].find((id) => !oracle.accounts.has(id));
  must(
    unknown === undefined,
    "P31",
    () => `a mark of ${unknown}, which is no account, is on disk after ${event}`,
  );
}

function requireAccount(
  disk: MirrorStore,
  oracle: Oracle,
  account: AccountOracle,
  event: string,
  nowMs: number,
): void {
  const { id } = account;
  const same = (what: string, got: unknown, want: unknown) =>
    must(got === want, "P31", () => `${what} of ${id} on disk is ${got}, in memory ${want}, after ${event}`);
  const end = (spell: Spell | null | undefined) => isLive(spell, nowMs) ? spell!.untilMs : null;
  same("deadline", end(disk.deadline(id, null)?.deadline), end(account.deadline));
  for (const [model, spell] of account.modelDeadlines) {
    same(`deadline for ${model}`, end(disk.deadline(id, model)?.deadline), end(spell));
  }
  const kind = account.credential?.kind ?? null;
  same(
    "credential mark",
    disk.credentials.get(id)?.block.kind ?? null,
    kind === "credential_invalid" ? null : kind,
  );
  same("switch", disk.disabled.has(id), oracle.disabled.has(id));
  const mark = disk.credits.get(id)?.block ?? null;
  same("credits mark", mark?.probeAtMs ?? null, account.credits?.probeAtMs ?? null);
}

function requireProviders(disk: MirrorStore, oracle: Oracle, event: string): void {
  for (const provider of oracle.providers) {
    const row = disk.cooldowns.get(provider.id)?.cooldown ?? null;
    const { cooldown } = provider;
    const isLong = cooldown !== null && !cooldown.derived &&
      (cooldown.explicit || cooldown.untilMs - cooldown.openedAtMs >= DURABLE_FROM_MS);
    must(
      !isLong || row !== null,
      "P31",
      () => `the cooldown of ${provider.id} is not on disk after ${event}`,
    );
    must(
      row === null || (cooldown !== null && row.untilMs === cooldown.untilMs && !cooldown.derived),
      "P31",
      () =>
        `the cooldown of ${provider.id} on disk ends at ${row?.untilMs}, in memory ${cooldown?.untilMs}, after ${event}`,
    );
  }
}

function requireNetwork(disk: MirrorStore, oracle: Oracle, event: string): void {
  const { network } = oracle;
  const row = disk.network;
  must(
    (row?.pause?.untilMs ?? null) === (network.pause?.untilMs ?? null),
    "P31",
    () =>
      `the pause on disk ends at ${row?.pause?.untilMs}, in memory ${network.pause?.untilMs}, after ${event}`,
  );
  const attempts = (list: readonly { readonly attempt: string }[]) =>
    list.map(({ attempt }) => attempt).join();
  must(
    attempts(row?.evidence ?? []) === attempts(network.evidence),
    "P31",
    () => `outage evidence on disk differs from memory after ${event}`,
  );
  must(
    network.lastSuccessAtMs - (row?.lastSuccessAtMs ?? 0) <= SUCCESS_PRECISION_MS ||
      network.lastSuccessAtMs === 0,
    "P31",
    () => `the last success on disk is older by ${network.lastSuccessAtMs - (row?.lastSuccessAtMs ?? 0)} ms`,
  );
}
