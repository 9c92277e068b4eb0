// SPDX-License-Identifier: MIT
// Whoever answers the questions of the page: weir behind a server, or weir as WebAssembly in this file.
// A question is text (docs/format/view-answers.md); what is wrong with it comes back as a sentence.

import { FileEngine } from "./file_engine";

// Records of the trace that were read for the answer that is being made; of no whole, none is.
export interface Progress {
  done: number;
  whole: number;
}
export interface Engine {
  ask(question: string, signal?: AbortSignal): Promise<ArrayBuffer>;
  progress?(): Promise<Progress>; // one that answers at once has none
}

export class Refused extends Error {}

const mostAtOnce = 4; // a browser has six connections to a server: one is always free to ask how far weir is
export const givenUp = "nobody waits for this answer any more";

// Questions are asked of the folder that the page is in, whose name is the token.
class ServerEngine implements Engine {
  private running = 0;
  private readonly waiting: (() => void)[] = [];

  // weir makes one answer after the other; what is not yet asked when it is given up costs nothing.
  async ask(question: string, signal?: AbortSignal): Promise<ArrayBuffer> {
    if (this.running === mostAtOnce) await new Promise<void>((go) => this.waiting.push(go));
    else this.running++;
    try {
      if (signal?.aborted) throw new Refused(givenUp);
      return await this.fetched(question, signal);
    } finally {
      const next = this.waiting.shift();
      if (next) next();
      else this.running--;
    }
  }

  async progress(): Promise<Progress> {
    return (await (await fetch("q/progress", { cache: "no-store" })).json()) as Progress;
  }

  private async fetched(question: string, signal?: AbortSignal): Promise<ArrayBuffer> {
    let response: Response;
    try {
      response = await fetch(`q/${question}`, { cache: "no-store", signal: signal ?? null });
    } catch {
      throw new Refused(signal?.aborted ? givenUp : "weir does not answer any more: 'weir view' has ended");
    }
    const body = await response.arrayBuffer();
    if (!response.ok) throw new Refused(new TextDecoder().decode(body).trim());
    return body;
  }
}

export async function openEngine(): Promise<Engine> {
  return document.getElementById("weir-trace") ? FileEngine.open() : new ServerEngine();
}

export type Keys = Record<string, string | number | undefined>;

// "tree?order=cum&metric=cpu"; keys without a value are left out.
export function question(kind: string, keys: Keys): string {
  const parts: string[] = [];
  for (const [key, value] of Object.entries(keys))
    if (value !== undefined && value !== "") parts.push(`${key}=${encodeURIComponent(value)}`);
  return parts.length ? `${kind}?${parts.join("&")}` : kind;
}
