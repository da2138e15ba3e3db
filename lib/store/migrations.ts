/**
 * The schema, as steps that only grow: step N brings a database from version N - 1 to N.
 *
 * A released step is never edited; a change is a new step. Rows are checked by `codec.ts` in both directions,
 * so the SQL carries types, keys and references only: a poisoned row is then reported with its table and key.
 */

/** "HOLD" in ASCII, in the file's header: tells our file from another program's. */
export const APPLICATION_ID = 0x484f4c44;

const POOL_AND_BINDINGS = `
CREATE TABLE deadline (
  account TEXT NOT NULL,
  model TEXT NOT NULL,                     -- '' = the whole account
  until_ms INTEGER NOT NULL,
  source TEXT NOT NULL,
  status INTEGER NOT NULL,
  code TEXT NOT NULL,
  attempt TEXT NOT NULL,
  launched_at_ms INTEGER NOT NULL,
  written_at_ms INTEGER NOT NULL,
  PRIMARY KEY (account, model)
) STRICT, WITHOUT ROWID;
CREATE INDEX deadline_by_end ON deadline (until_ms);

CREATE TABLE credential_block (
  account TEXT NOT NULL PRIMARY KEY,
  kind TEXT NOT NULL,
  fingerprint TEXT NOT NULL,
  code TEXT NOT NULL,
  written_at_ms INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE credits_block (
  account TEXT NOT NULL PRIMARY KEY,
  opened_at_ms INTEGER NOT NULL,
  code TEXT NOT NULL,
  probe_at_ms INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Accounts an operator switched off; one without a row is on.
CREATE TABLE disabled_account (
  account TEXT NOT NULL PRIMARY KEY,
  disabled_at_ms INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE quota_reading (
  account TEXT NOT NULL PRIMARY KEY,
  observed_at_ms INTEGER NOT NULL,
  source TEXT NOT NULL,
  windows TEXT NOT NULL,
  limit_reached INTEGER,
  serves_beyond_windows INTEGER NOT NULL,
  credits_available INTEGER,
  plan TEXT
) STRICT, WITHOUT ROWID;

CREATE TABLE provider_cooldown (
  provider TEXT NOT NULL PRIMARY KEY,
  until_ms INTEGER NOT NULL,
  reason TEXT NOT NULL,
  opened_at_ms INTEGER NOT NULL,
  opened_by TEXT NOT NULL,
  generation INTEGER NOT NULL,
  level INTEGER NOT NULL,
  explicit INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE network (
  id INTEGER NOT NULL PRIMARY KEY CHECK (id = 1),
  evidence TEXT NOT NULL,
  last_success_at_ms INTEGER NOT NULL,
  pause TEXT,
  generation INTEGER NOT NULL
) STRICT;

CREATE TABLE ledger (
  request TEXT NOT NULL PRIMARY KEY,
  idempotency TEXT,
  counter INTEGER NOT NULL,
  max_launches INTEGER NOT NULL,
  opened_at_ms INTEGER NOT NULL,
  closed INTEGER NOT NULL,
  touched_at_ms INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX ledger_by_touch ON ledger (touched_at_ms);

CREATE TABLE ledger_charge (
  request TEXT NOT NULL REFERENCES ledger (request) ON DELETE CASCADE,
  attempt_counter INTEGER NOT NULL,
  PRIMARY KEY (request, attempt_counter)
) STRICT, WITHOUT ROWID;

CREATE TRIGGER ledger_charge_was_minted BEFORE INSERT ON ledger_charge
WHEN NEW.attempt_counter < 1
  OR NEW.attempt_counter > coalesce((SELECT counter FROM ledger WHERE request = NEW.request), 0)
BEGIN SELECT RAISE(ABORT, 'charge of an attempt that was never minted'); END;

CREATE TABLE ring_cursor (
  pool TEXT NOT NULL PRIMARY KEY,
  cursor INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE audit (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  at_ms INTEGER NOT NULL,
  action TEXT NOT NULL,
  subject TEXT NOT NULL,
  detail TEXT NOT NULL
) STRICT;

-- Bindings name their account by number, so that dropping an account is one row however many sessions it holds.
-- AUTOINCREMENT: a number is never given twice, or old bindings would come back to a new account.
CREATE TABLE bound_account (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  account TEXT NOT NULL UNIQUE
) STRICT;

CREATE TABLE binding (
  session TEXT NOT NULL PRIMARY KEY,
  account_id INTEGER NOT NULL,
  created_at_ms INTEGER NOT NULL,
  expires_at_ms INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX binding_by_end ON binding (expires_at_ms);
`;

const USERS_USAGE_AND_PINS = `
CREATE TABLE managed_user (
  id TEXT NOT NULL PRIMARY KEY,
  name TEXT NOT NULL UNIQUE,
  enabled INTEGER NOT NULL,
  key_hash TEXT NOT NULL UNIQUE,
  key_hint TEXT NOT NULL,
  created_at_ms INTEGER NOT NULL,
  key_created_at_ms INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE usage_bucket (
  bucket_at_ms INTEGER NOT NULL,
  tenant TEXT NOT NULL,
  key_hint TEXT NOT NULL,
  provider TEXT NOT NULL,
  model TEXT NOT NULL,
  effort TEXT NOT NULL,
  requests INTEGER NOT NULL,
  failures INTEGER NOT NULL,
  input_tokens INTEGER NOT NULL,
  cached_tokens INTEGER NOT NULL,
  output_tokens INTEGER NOT NULL,
  reasoning_tokens INTEGER NOT NULL,
  PRIMARY KEY (bucket_at_ms, tenant, key_hint, provider, model, effort)
) STRICT, WITHOUT ROWID;

CREATE TABLE resource_pin (
  resource TEXT NOT NULL PRIMARY KEY,
  account TEXT NOT NULL,
  expires_at_ms INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX resource_pin_by_end ON resource_pin (expires_at_ms);

CREATE TABLE setting (
  name TEXT NOT NULL PRIMARY KEY,
  value TEXT NOT NULL
) STRICT, WITHOUT ROWID;
`;

/** Step N at index N - 1. */
export const MIGRATIONS: readonly string[] = [POOL_AND_BINDINGS, USERS_USAGE_AND_PINS];

/** Kept in `PRAGMA user_version`. */
export const SCHEMA_VERSION = MIGRATIONS.length;

/** Statements that bring version `from` to the newest; run inside one transaction. */
export function migrationSql(from: number): readonly string[] {
  return [
    ...MIGRATIONS.slice(from),
    `PRAGMA application_id = ${APPLICATION_ID}`,
    `PRAGMA user_version = ${SCHEMA_VERSION}`,
  ];
}
