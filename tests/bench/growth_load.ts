/**
 * A load that ends after a count rather than a time; a process of its own.
 *
 * Its one argument is a `CountedLoad`. Ends with 1 when an answer was not 200.
 */
import { LoadConnection } from "./load_connection.ts";
import { requestMaker, type RequestShape } from "./load_request.ts";

export interface CountedLoad {
  readonly shape: RequestShape;
  readonly connections: number;
  readonly requests: number;
  /** Number of the first request; the session of each is its number modulo `sessions`. */
  readonly first: number;
  readonly sessions: number;
}

if (import.meta.main) {
  const load = JSON.parse(Deno.args[0]!) as CountedLoad;
  let next = load.first;
  const end = load.first + load.requests;
  let failures = 0;
  await Promise.all(Array.from({ length: load.connections }, async () => {
    const connection = await LoadConnection.open(load.shape.port);
    const make = requestMaker(load.shape);
    while (next < end) {
      const number = next++;
      if (await connection.exchange(make(number % load.sessions, number)) !== 200) failures++;
    }
    connection.close();
  }));
  if (failures > 0) console.error(`${failures} of ${load.requests} requests were not answered with 200`);
  Deno.exit(failures === 0 ? 0 : 1);
}
