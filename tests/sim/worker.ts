/** One thread of a campaign: a block in, its report out. */
import { type Block, runBlock } from "./block.ts";
import { beStrict } from "./findings.ts";

// The library of DOM types says window; here it is a worker.
const scope = globalThis as unknown as {
  onmessage: ((event: MessageEvent<Block>) => void) | null;
  postMessage(message: unknown): void;
};

scope.onmessage = ({ data }) => {
  if (data.strict) beStrict();
  scope.postMessage(runBlock(data));
};
