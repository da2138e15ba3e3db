/**
 * Spans by Deno's built-in OpenTelemetry, when the environment asks for it (OTEL_DENO=true).
 *
 * Spans are made after the fact, with the times at which things happened: nothing is paid while a request runs, and
 * without a tracer nothing at all. Deno collects and sends them (OTEL_EXPORTER_OTLP_ENDPOINT and its like).
 */
export type SpanAttributes = Readonly<Record<string, string | number | boolean>>;

export interface FinishedSpan {
  readonly name: string;
  readonly kind: "server" | "client";
  readonly startMs: number;
  readonly endMs: number;
  readonly attributes: SpanAttributes;
  /** A fixed word; null where nothing failed. */
  readonly error: string | null;
  readonly events: readonly {
    readonly name: string;
    readonly atMs: number;
    readonly attributes: SpanAttributes;
  }[];
}

export interface Tracer {
  /** Records a span and its children. */
  record(span: FinishedSpan, children: readonly FinishedSpan[]): void;
}

/** The key under which OpenTelemetry's JavaScript API, and so Deno, keeps the span of a context. */
const SPAN_KEY = Symbol.for("OpenTelemetry Context Key SPAN");
/** OpenTelemetry's numbers for kinds and for a failed status. */
const KINDS = { server: 1, client: 2 } as const;
const STATUS_ERROR = 2;

/** What of OpenTelemetry's interfaces is used here; Deno declares them as `any`. */
interface OtelContext {
  setValue(key: symbol, value: unknown): OtelContext;
}
interface OtelSpan {
  addEvent(name: string, attributes: SpanAttributes, time: number): void;
  setStatus(status: { readonly code: number; readonly message: string }): void;
  end(time: number): void;
}
interface OtelTracer {
  startSpan(
    name: string,
    options: { readonly kind: number; readonly startTime: number; readonly attributes: SpanAttributes },
    context: OtelContext,
  ): OtelSpan;
}

/** @returns null unless OTEL_DENO is on. */
export function openTracer(version: string, env: (name: string) => string | undefined): Tracer | null {
  if (!["true", "1"].includes(env("OTEL_DENO") ?? "")) return null;
  const tracer = Deno.telemetry.tracerProvider.getTracer("holdfast", version) as OtelTracer;
  const contexts = Deno.telemetry.contextManager as { active(): OtelContext };
  const start = (span: FinishedSpan, context: OtelContext): OtelSpan => {
    const { name, kind, startMs, attributes, error, events } = span;
    const started = tracer.startSpan(name, { kind: KINDS[kind], startTime: startMs, attributes }, context);
    for (const event of events) started.addEvent(event.name, event.attributes, event.atMs);
    if (error !== null) started.setStatus({ code: STATUS_ERROR, message: error });
    return started;
  };
  return {
    record(span, children) {
      const context = contexts.active();
      const started = start(span, context);
      const below = context.setValue(SPAN_KEY, started);
      for (const child of children) start(child, below).end(child.endMs);
      started.end(span.endMs);
    },
  };
}
