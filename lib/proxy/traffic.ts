/** What goes through, counted where it passes: plain fields, because it happens for every piece of every stream. */
export class Traffic {
  /** Committed event streams that have not ended. */
  openStreams = 0;
  bytesToClients = 0;
  bytesFromClients = 0;
}
