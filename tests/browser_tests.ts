/**
 * All tests that need a real browser. `deno test` alone leaves them out, since not every machine has one:
 * `deno task test:browser` runs them, and fails with a clear word where Chromium is missing.
 */
import "./browser/status_access_test.ts";
import "./browser/status_live_test.ts";
import "./browser/status_load_test.ts";
import "./browser/status_test.ts";
