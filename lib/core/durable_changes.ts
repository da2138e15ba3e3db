/** What of a change of health must be on disk: the difference between two values, so that nothing can be forgotten. */
import type { AccountId, ModelId } from "./domain.ts";
import type { AccountHealth, CredentialBlock, Deadline, DurableChange } from "./records.ts";

/** The durable part of a transition: what must be on disk before anybody hears of it. */
export function durableChanges(
  account: AccountId,
  before: AccountHealth,
  after: AccountHealth,
): DurableChange[] {
  const changes: DurableChange[] = [];
  if (before === after) return changes;
  if (before.deadline !== after.deadline) {
    changes.push(deadlineChange(account, null, after.deadline));
  }
  if (before.modelDeadlines !== after.modelDeadlines) {
    for (const model of before.modelDeadlines.keys()) {
      if (!after.modelDeadlines.has(model)) changes.push({ kind: "drop_deadline", account, model });
    }
    for (const [model, deadline] of after.modelDeadlines) {
      if (before.modelDeadlines.get(model) !== deadline) {
        changes.push({ kind: "put_deadline", account, model, deadline });
      }
    }
  }
  const credentialBefore = durableCredential(before.credential);
  const credentialAfter = durableCredential(after.credential);
  if (credentialBefore !== credentialAfter) {
    changes.push(
      credentialAfter === null
        ? { kind: "drop_credential", account }
        : { kind: "put_credential", account, block: credentialAfter },
    );
  }
  if (before.credits !== after.credits) {
    changes.push(
      after.credits === null
        ? { kind: "drop_credits", account }
        : { kind: "put_credits", account, block: after.credits },
    );
  }
  return changes;
}

function deadlineChange(account: AccountId, model: ModelId | null, deadline: Deadline | null): DurableChange {
  return deadline === null
    ? { kind: "drop_deadline", account, model }
    : { kind: "put_deadline", account, model, deadline };
}

function durableCredential(block: CredentialBlock | null): CredentialBlock | null {
  return block === null || block.kind === "credential_invalid" ? null : block;
}
