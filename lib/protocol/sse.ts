/** Placeholder shape; the framer lands with its tests. */
export interface SseFrame {
  readonly raw: Uint8Array<ArrayBuffer>;
  readonly event: string | null;
  data(): string | null;
}
