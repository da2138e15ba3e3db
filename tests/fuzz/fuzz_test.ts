/** A short form of `deno task fuzz`, and proof that it notices. */
import { assert, assertEquals } from "@std/assert";
import { fuzz } from "./fuzz.ts";
import { type Target, TARGETS } from "./targets.ts";

for (const { name } of TARGETS) {
  Deno.test(`fuzz() finds nothing in 400 inputs of seed 1: ${name}`, () => {
    assertEquals(fuzz(400, 1, name).failure, null);
  });
}

function run(body: Target["run"]) {
  return fuzz(100, 1_000, null, () => {}, [{ name: "planted", run: body }]).failure;
}

Deno.test("fuzz() names the target, the input and the error of a crash", () => {
  let inputs = 0;
  const failure = run(() => {
    if (++inputs === 8) throw new RangeError("boom");
  });
  assertEquals([failure?.target, failure?.seed, failure?.problem.split("\n")[0]], ["planted", 1_007, "boom"]);
});

Deno.test("fuzz() takes a second for a hang only when the same input takes it twice", () => {
  const busy = () => {
    for (const end = performance.now() + 1_010; performance.now() < end;);
  };
  let runs = 0;
  assertEquals(run(() => void (++runs === 3 && busy())), null);
  const failure = run((source) => void (source.below(2) === 0 && busy()));
  assert(failure?.problem.startsWith("took"), failure?.problem);
});

Deno.test("every input of a target is the same again from its seed", () => {
  const drawn = [1, 2].map(() => {
    const bytes: string[] = [];
    fuzz(50, 5, null, () => {}, [{
      name: "recorder",
      run: (source) => void bytes.push(source.broken(["abc", "def"]).join()),
    }]);
    return bytes;
  });
  assertEquals(drawn[0], drawn[1]);
});
