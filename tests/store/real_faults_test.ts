/**
 * Full, read-only and foreign disks, tried for real. Linux only: elsewhere nobody but the superuser of the whole
 * machine may mount. `fault_n_test.ts` covers the same errors on every system.
 */
import { assertEquals } from "@std/assert";
import { fileURLToPath } from "node:url";
import { FAULT_CASES } from "../support/store_faults.ts";
import { TempFolder } from "../support/temp_folder.ts";

const FAULTS = fileURLToPath(new URL("../support/store_faults.ts", import.meta.url));

/** Everybody may mount in a user namespace of his own, where the system allows those. */
const NAMESPACE = Deno.uid() === 0 ? ["--mount"] : ["--mount", "--map-root-user"];

if (Deno.build.os === "linux") {
  for (const name of FAULT_CASES) {
    Deno.test(`the store fails in one line and keeps what it had acknowledged: ${name}`, async () => {
      await requireMountsAllowed();
      using folder = new TempFolder();
      const { code, stderr } = await unshare(Deno.execPath(), "run", "-A", FAULTS, name, folder.path);
      assertEquals(code, 0, stderr);
    });
  }
}

async function requireMountsAllowed(): Promise<void> {
  const { code, stderr } = await unshare("mount", "-t", "tmpfs", "tmpfs", "/mnt");
  assertEquals(
    code,
    0,
    `this test needs a mount namespace (root, CAP_SYS_ADMIN in a container, or user namespaces): ${stderr}`,
  );
}

async function unshare(...command: string[]): Promise<{ code: number; stderr: string }> {
  const output = await new Deno.Command("unshare", { args: [...NAMESPACE, "--", ...command] }).output();
  return { code: output.code, stderr: new TextDecoder().decode(output.stderr) };
}
