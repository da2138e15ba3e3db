/** Managed users over real sockets: made, switched, given new keys, and told apart. */
import { assert, assertEquals, assertMatch } from "@std/assert";
import { ok } from "../../lib/demo/simulated_replies.ts";
import { ADMIN_KEY, CLIENT_KEY, type Rig, startRig } from "../support/rig.ts";

interface UserAnswer {
  readonly id: string;
  readonly name: string;
  readonly enabled: boolean;
  readonly key_hint: string;
  readonly created_at: string;
  readonly key_created_at: string;
  readonly api_key?: string;
}

function send(rig: Rig, method: string, path: string, body?: unknown, key: string | null = ADMIN_KEY) {
  return rig.until(fetch(`${rig.app.url}${path}`, {
    method,
    headers: key === null ? {} : { authorization: `Bearer ${key}` },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  }));
}

async function addUser(rig: Rig, name: string): Promise<UserAnswer & { api_key: string }> {
  const answer = await send(rig, "POST", "/v0/management/users", { name });
  assertEquals(answer.status, 201);
  return await answer.json();
}

async function refusal(answer: Response): Promise<string> {
  const { error } = await answer.json();
  return `${answer.status} ${error.code}: ${error.message}`;
}

function withoutKey(user: UserAnswer): UserAnswer {
  const { api_key: _, ...known } = user;
  return known;
}

function withKey(key: string, headers: Record<string, string> = {}): RequestInit {
  return { headers: { ...headers, authorization: `Bearer ${key}` } };
}

Deno.test("a managed user's key is shown once, serves, and is nowhere to be read again", async () => {
  await using rig = await startRig({ accounts: ["A"] });
  rig.account("A").otherwise(ok("A"));
  const user = await addUser(rig, "  Ada Lovelace ");
  assertMatch(user.api_key, /^hf_[A-Za-z0-9_-]{32}$/);
  assertMatch(user.id, /^usr_[A-Za-z0-9_-]{16}$/);
  assertEquals([user.name, user.enabled], ["Ada Lovelace", true]);
  const served = await rig.responses({}, withKey(user.api_key));
  assertEquals(served.status, 200);
  await served.body?.cancel();

  const known = withoutKey(user);
  const listed = await send(rig, "GET", "/v0/management/users");
  const one = await send(rig, "GET", `/v0/management/users/${user.id}`);
  const own = await send(rig, "GET", "/v0/user/api-key", undefined, user.api_key);
  const texts = [await listed.text(), await one.text(), await own.text()];
  assertEquals(texts.map((text) => JSON.parse(text)), [{ users: [known] }, known, known]);
  await rig.restart();
  const files = ["holdfast.db", "holdfast.db-wal"].map((name) => rig.folder.file(`state/${name}`));
  const stored = files.flatMap((path) => {
    try {
      return [new TextDecoder("latin1").decode(Deno.readFileSync(path))];
    } catch {
      return [];
    }
  });
  for (const text of [...texts, ...stored, await rig.readLog()]) assert(!text.includes(user.api_key));
  const again = await rig.responses({}, withKey(user.api_key));
  assertEquals(again.status, 200);
  await again.body?.cancel();
});

Deno.test("a new key keeps the user's tenant: the session stays on its account, the old key is refused", async () => {
  await using rig = await startRig({ accounts: ["A", "B", "C"] });
  for (const name of ["A", "B", "C"]) rig.account(name).otherwise(ok(name));
  const user = await addUser(rig, "Ada");
  const inSession = async (key: string) => {
    const answer = await rig.responses({}, withKey(key, { "session-id": "SENT-session-1" }));
    await answer.body?.cancel();
    return answer.status;
  };
  assertEquals(await inSession(user.api_key), 200);
  const home = ["A", "B", "C"].find((name) => rig.hits(name) === 1)!;
  const reset = await send(rig, "POST", "/v0/user/api-key/reset", undefined, user.api_key);
  const renewed: Required<UserAnswer> = await reset.json();
  assertEquals(renewed.id, user.id);
  assert(renewed.api_key !== user.api_key);
  assert(renewed.key_hint !== user.key_hint);
  assertEquals(await inSession(user.api_key), 401);
  const operators = await send(rig, "POST", `/v0/management/users/${user.id}/api-key/reset`, {});
  const last: Required<UserAnswer> = await operators.json();
  assertEquals(await inSession(renewed.api_key), 401);
  for (let turn = 0; turn < 4; turn++) assertEquals(await inSession(last.api_key), 200);
  assertEquals(rig.hits(home), 5);
});

Deno.test("another user's session with the same id is another conversation", async () => {
  await using rig = await startRig({ accounts: ["A", "B"] });
  for (const name of ["A", "B"]) rig.account(name).otherwise(ok(name));
  const users = [await addUser(rig, "one"), await addUser(rig, "two")];
  for (const user of [...users, ...users]) {
    const answer = await rig.responses({}, withKey(user.api_key, { "session-id": "SENT-session-1" }));
    await answer.body?.cancel();
  }
  assertEquals([rig.hits("A"), rig.hits("B")], [2, 2]);
});

Deno.test("a disabled user is told so at once, everywhere, and is back when enabled", async () => {
  await using rig = await startRig({ accounts: ["A"] });
  rig.account("A").otherwise(ok("A"));
  const user = await addUser(rig, "Ada");
  const change = (fields: unknown) => send(rig, "PATCH", `/v0/management/users/${user.id}`, fields);
  assertEquals((await (await change({ enabled: false })).json()).enabled, false);
  const refused = await rig.responses({}, withKey(user.api_key));
  assertEquals([refused.status, (await refused.json()).error.code], [403, "key_disabled"]);
  for (const [method, path] of [["GET", "api-key"], ["POST", "api-key/reset"], ["GET", "usage/today"]]) {
    const answer = await send(rig, method!, `/v0/user/${path}`, undefined, user.api_key);
    assertEquals(await refusal(answer), "403 key_disabled: This key is disabled");
  }
  await rig.restart();
  const still = await rig.responses({}, withKey(user.api_key));
  assertEquals([still.status, (await still.json()).error.code], [403, "key_disabled"]);
  const renamed = await change({ enabled: true, name: "Ada L" });
  assertEquals((await renamed.json()).name, "Ada L");
  const served = await rig.responses({}, withKey(user.api_key));
  assertEquals(served.status, 200);
  await served.body?.cancel();
});

const NAME_MISTAKE = '"name" must be 1..64 characters';
const refusals: readonly {
  name: string;
  method: string;
  path: string;
  body?: unknown;
  key?: string | null;
  want: string;
}[] = [
  {
    name: "no name",
    method: "POST",
    path: "users",
    body: {},
    want: '400 invalid_request: "name" must be text',
  },
  {
    name: "an empty name",
    method: "POST",
    path: "users",
    body: { name: " " },
    want: `400 invalid_request: ${NAME_MISTAKE}`,
  },
  {
    name: "a name of 65 characters",
    method: "POST",
    path: "users",
    body: { name: "x".repeat(65) },
    want: `400 invalid_request: ${NAME_MISTAKE}`,
  },
  {
    name: "a name that moves the cursor",
    method: "POST",
    path: "users",
    body: { name: "a\u001b[2J" },
    want: '400 invalid_request: "name" must not hold control characters',
  },
  {
    name: "every mistake at once",
    method: "POST",
    path: "users",
    body: { name: 1, enabled: 1, key: "SENT-own-key" },
    want:
      '400 invalid_request: "name" must be text; "enabled" must be true or false; "key" is not known here',
  },
  {
    name: "a taken name",
    method: "POST",
    path: "users",
    body: { name: "Ada" },
    want: "409 conflict: Another user has this name",
  },
  {
    name: "renaming to a taken name",
    method: "PATCH",
    path: "users/{Bob}",
    body: { name: "Ada" },
    want: "409 conflict: Another user has this name",
  },
  {
    name: "a change of nothing",
    method: "PATCH",
    path: "users/{Bob}",
    body: {},
    want: '400 invalid_request: The body must name "name" or "enabled"',
  },
  {
    name: "a key of the caller's choice",
    method: "POST",
    path: "users/{Bob}/api-key/reset",
    body: { api_key: "SENT-own-key" },
    want: '400 invalid_request: "api_key" is not known here',
  },
  {
    name: "an unknown user",
    method: "GET",
    path: "users/usr_nobody",
    want: "404 not_found: There is no such user",
  },
  {
    name: "a path for an id",
    method: "GET",
    path: "users/..%2f..%2fx",
    want: "404 not_found: There is no such call",
  },
  { name: "deleting", method: "DELETE", path: "users/{Bob}", want: "404 not_found: There is no such call" },
  {
    name: "no admin key",
    method: "GET",
    path: "users",
    key: null,
    want: "401 invalid_api_key: The admin key is missing or wrong",
  },
  {
    name: "a client key",
    method: "POST",
    path: "users",
    body: { name: "Eve" },
    key: CLIENT_KEY,
    want: "401 invalid_api_key: The admin key is missing or wrong",
  },
];

Deno.test("management refuses by name", async (t) => {
  await using rig = await startRig({ accounts: [] });
  await addUser(rig, "Ada");
  const bob = await addUser(rig, "Bob");
  for (const c of refusals) {
    await t.step(c.name, async () => {
      const path = `/v0/management/${c.path.replace("{Bob}", bob.id)}`;
      assertEquals(await refusal(await send(rig, c.method, path, c.body, c.key)), c.want);
    });
  }
  await t.step("and nothing came of it", async () => {
    const { users } = await (await send(rig, "GET", "/v0/management/users")).json();
    assertEquals(users.map((user: UserAnswer) => user.name).sort(), ["Ada", "Bob"]);
    assertEquals(users.find((user: UserAnswer) => user.name === "Bob"), withoutKey(bob));
  });
});

for (
  const c of [
    { name: "none", key: null },
    { name: "a wrong one", key: "SENT-wrong" },
    { name: "a configured client key", key: CLIENT_KEY },
    { name: "the admin key", key: ADMIN_KEY },
  ]
) {
  Deno.test(`the user's own calls need a managed user's key: ${c.name}`, async () => {
    await using rig = await startRig({ accounts: [] });
    for (const [method, path] of [["GET", "api-key"], ["POST", "api-key/reset"]]) {
      const answer = await send(rig, method!, `/v0/user/${path}`, undefined, c.key);
      assertEquals(await refusal(answer), "401 invalid_api_key: This is not the key of a managed user");
    }
  });
}

Deno.test("of two resets with one old key only one makes a key", async () => {
  await using rig = await startRig({ accounts: [] });
  const user = await addUser(rig, "Ada");
  const answers = await Promise.all(
    [1, 2, 3].map(() => send(rig, "POST", "/v0/user/api-key/reset", {}, user.api_key)),
  );
  assertEquals(answers.map(({ status }) => status).sort(), [200, 401, 401]);
  const winner: Required<UserAnswer> = await answers.find(({ status }) => status === 200)!.json();
  await Promise.all(answers.filter(({ status }) => status === 401).map((answer) => answer.body?.cancel()));
  const own = await send(rig, "GET", "/v0/user/api-key", undefined, winner.api_key);
  assertEquals((await own.json()).key_hint, winner.key_hint);
});

Deno.test("without an admin key there is no management, and users keep their own calls", async () => {
  await using rig = await startRig({ accounts: [] });
  const user = await addUser(rig, "Ada");
  await rig.app.reload({ ...rig.config(), adminApiKey: "" });
  const answer = await send(rig, "GET", "/v0/management/users");
  assertEquals(await refusal(answer), "404 not_found: Management is off: set admin-api-key");
  const own = await send(rig, "GET", "/v0/user/api-key", undefined, user.api_key);
  assertEquals((await own.json()).id, user.id);
});
