/** A short form of `deno task fuzz`, and proof that it notices. */
import { assert, assertEquals } from "@std/assert";
import { fuzz } from "./fuzz.ts";
import { type Target, TARGETS } from "./targets.ts";

for (const { name } of TARGETS) {
  Deno.test(`fuzz() finds nothing in 400 inputs of seed 1: ${name}`, async () => {
    assertEquals((await fuzz(400, 1, name)).failure, null);
  });
}

async function run(body: Target["run"]) {
  return (await fuzz(100, 1_000, null, () => {}, [{ name: "planted", run: body }])).failure;
}

Deno.test("fuzz() names the target, the input and the error of a crash", async () => {
  let inputs = 0;
  const failure = await run(() => {
    if (++inputs === 8) throw new RangeError("boom");
  });
  assertEquals([failure?.target, failure?.seed, failure?.problem.split("\n")[0]], ["planted", 1_007, "boom"]);
});

Deno.test("fuzz() takes a second for a hang only when the same input takes it twice", async () => {
  const busy = () => {
    for (const end = performance.now() + 1_010; performance.now() < end;);
  };
  let runs = 0;
  assertEquals(await run(() => void (++runs === 3 && busy())), null);
  const failure = await run((source) => void (source.below(2) === 0 && busy()));
  assert(failure?.problem.startsWith("took"), failure?.problem);
});

Deno.test("every input of a target is the same again from its seed", async () => {
  const drawn = await Promise.all([1, 2].map(async () => {
    const bytes: string[] = [];
    await fuzz(50, 5, null, () => {}, [{
      name: "recorder",
      run: (source) => void bytes.push(source.broken(["abc", "def"]).join()),
    }]);
    return bytes;
  }));
  assertEquals(drawn[0], drawn[1]);
});
