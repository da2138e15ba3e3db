/**
 * Reads the heap of another Deno process through its inspector, after a collection that is asked for.
 *
 * What a process keeps and what it has not thrown away yet look alike from outside; after a full collection only the
 * first is left. The process is started with `inspectFlag(port)`; nobody is attached between two readings.
 */

export interface HeapReading {
  /** Live objects of V8, bytes. */
  readonly usedBytes: number;
  /** Live array buffers outside of V8's heap, bytes. */
  readonly buffersBytes: number;
}

const ANSWER_LIMIT_MS = 20_000;
/** Objects that wait for their finalizers go with the second collection. */
const COLLECTIONS = 2;

export function inspectFlag(port: number): string {
  return `--inspect=127.0.0.1:${port}`;
}

/** @throws Error when nobody answers there in time. */
export async function readHeap(port: number): Promise<HeapReading> {
  const limit = new AbortController();
  const timer = setTimeout(() => limit.abort(), ANSWER_LIMIT_MS);
  try {
    return await readWithin(port, limit.signal);
  } finally {
    clearTimeout(timer);
  }
}

async function readWithin(port: number, signal: AbortSignal): Promise<HeapReading> {
  const list = await (await fetch(`http://127.0.0.1:${port}/json/list`, { signal })).json();
  const socket = new WebSocket(list[0].webSocketDebuggerUrl);
  const answers = new Map<number, (result: Record<string, number>) => void>();
  const broken = Promise.withResolvers<never>();
  broken.promise.catch(() => {});
  const fail = (): void => broken.reject(new Error(`Cannot read the heap at port ${port}`));
  socket.onmessage = ({ data }) => {
    const { id, result } = JSON.parse(data);
    answers.get(id)?.(result);
  };
  socket.onerror = fail;
  signal.addEventListener("abort", fail, { once: true });
  let last = 0;
  const call = (method: string): Promise<Record<string, number>> => {
    const { promise, resolve } = Promise.withResolvers<Record<string, number>>();
    answers.set(++last, resolve);
    socket.send(JSON.stringify({ id: last, method, params: {} }));
    return Promise.race([promise, broken.promise]);
  };
  try {
    await Promise.race([new Promise((resolve) => socket.onopen = resolve), broken.promise]);
    for (let count = 0; count < COLLECTIONS; count++) await call("HeapProfiler.collectGarbage");
    const { usedSize, backingStorageSize } = await call("Runtime.getHeapUsage");
    return { usedBytes: usedSize!, buffersBytes: backingStorageSize! };
  } finally {
    const closed = new Promise((resolve) => socket.onclose = resolve);
    socket.close();
    let timer: ReturnType<typeof setTimeout> | undefined;
    await Promise.race([closed, new Promise((resolve) => timer = setTimeout(resolve, 200))]);
    clearTimeout(timer);
  }
}
