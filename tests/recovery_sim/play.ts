/** Plays a scene to its end, and keeps everything that the checks ask about. */
import { type AttemptScript, drawAttempt, uncut } from "./attempt_script.ts";
import { type ClientResult, runClient } from "./client.ts";
import type { Plant } from "./plants.ts";
import type { Scene, SceneStream } from "./scene.ts";
import type { Send } from "./scripted_upstream.ts";
import type { WireProtocol } from "./wire_events.ts";
import type { RequestTrace } from "./watched_parts.ts";
import { openWorld, type World } from "./world.ts";

export interface Play {
  readonly scene: Scene;
  readonly world: World;
  readonly clients: readonly ClientResult[];
}

export interface PlayOptions {
  readonly plant?: Plant | null;
  /** Every body in one piece and at once. */
  readonly uncut?: boolean;
  readonly withRecovery?: boolean;
}

/** Longer than any scene takes: every wait in it has a bound. */
const SCENE_LIMIT_MS = 4 * 3_600_000;
/** After the last client: what follows a terminal is read for a moment. */
const AFTER_MS = 5_000;

export async function playScene(scene: Scene, options: PlayOptions = {}): Promise<Play> {
  const streamOf = (requestId: string): SceneStream => {
    const number = streams.get(requestId);
    if (number === undefined) throw new Error(`Cannot play ${requestId}: no client asked for it`);
    return number;
  };
  const streams = new Map<string, SceneStream>();
  const script = (requestId: string, number: number, protocol: WireProtocol, asksForStream: boolean) => {
    const drawn = drawAttempt({
      seed: scene.seed,
      stream: streamOf(requestId).number,
      number,
      protocol,
      asksForStream,
      weather: scene.weather,
    });
    return options.uncut === true ? uncut(drawn) : drawn;
  };
  const world = openWorld(scene, script, {
    withRecovery: options.withRecovery ?? true,
    plant: options.plant ?? null,
  });
  const clients = await runClients(world, scene.streams, streams);
  return { scene, world, clients };
}

/**
 * What one attempt gives a client that recovery has no part in: one account, one attempt, its bytes in one piece.
 * Where protocols differ this is what "the attempt's bytes" means.
 */
export async function playAlone(
  scene: Scene,
  client: ClientResult,
  script: AttemptScript,
): Promise<ClientResult> {
  const { provider } = client.stream;
  const stream: SceneStream = {
    ...client.stream,
    arrivesAtMs: 0,
    leaving: { kind: "never" },
    readPauseMs: 0,
  };
  const alone: Scene = {
    ...scene,
    config: { ...scene.config, attempts: 0, requestRetry: 0, keepaliveSeconds: 0 },
    accounts: scene.accounts.map((account) => ({ ...account, refreshable: false })).filter((
      account,
      at,
      all,
    ) => account.provider !== provider || all.findIndex((other) => other.provider === provider) === at),
    streams: [stream],
  };
  const whole = uncut(script);
  const firstId = Number(client.requestId.slice("req_".length));
  const world = openWorld(alone, () => whole, { withRecovery: true, plant: null, firstId });
  return (await runClients(world, alone.streams, new Map()))[0]!;
}

async function runClients(
  world: World,
  all: readonly SceneStream[],
  streams: Map<string, SceneStream>,
): Promise<ClientResult[]> {
  const { clock } = world;
  const running = all.map((stream) => runClient(world, stream, (id) => void streams.set(id, stream)));
  const clients = await clock.runUntil(Promise.all(running), SCENE_LIMIT_MS);
  await clock.advance(AFTER_MS);
  world.close();
  return clients;
}

export function sendsOf(play: Play, client: ClientResult): Send[] {
  return play.world.upstream.sends.filter(({ requestId }) => requestId === client.requestId);
}

export function traceOf(play: Play, client: ClientResult): RequestTrace {
  return play.world.pool.requests.get(client.requestId)!;
}
