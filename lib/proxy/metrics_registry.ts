/**
 * Counters, gauges and histograms in Prometheus' text format.
 *
 * Small on purpose (docs/decisions.md): an update is one lookup and one addition, and the number of series is bounded,
 * whatever labels turn up. Holds no clock and starts nothing.
 */

/** More label combinations of one metric than any real set-up has; further ones are counted as `other`. */
export const SERIES_LIMIT = 2_000;
const OTHER = "other";

export type Labels = readonly string[];

interface Metric {
  readonly name: string;
  render(lines: string[]): void;
}

export class MetricsRegistry {
  readonly #metrics: Metric[] = [];

  counter(name: string, help: string, labelNames: readonly string[] = []): Counter {
    if (!name.endsWith("_total")) {
      throw new RangeError(`Cannot make a counter: its name must end in _total, got ${name}`);
    }
    return this.#add(new Counter(name, help, labelNames));
  }

  /** @param collect  called at every scrape, to say what is now. */
  gauge(name: string, help: string, labelNames: readonly string[], collect: (gauge: Gauge) => void): Gauge {
    return this.#add(new Gauge(name, help, labelNames, "gauge", collect));
  }

  /** A counter that somebody else keeps: read at every scrape. */
  readCounter(
    name: string,
    help: string,
    labelNames: readonly string[],
    collect: (gauge: Gauge) => void,
  ): Gauge {
    return this.#add(new Gauge(name, help, labelNames, "counter", collect));
  }

  /** @param bounds  upper bounds in ascending order, without infinity. */
  histogram(name: string, help: string, labelNames: readonly string[], bounds: readonly number[]): Histogram {
    return this.#add(new Histogram(name, help, labelNames, bounds));
  }

  /** The whole exposition, version 0.0.4. */
  render(): string {
    const lines: string[] = [];
    for (const metric of this.#metrics) metric.render(lines);
    return `${lines.join("\n")}\n`;
  }

  #add<M extends Metric>(metric: M): M {
    if (this.#metrics.some(({ name }) => name === metric.name)) {
      throw new RangeError(`Cannot add a metric: the name is taken, got ${metric.name}`);
    }
    this.#metrics.push(metric);
    return metric;
  }
}

/** One number for each combination of labels. */
class Series {
  readonly #values = new Map<string, { readonly labels: Labels; value: number }>();

  at(labels: Labels): { value: number } {
    const key = labels.length === 1 ? labels[0]! : labels.join("\0");
    const known = this.#values.get(key);
    if (known !== undefined) return known;
    if (this.#values.size >= SERIES_LIMIT && labels.some((label) => label !== OTHER)) {
      return this.at(labels.map(() => OTHER));
    }
    const made = { labels, value: 0 };
    this.#values.set(key, made);
    return made;
  }

  clear(): void {
    this.#values.clear();
  }

  *[Symbol.iterator](): Generator<{ readonly labels: Labels; readonly value: number }> {
    yield* this.#values.values();
  }
}

export class Counter implements Metric {
  readonly #series = new Series();

  constructor(readonly name: string, readonly help: string, readonly labelNames: readonly string[]) {}

  inc(labels: Labels = [], by = 1): void {
    this.#series.at(labels).value += by;
  }

  render(lines: string[]): void {
    head(lines, this.name, this.help, "counter");
    renderSeries(lines, this.name, this.labelNames, this.#series);
  }
}

export class Gauge implements Metric {
  readonly #series = new Series();
  readonly #collect: (gauge: Gauge) => void;

  constructor(
    readonly name: string,
    readonly help: string,
    readonly labelNames: readonly string[],
    readonly type: "gauge" | "counter",
    collect: (gauge: Gauge) => void,
  ) {
    this.#collect = collect;
  }

  set(value: number, labels: Labels = []): void {
    this.#series.at(labels).value = value;
  }

  add(value: number, labels: Labels = []): void {
    this.#series.at(labels).value += value;
  }

  render(lines: string[]): void {
    this.#series.clear();
    this.#collect(this);
    head(lines, this.name, this.help, this.type);
    renderSeries(lines, this.name, this.labelNames, this.#series);
  }
}

interface Distribution {
  readonly labels: Labels;
  /** Not cumulative; the last is beyond every bound. */
  readonly counts: number[];
  sum: number;
}

export class Histogram implements Metric {
  readonly #bounds: readonly number[];
  readonly #distributions = new Map<string, Distribution>();

  constructor(
    readonly name: string,
    readonly help: string,
    readonly labelNames: readonly string[],
    bounds: readonly number[],
  ) {
    this.#bounds = bounds;
  }

  observe(value: number, labels: Labels = []): void {
    const distribution = this.#at(labels);
    let bucket = 0;
    while (bucket < this.#bounds.length && value > this.#bounds[bucket]!) bucket++;
    distribution.counts[bucket]!++;
    distribution.sum += value;
  }

  render(lines: string[]): void {
    head(lines, this.name, this.help, "histogram");
    for (const { labels, counts, sum } of this.#distributions.values()) {
      let total = 0;
      for (const [bucket, count] of counts.entries()) {
        total += count;
        const bound = this.#bounds[bucket];
        lines.push(
          line(
            `${this.name}_bucket`,
            [...this.labelNames, "le"],
            [...labels, format(bound ?? Infinity)],
            total,
          ),
        );
      }
      lines.push(line(`${this.name}_sum`, this.labelNames, labels, sum));
      lines.push(line(`${this.name}_count`, this.labelNames, labels, total));
    }
  }

  #at(labels: Labels): Distribution {
    const key = labels.join("\0");
    const known = this.#distributions.get(key);
    if (known !== undefined) return known;
    if (this.#distributions.size >= SERIES_LIMIT && labels.some((label) => label !== OTHER)) {
      return this.#at(labels.map(() => OTHER));
    }
    const made = { labels, counts: new Array<number>(this.#bounds.length + 1).fill(0), sum: 0 };
    this.#distributions.set(key, made);
    return made;
  }
}

function head(lines: string[], name: string, help: string, type: string): void {
  lines.push(
    `# HELP ${name} ${help.replaceAll("\\", "\\\\").replaceAll("\n", "\\n")}`,
    `# TYPE ${name} ${type}`,
  );
}

function renderSeries(lines: string[], name: string, labelNames: readonly string[], series: Series): void {
  for (const { labels, value } of series) lines.push(line(name, labelNames, labels, value));
}

function line(name: string, labelNames: readonly string[], labels: Labels, value: number): string {
  const shown = labelNames.map((label, index) => `${label}="${escape(labels[index] ?? "")}"`);
  return `${name}${shown.length === 0 ? "" : `{${shown.join(",")}}`} ${format(value)}`;
}

function escape(value: string): string {
  return value.replaceAll("\\", "\\\\").replaceAll('"', '\\"').replaceAll("\n", "\\n");
}

function format(value: number): string {
  if (value === Infinity) return "+Inf";
  return value === -Infinity ? "-Inf" : String(value);
}
