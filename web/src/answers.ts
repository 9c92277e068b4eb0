// SPDX-License-Identifier: MIT
// Answers with their types; each question is asked once and its answer kept while it is of use.
import { type Arrays, f64, readArrays, texts, u32, u8 } from "./arrays";
import { type Engine, givenUp, type Keys, type Progress, question, Refused } from "./engine";

export interface Loss {
  samples_lost: number;
  events_lost: number;
  records_lost: number;
  records_unknown: number;
  stacks: number;
  stacks_complete: number;
  frames: number;
  frames_unresolved: number;
  cpu_ns: number | null;
  sampled_ns: number | null;
  cut: boolean;
  reasons: Record<string, number>;
}

export interface Meta {
  version: string;
  trace: string;
  traces: string[]; // with two, the first is before and the second after
  number: number; // which of them this is, from 1 on
  facts: Record<string, string>;
  metrics: { name: string; unit: string }[];
  metric: string;
  unit: string;
  time: boolean;
  exact: boolean;
  estimates: boolean;
  total: number;
  start: number;
  end: number;
  samples: number;
  events: number;
  functions: number;
  nodes: number;
  has: {
    samples: boolean;
    events: boolean;
    calls: boolean;
    counts: boolean;
    steps: boolean;
    hooks: boolean;
    merged: boolean;
    tree: boolean;
    timeless: boolean; // sums over the whole run, whatever the stretch of time
  };
  loss: Loss;
}

// Stacks that were imported have no time: the number of a stack's line stands for it.
export function unitOfPlaces(meta: Meta): "ns" | "1" {
  return meta.facts.mode === "import" && meta.has.samples && !meta.has.events && !meta.time ? "1" : "ns";
}

// A row of `weir report flat --json`; null: not measured.
export interface FlatRow {
  name: string;
  image: string | null;
  kind: string;
  calls: number | null;
  base: number | null;
  cum: number | null;
  cum2: number | null;
  elapsed: number | null;
  min: number | null;
  max: number | null;
  samples: number | null;
  exact: boolean;
  sampled_base: number | null;
  sampled_cum: number | null;
}
export interface Report<Row> {
  total: number;
  metric: { name: string; unit: string };
  rows: Row[];
}

export interface Tree {
  n: number;
  node: Uint32Array;
  routine: Uint32Array;
  depth: Uint32Array;
  cum: Float64Array;
  base: Float64Array;
  calls: Float64Array;
  left: Float64Array;
  width: Float64Array;
  end: Uint32Array;
  flags: Uint8Array;
  names?: string[]; // of callers: their numbers are their own
  diff?: TreeDiff; // of two traces; all others are then those of the newer one
}
export interface TreeDiff {
  cum: Float64Array; // before
  base: Float64Array;
  calls: Float64Array;
  flags: Uint8Array;
  samples: Float64Array; // in it and all below it, before
  samplesAfter: Float64Array;
  flagsAfter: Uint8Array;
  moreCum: Float64Array; // after less before
  moreBase: Float64Array;
  names: Names;
}
export const flagAbsent = 32;

export const [kindNative, kindKernel] = [1, 2]; // of a function

// A function in one of two traces; null: not measured.
export interface Side {
  there: boolean;
  base: number | null;
  cum: number | null;
  calls: number | null;
  samples: number | null; // with the function innermost
  samples_cum: number | null; // with it on the stack
  exact: boolean;
}
export interface Sides {
  before: Side;
  after: Side;
  more: { base: number | null; cum: number | null; calls: number | null };
}
export interface DiffRow extends Sides {
  name: string;
  image: string | null;
  kind: string;
}
export interface DiffFunctions {
  metric: { name: string; unit: string };
  total: { before: number; after: number; more: number };
  rows: DiffRow[];
}

export const flagExact = 1;
export const flagSampled = 2;
export const flagRecursive = 4;
export const flagThread = 8;
export const flagChain = 16;

export interface Names {
  name: string[];
  image: string[];
  kind: Uint8Array;
  flags: Uint8Array;
}

export interface GraphBox extends Partial<Sides> {
  routine: number;
  name: string;
  image: string | null;
  state: "leaf" | "folded" | "filtered" | "open";
  calls: number | null;
  base: number | null;
  cum: number | null;
  exact: boolean;
  recursive: boolean;
  callees: number;
  shown: number;
  layer: number;
  x: number;
  y: number;
  w: number;
  h: number;
}
export type WidthRule = "none" | "linear" | "log" | "adaptive";
export interface GraphArc {
  from: number;
  to: number;
  calls: number | null;
  cum: number | null;
  share: number;
  exact: boolean;
  recursive: boolean;
  back: boolean;
  width: Record<WidthRule, number>;
  points: number[];
}
export interface Graph {
  filter: number;
  functions: number;
  hidden: number;
  root: number;
  whole: number;
  total: number;
  w: number;
  h: number;
  boxes: GraphBox[];
  arcs: GraphArc[];
}

// Functions that a search means, and their part of the whole.
export interface Matches {
  matches: number;
  base: number;
  cum: number;
  total: number;
  names: string[];
}

export interface Timeline {
  from: number; // ns since the start
  to: number;
  columns: number;
  tooDeep: number;
  threads: { id: string; name: string }[];
  thread: string; // whose calls and samples these are
  busy: Uint32Array; // columns for each thread
  spanFrom: Float64Array;
  spanTo: Float64Array;
  spanRow: Uint32Array;
  spanName: Uint32Array;
  spanN: Uint32Array;
  sampleTime: Float64Array;
  sampleName: Uint32Array;
  sampleN: Uint32Array;
  waitFrom: Float64Array; // off the CPU
  waitTo: Float64Array;
  waitName: Uint32Array; // of the function that waits, "?": not known
  waitN: Uint32Array;
  waitReady: Uint32Array; // 1: it could have run
  stepFrom: Float64Array; // instructions (kind 0) and marks between them
  stepTo: Float64Array;
  stepN: Float64Array;
  stepKind: Uint32Array;
  stepWords: string[];
  names: string[];
}

const keptAnswers = 32;

interface Kept {
  answer: Promise<unknown>;
  waiting: number; // who will say when they do not wait any more
  isThere: boolean;
  end: AbortController;
}

// What all who ask have in common.
class Shared {
  readonly kept = new Map<string, Kept>();
  open = 0; // questions without an answer yet
  tell: () => void = () => undefined; // that `open` has become 0 or something else

  count(by: 1 | -1): void {
    this.open += by;
    if (this.open === (by > 0 ? 1 : 0)) this.tell();
  }
}

export class Answers {
  private readonly asked = new Set<Kept>(); // by this one, which will release() them
  private isReleased = false;

  constructor(
    private readonly engine: Engine,
    private readonly shared = new Shared(),
    private readonly isForOne = false,
  ) {}

  // For one who may lose interest: release() gives up what nobody else waits for, so that weir goes on to what is wanted.
  forOne(): Answers {
    return new Answers(this.engine, this.shared, true);
  }
  release(): void {
    const all = [...this.asked];
    this.isReleased = true;
    for (const k of all) k.waiting--;
    // Whoever asks the same instead does so by then.
    setTimeout(() => {
      for (const k of all) if (!k.waiting && !k.isThere) k.end.abort();
    }, 50);
  }

  get isWaiting(): boolean {
    return this.shared.open > 0;
  }
  onWaiting(tell: () => void): void {
    this.shared.tell = tell;
  }
  progress(): Promise<Progress> | undefined {
    return this.engine.progress?.();
  }

  private begin<T>(text: string, read: (bytes: ArrayBuffer) => T): Kept {
    const { kept } = this.shared;
    const end = new AbortController();
    this.shared.count(1);
    const answer = this.engine.ask(text, end.signal).then(read);
    const k: Kept = { answer, waiting: 0, isThere: false, end };
    const isOver = (): void => {
      k.isThere = true;
      this.shared.count(-1);
    };
    answer.then(isOver, () => {
      isOver();
      if (kept.get(text) === k) kept.delete(text);
    });
    end.signal.addEventListener("abort", () => kept.get(text) === k && kept.delete(text));
    return k;
  }

  private ask<T>(text: string, read: (bytes: ArrayBuffer) => T): Promise<T> {
    const { kept } = this.shared;
    if (this.isReleased) return Promise.reject(new Refused(givenUp)); // a second question of one that does not wait
    const k = kept.get(text) ?? this.begin(text, read);
    kept.delete(text); // so that it is the newest
    kept.set(text, k);
    // One that does not release waits to the end.
    if (!this.asked.has(k)) k.waiting++;
    if (this.isForOne) this.asked.add(k);
    for (const oldest of kept.keys()) {
      if (kept.size <= keptAnswers) break;
      kept.delete(oldest);
    }
    return k.answer as Promise<T>;
  }

  private json<T>(kind: string, keys: Keys): Promise<T> {
    return this.ask(question(kind, keys), (bytes) => JSON.parse(new TextDecoder().decode(bytes)) as T);
  }

  meta(keys: Keys): Promise<Meta> {
    return this.json("meta", keys);
  }
  report<Row>(kind: string, keys: Keys): Promise<Report<Row>> {
    return this.json(`report/${kind}`, keys);
  }
  source<Source>(keys: Keys): Promise<Source> {
    return this.json("source", keys);
  }
  matches(keys: Keys): Promise<Matches> {
    return this.json("matches", keys);
  }
  // A file for another tool; it is not kept.
  exported(kind: string, keys: Keys): Promise<ArrayBuffer> {
    return this.engine.ask(question(`export/${kind}`, keys));
  }
  graph(keys: Keys): Promise<Graph> {
    return this.json("graph", keys);
  }
  names(keys: Keys): Promise<Names> {
    return this.ask(question("names", keys), (bytes) => {
      const a = readArrays(bytes);
      return { name: texts(a, "name"), image: texts(a, "image"), kind: u8(a, "kind"), flags: u8(a, "flags") };
    });
  }
  diff(keys: Keys): Promise<Tree> {
    return this.ask(question("diff", keys), (bytes) => diffOf(readArrays(bytes)));
  }
  diffFunctions(keys: Keys): Promise<DiffFunctions> {
    return this.json("diff-functions", keys);
  }
  diffGraph(keys: Keys): Promise<Graph> {
    return this.json("diff-graph", keys);
  }
  tree(keys: Keys): Promise<Tree> {
    return this.ask(question("tree", keys), (bytes) => treeOf(readArrays(bytes)));
  }
  timeline(keys: Keys): Promise<Timeline> {
    return this.ask(question("timeline", keys), (bytes) => {
      const a = readArrays(bytes);
      const [from, to, columns, tooDeep] = f64(a, "window");
      const names = texts(a, "thread_name");
      return {
        from: from!,
        to: to!,
        columns: columns!,
        tooDeep: tooDeep!,
        threads: texts(a, "thread_id").map((id, i) => ({ id, name: names[i]! })),
        thread: texts(a, "thread")[0]!,
        busy: u32(a, "busy"),
        spanFrom: f64(a, "span_from"),
        spanTo: f64(a, "span_to"),
        spanRow: u32(a, "span_row"),
        spanName: u32(a, "span_name"),
        spanN: u32(a, "span_n"),
        sampleTime: f64(a, "sample_time"),
        sampleName: u32(a, "sample_name"),
        sampleN: u32(a, "sample_n"),
        waitFrom: f64(a, "wait_from"),
        waitTo: f64(a, "wait_to"),
        waitName: u32(a, "wait_name"),
        waitN: u32(a, "wait_n"),
        waitReady: u32(a, "wait_ready"),
        stepFrom: f64(a, "step_from"),
        stepTo: f64(a, "step_to"),
        stepN: f64(a, "step_n"),
        stepKind: u32(a, "step_kind"),
        stepWords: texts(a, "step_words"),
        names: texts(a, "name"),
      };
    });
  }
  callers(keys: Keys): Promise<Tree> {
    return this.ask(question("callers", keys), (bytes) => {
      const a = readArrays(bytes);
      return { ...treeOf(a), names: texts(a, "name") };
    });
  }
}

function treeOf(a: Arrays): Tree {
  const node = u32(a, "node");
  return {
    n: node.length,
    node,
    routine: u32(a, "routine"),
    depth: u32(a, "depth"),
    cum: f64(a, "cum"),
    base: f64(a, "base"),
    calls: f64(a, "calls"),
    left: f64(a, "left"),
    width: f64(a, "width"),
    end: u32(a, "end"),
    flags: u8(a, "flags"),
  };
}

// A box that is in the older trace alone is known as it was there.
function diffOf(a: Arrays): Tree {
  const tree = treeOf(a);
  const before = u8(a, "before_flags");
  const kind = u8(a, "kind");
  return {
    ...tree,
    flags: tree.flags.map((flags, i) => (flags & flagAbsent ? before[i]! : flags)),
    diff: {
      cum: f64(a, "before_cum"),
      base: f64(a, "before_base"),
      calls: f64(a, "before_calls"),
      flags: before,
      samples: f64(a, "before_samples"),
      samplesAfter: f64(a, "samples"),
      flagsAfter: tree.flags,
      moreCum: f64(a, "more_cum"),
      moreBase: f64(a, "more_base"),
      names: { name: texts(a, "name"), image: texts(a, "image"), kind, flags: new Uint8Array(kind.length) },
    },
  };
}
